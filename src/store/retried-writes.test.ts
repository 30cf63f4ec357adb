import { expect, test, vi } from 'vitest'
import { RetriedWrites } from './retried-writes.ts'
import { StoreUnavailable } from './store-unavailable.ts'

test('response writes that wait for an unavailable store take limited memory, and those beyond it are counted as lost', async () => {
  let isAway = true
  let lost = 0
  const written: number[] = []
  const writes = new RetriedWrites(() => lost++, 100, [1, 1, 1])
  const run = (id: number, bytes: number): Promise<void> =>
    writes.run(() => {
      if (isAway) return Promise.reject(new StoreUnavailable('away'))
      written.push(id)
      return Promise.resolve()
    }, bytes)
  await Promise.all([run(1, 60), run(2, 60), run(3, 40)])
  expect(lost).toBe(1)
  isAway = false
  await vi.waitFor(() => expect(written.toSorted((a, b) => a - b)).toEqual([1, 3]), 60_000)
  // The memory of the waiting writes was released.
  isAway = true
  await run(4, 100)
  expect(lost).toBe(1)
  isAway = false
  await vi.waitFor(() => expect(written.toSorted((a, b) => a - b)).toEqual([1, 3, 4]), 60_000)
})

test('a response write that never succeeds is counted as lost', async () => {
  let lost = 0
  const writes = new RetriedWrites(() => lost++, 100, [1, 1])
  await writes.run(() => Promise.reject(new StoreUnavailable('away')), 10)
  await vi.waitFor(() => expect(lost).toBe(1), 60_000)
})
