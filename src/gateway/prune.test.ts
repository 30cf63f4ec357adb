import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { keptEntry, keptStore } from '../../test/stores/kept.ts'
import { settledCall, storeWithAccount } from '../../test/stores/rows.ts'
import { embeddedPruneParts, pruneRegularly } from './prune.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Counts the removals of expired data, and the warnings that there is none. */
function started(): { removals: number[]; warnings: string[]; stop: () => void } {
  const removals: number[] = []
  const warnings: string[] = []
  const prune = (): Promise<object> => Promise.resolve({ removed: removals.push(Date.now()) })
  const log = { info: () => {}, warn: (text: string) => warnings.push(text) }
  const pruning = pruneRegularly([prune], () => ({ log: 30, slots: 30 }), log as never)
  return { removals, warnings, stop: () => pruning.stop() }
}

describe('expired data', () => {
  test('expired data is removed a minute after the start, and then every hour', async () => {
    const { removals, warnings, stop } = started()
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS + 2 * MINUTE_MS)
    expect(removals).toHaveLength(4)
    expect(warnings).toEqual([])
    stop()
  })

  test.each([200, -200, 1])(
    'after the clock was set by %d days, no expired data is removed for a day, also if it was set right meanwhile',
    async (days) => {
      const { removals, warnings, stop } = started()
      await vi.advanceTimersByTimeAsync(2 * MINUTE_MS)
      expect(removals).toHaveLength(1)
      vi.setSystemTime(Date.now() + days * DAY_MS)
      await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
      vi.setSystemTime(Date.now() - days * DAY_MS)
      await vi.advanceTimersByTimeAsync(DAY_MS)
      expect(removals).toHaveLength(1)
      expect(warnings[0]).toContain('the clock was set')
      await vi.advanceTimersByTimeAsync(3 * HOUR_MS)
      expect(removals.length).toBeGreaterThan(1)
      stop()
    },
  )

  test('a clock that is corrected by minutes does not stop the removal of expired data', async () => {
    const { removals, stop } = started()
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS)
    vi.setSystemTime(Date.now() + 30 * MINUTE_MS)
    await vi.advanceTimersByTimeAsync(HOUR_MS)
    expect(removals).toHaveLength(2)
    stop()
  })

  test('a kind of expired data that cannot be removed keeps no other from being removed and logged', async () => {
    const lines: unknown[][] = []
    const log = {
      info: (...line: unknown[]) => lines.push(line),
      warn: (...line: unknown[]) => lines.push(line),
    }
    const late = new Error('timeout')
    const parts = [
      () => Promise.resolve({ removed: 3 }),
      () => Promise.reject(late),
      () => Promise.resolve({ removedAuditEntries: 2 }),
    ]
    const pruning = pruneRegularly(parts, () => ({ log: 30, slots: 30 }), log as never)
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS)
    pruning.stop()
    expect(lines).toEqual([
      [{ removed: 3, removedAuditEntries: 2 }, 'the usage log was pruned'],
      [{ err: late, failed: 1 }, 'some expired data was not removed; tried again in an hour'],
    ])
  })

  test('rows of the usage log that say which lines of an open batch are charged stay until it has ended', async () => {
    vi.useRealTimers()
    const { store, who } = await storeWithAccount()
    const time = (Date.now() - 3 * DAY_MS).toString(16).padStart(12, '0')
    const open = { kind: 'batch_open', key: `batch_${time}`, userId: 2 } as const
    const line = settledCall(who, `${time}-line`, { ended_ms: Date.now() - 2.9 * DAY_MS })
    await store.write('settle', line)
    await store.read('usageSumsCoverage')
    const kept = keptStore(store)
    await kept.writeFacts([keptEntry(open.kind, open.key)])
    const prune = () => embeddedPruneParts(store)[0]?.({ log: 1, slots: 1 }, new AbortController().signal)
    expect(await prune()).toEqual({ removed: 0 })
    expect(await store.read('settledCalls', { ids: [line.id] })).toEqual([line.id])
    await kept.remove(open)
    expect(await prune()).toEqual({ removed: 1 })
  })
})
