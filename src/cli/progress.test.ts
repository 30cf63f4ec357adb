import { describe, expect, test } from 'vitest'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'

function shown(total: number, { isTTY = false, isSilent = false } = {}): string[] {
  const written: string[] = []
  const err = { isTTY, write: (text: string) => void written.push(text) }
  const progress = new Progress({ err } as unknown as CommandContext, 'users', isSilent)
  for (let done = 1; done <= total; done += 1) progress.show(done, total)
  progress.end()
  return written
}

describe('progress', () => {
  test('the progress of a command is a bar on a terminal, which is removed at the end', () => {
    const bar = (filled: number): string => `[${'#'.repeat(filled)}${'-'.repeat(30 - filled)}]`
    expect(shown(3, { isTTY: true })).toEqual([
      `\r\u001B[2K${bar(10)} 1 of 3 users (33 %)`,
      `\r\u001B[2K${bar(20)} 2 of 3 users (66 %)`,
      `\r\u001B[2K${bar(30)} 3 of 3 users (100 %)`,
      '\r\u001B[2K',
    ])
  })

  test('the progress of a command is a line for each tenth if the output is no terminal and there is much to do', () => {
    const lines = shown(10_000)
    expect(lines).toHaveLength(10)
    expect(lines[0]).toBe('1000 of 10000 users (10 %)\n')
    expect(lines.at(-1)).toBe('10000 of 10000 users (100 %)\n')
    expect(shown(999)).toEqual([])
  })

  test('the progress of a command is not shown if its output is JSON', () => {
    expect(shown(10_000, { isSilent: true })).toEqual([])
    expect(shown(10_000, { isTTY: true, isSilent: true })).toEqual([])
  })
})
