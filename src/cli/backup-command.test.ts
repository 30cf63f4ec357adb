import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { unfinishedCopyBytes, showCopyProgress } from './backup-command.ts'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-copy-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

test('the progress of a database backup is the size of its unfinished file', () => {
  const path = folder()
  expect(unfinishedCopyBytes(join(path, 'nowhere/copy.db'))).toBe(0)
  writeFileSync(join(path, 'copy.db'), '12345')
  writeFileSync(join(path, 'other.db.0a.unfinished'), '123')
  expect(unfinishedCopyBytes(join(path, 'copy.db'))).toBe(0)
  writeFileSync(join(path, 'copy.db.0a.unfinished'), '1234')
  expect(unfinishedCopyBytes(join(path, 'copy.db'))).toBe(4)
})

test('the progress of a database backup is shown in MiB, and removed from the terminal at its end', async () => {
  const path = folder()
  writeFileSync(join(path, 'sluice.db'), Buffer.alloc(4 * 2 ** 20))
  writeFileSync(join(path, 'copy.db.0a.unfinished'), Buffer.alloc(2 ** 20))
  const written: string[] = []
  const err = { isTTY: true, write: (text: string) => void written.push(text) }
  {
    using _ = showCopyProgress(
      new Progress({ err } as unknown as CommandContext, 'MiB', false),
      join(path, 'sluice.db'),
      join(path, 'copy.db'),
    )
    await expect.poll(() => written.length).toBeGreaterThan(0)
  }
  expect(written[0]).toContain(' 1 of 4 MiB (25 %)')
  expect(written.at(-1)).toBe('\r\u001B[2K')
})
