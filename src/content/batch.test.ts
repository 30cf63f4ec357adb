import { expect, test } from 'vitest'
import { callsOfBatch, GrowingBatch, halvesOfBatch, reservedBytesOfBatch } from './batch.ts'

test('a batch of stored contents is read as it was written, and absent bodies differ from empty ones', () => {
  const call = (id: string, what: 'metadata' | 'redacted' | 'full') =>
    ({
      id,
      userId: 7,
      tokenId: 9_007_199_254_740_991,
      startedMs: 1_795_000_000_123,
      keepMs: 1_000,
      what,
    }) as const
  const calls = [call('a-1', 'metadata'), call('b-2', 'redacted'), call('c-3', 'full')] as const
  const growing = new GrowingBatch()
  growing.add(calls[0], { request_received: Buffer.from('one'), answer_received: Buffer.from('two') }, 10)
  growing.add(calls[1], {}, 20)
  growing.add(calls[2], { request_sent: Buffer.alloc(0), answer_sent: Buffer.from('\u00e9') }, 30)
  expect({ size: growing.size, reserved: growing.reserved }).toEqual({ size: 3, reserved: 60 })
  const batch = growing.batch()
  const expected = [
    { ...calls[0], lengths: [3, -1, 3, -1] },
    { ...calls[1], lengths: [-1, -1, -1, -1] },
    { ...calls[2], lengths: [-1, 0, -1, 2] },
  ]
  expect(callsOfBatch(batch)).toEqual(expected)
  expect(Buffer.from(batch.bytes).toString()).toBe('onetwo\u00e9')
  const [first, second] = halvesOfBatch(batch)
  expect([callsOfBatch(first), callsOfBatch(second)]).toEqual([expected.slice(0, 1), expected.slice(1)])
  expect([first, second].map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['onetwo', '\u00e9'])
})

test('reserved memory of a batch, or of a half of it, is added up for each run of consecutive calls of the same key', () => {
  const growing = new GrowingBatch()
  const add = (userId: number, tokenId: number, reserved: number): void =>
    growing.add({ id: 'i', userId, tokenId, startedMs: 1, keepMs: 2, what: 'full' }, {}, reserved)
  add(1, 2, 10)
  add(1, 2, 5)
  add(1, 3, 1)
  add(1, 2, 7)
  const batch = growing.batch()
  expect(reservedBytesOfBatch(batch)).toEqual([
    { userId: 1, tokenId: 2, bytes: 15 },
    { userId: 1, tokenId: 3, bytes: 1 },
    { userId: 1, tokenId: 2, bytes: 7 },
  ])
  expect(reservedBytesOfBatch(halvesOfBatch(batch)[1])).toEqual([
    { userId: 1, tokenId: 3, bytes: 1 },
    { userId: 1, tokenId: 2, bytes: 7 },
  ])
})

test('a batch of stored contents grows with each content, and another batch may use its memory afterwards', () => {
  const call = { id: 'i', userId: 1, tokenId: 2, startedMs: 3, keepMs: 4, what: 'full' } as const
  const growing = new GrowingBatch()
  const pieces = Array.from({ length: 9 }, (_, at) => Buffer.alloc(40_000, at + 1))
  for (const piece of pieces) growing.add(call, { request_received: piece }, 1)
  expect(Buffer.compare(growing.batch().bytes, Buffer.concat(pieces))).toBe(0)
  const next = new GrowingBatch(growing.memory)
  next.add(call, { answer_received: Buffer.from('short') }, 1)
  expect(Buffer.from(next.batch().bytes).toString()).toBe('short')
})
