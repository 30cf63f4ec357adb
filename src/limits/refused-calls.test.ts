import { expect, onTestFinished, test, vi } from 'vitest'
import type { Store } from '../store/store.ts'
import type { RefusalCount } from '../domain/records/refusal.ts'
import type { RefusedCall } from '../domain/refused-call.ts'
import { RefusalCounts, RefusedCalls } from './refused-calls.ts'

function counting() {
  const clock = { ms: 0, fails: false }
  const written: RefusalCount[] = []
  const write = (_: string, { counts }: { readonly counts: readonly RefusalCount[] }): Promise<void> => {
    if (clock.fails) return Promise.reject(new Error('the disk is full'))
    written.push(...counts)
    return Promise.resolve()
  }
  const counts = new RefusalCounts({ write: write as Store['write'] }, () => clock.ms)
  onTestFinished(() => counts.close())
  return { clock, counts, written }
}

test('refused calls are counted by half hour, code and key', async () => {
  const { clock, counts, written } = counting()
  const ann = { userId: 2, tokenId: 7 }
  counts.add('rate_limited', ann)
  counts.add('rate_limited', ann)
  counts.add('insufficient_quota', ann)
  counts.add('invalid_api_key', {})
  clock.ms = 1_800_000
  counts.add('rate_limited', ann)
  await counts.flush()
  expect(written).toEqual([
    { slot: 0, code: 'insufficient_quota', user_id: 2, token_id: 7, calls: 1 },
    { slot: 0, code: 'invalid_api_key', user_id: 0, token_id: 0, calls: 1 },
    { slot: 0, code: 'rate_limited', user_id: 2, token_id: 7, calls: 2 },
    { slot: 1, code: 'rate_limited', user_id: 2, token_id: 7, calls: 1 },
  ])
})

test('refused calls are counted by key for 1,000 keys per half hour and error code, and together for further keys', async () => {
  const { counts, written } = counting()
  for (let tokenId = 1; tokenId <= 1_500; tokenId += 1) {
    counts.add('rate_limited', { userId: 1, tokenId })
    if (tokenId === 700) await counts.flush()
  }
  await counts.flush()
  expect(new Set(written.map(({ token_id: tokenId }) => tokenId)).size).toBe(1_001)
  expect(written.find(({ token_id: tokenId }) => tokenId === 0)?.calls).toBe(500)
})

test('counts of refused calls that cannot be written are written later, each once', async () => {
  const { clock, counts, written } = counting()
  clock.fails = true
  counts.add('rate_limited', { userId: 1, tokenId: 1 })
  await counts.flush()
  counts.add('rate_limited', { userId: 1, tokenId: 1 })
  clock.fails = false
  await counts.flush()
  await counts.flush()
  expect(written).toEqual([{ slot: 0, code: 'rate_limited', user_id: 1, token_id: 1, calls: 2 }])
})

test('refused calls are written even after the database was slow to write earlier ones', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const written: string[] = []
  const write = async (_: string, { calls }: { readonly calls: readonly RefusedCall[] }): Promise<void> => {
    written.push(...calls.map(({ id }) => id))
    await new Promise((resolve) => setTimeout(resolve, 800))
  }
  const refused = new RefusedCalls({ write: write as Store['write'] }, () => 100)
  const add = (id: string): void => refused.add({ id, token_id: 1 } as RefusedCall)
  add('first')
  await vi.advanceTimersByTimeAsync(600)
  // This one arrives during the write, which still lasts when it is due.
  add('second')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(written).toEqual(['first', 'second'])
  add('third')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(written).toEqual(['first', 'second', 'third'])
})
