import { expect, test } from 'vitest'
import { batchOf, callsOf } from './batch.ts'

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
  const batch = batchOf([
    {
      call: calls[0],
      content: { request_received: Buffer.from('one'), answer_received: Buffer.from('two') },
    },
    { call: calls[1], content: {} },
    { call: calls[2], content: { request_sent: Buffer.alloc(0), answer_sent: Buffer.from('\u00e9') } },
  ])
  expect(callsOf(batch)).toEqual([
    { ...calls[0], lengths: [3, -1, 3, -1] },
    { ...calls[1], lengths: [-1, -1, -1, -1] },
    { ...calls[2], lengths: [-1, 0, -1, 2] },
  ])
  expect(Buffer.from(batch.bytes).toString()).toBe('onetwo\u00e9')
})
