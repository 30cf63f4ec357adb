import { hash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { keptStore } from '../../../test/stores/kept.ts'
import { openedStore } from '../../../test/stores/rows.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { ResponseStore, RetriedWrites } from './response-store.ts'

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
  await vi.waitFor(() => expect(written.toSorted((a, b) => a - b)).toEqual([1, 3]))
  // The memory of the waiting writes was released.
  isAway = true
  await run(4, 100)
  expect(lost).toBe(1)
  isAway = false
  await vi.waitFor(() => expect(written.toSorted((a, b) => a - b)).toEqual([1, 3, 4]))
})

test('a response write that never succeeds is counted as lost', async () => {
  let lost = 0
  const writes = new RetriedWrites(() => lost++, 100, [1, 1])
  await writes.run(() => Promise.reject(new StoreUnavailable('away')), 10)
  await vi.waitFor(() => expect(lost).toBe(1))
})

test('encrypted reasoning leads only calls of the user who received it to the account that made it', async () => {
  const rows = await openedStore()
  const tag = (_: string, text: string): string => hash('sha256', text)
  const responses = new ResponseStore({ rows, tag, kept: keptStore(rows), onLost: () => {} })
  const provenance = responses.provenance(2, 'key', null, ['encrypted'])
  const call = {
    user_id: 2,
    model: 'm',
    group: 'default',
    channel: 'first',
    ended_ms: Date.now(),
    provenance,
  }
  await rows.write('storeProvenance', { calls: [call] })
  expect(await responses.originOf(2, ['encrypted'])).toMatchObject({ channel: 'first' })
  expect(await responses.originOf(3, ['encrypted'])).toBeUndefined()
})
