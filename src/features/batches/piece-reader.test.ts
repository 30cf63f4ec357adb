import process from 'node:process'
import { expect, test } from 'vitest'
import { linesOf } from './piece-reader.ts'

async function* piecesOf(content: Buffer, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}

async function read(content: Buffer, size: number, maxBytes = 10): Promise<[number, string | undefined][]> {
  const lines: [number, string | undefined][] = []
  for await (const { line, bytes } of linesOf(piecesOf(content, size), maxBytes))
    lines.push([line, bytes?.toString()])
  return lines
}

/** Minimum CPU time of five reads, in microseconds: one of them may include a garbage collection. */
async function cost(content: Buffer): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round += 1) {
    const start = process.cpuUsage()
    expect(await read(content, content.length, content.length)).toEqual([])
    const { user, system } = process.cpuUsage(start)
    least = Math.min(least, user + system)
  }
  return least
}

test('lines keep their numbers when empty ones are passed over, however the content is cut', async () => {
  const content = Buffer.from('\n\r\n {"a"}\r\n \t\n\n{"b"}\n12345678901\n\n{"c"}')
  const expected = [
    [3, ' {"a"}\r'],
    [6, '{"b"}'],
    [7, undefined],
    [9, '{"c"}'],
  ]
  for (let size = 1; size <= content.length; size += 1) expect(await read(content, size)).toEqual(expected)
})

test('empty lines cost hardly more than spaces', async () => {
  const bytes = 262_144
  await cost(Buffer.alloc(bytes, '\n'))
  const spaces = await cost(Buffer.alloc(bytes, ' '))
  expect(await cost(Buffer.alloc(bytes, '\n'))).toBeLessThan(15 * spaces)
})
