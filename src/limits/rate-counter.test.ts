import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { collectAll } from '../../test/fixtures/collect-young.ts'
import { SharedWindow } from '../../test/fixtures/shared-window.ts'
import { type PermitPeers, type PermitRequest, peersWithoutExchange } from './peers.ts'
import { type CountedLimit, LocalRateCounter, SubjectTable } from './rate-counter.ts'
import { SharedRateCounter } from './shared-rate-counter.ts'

class TestEntry {
  untilMs = Number.POSITIVE_INFINITY
  isIdle(nowMs: number): boolean {
    return nowMs >= this.untilMs
  }
}

describe('a client table', () => {
  test('a full table of rate-limited clients keeps the entry of a client, however many new clients come', () => {
    const table = new SubjectTable(() => new TestEntry(), 10, 4)
    const first = table.getOrCreate('first', 0)
    for (let i = 0; i < 1000; i++) table.getOrCreate(`stranger ${i}`, 0)
    expect(table.get('first')).toBe(first)
    expect(table.getOrCreate('first', 0)).toBe(first)
    expect(table.size).toBeLessThanOrEqual(10 + 4)
  })

  test('a full table of rate-limited clients assigns each further client to a shared entry, always to the same one', () => {
    const table = new SubjectTable(() => new TestEntry(), 10, 4)
    for (let i = 0; i < 10; i++) table.getOrCreate(i, 0)
    const late = Array.from({ length: 100 }, (_, i) => table.getOrCreate(`late ${i}`, 0))
    expect(new Set(late).size).toBe(4)
    expect(Array.from({ length: 100 }, (_, i) => table.getOrCreate(`late ${i}`, 0))).toEqual(late)
    expect(table.get('late 7')).toBe(late[7])
  })

  test('a table of rate-limited clients gives new clients their own entry again when other entries are idle', () => {
    const table = new SubjectTable(() => new TestEntry(), 2, 1)
    const first = table.getOrCreate('a', 0)
    table.getOrCreate('b', 0)
    first.untilMs = 5
    expect(table.getOrCreate('c', 5)).not.toBe(table.getOrCreate('d', 5))
    expect(table.get('a')).toBe(table.get('d'))
  })
})

test('a full table of rate-limited clients finds an idle entry anywhere, by checking a few for each new client', () => {
  const table = new SubjectTable(() => new TestEntry(), 1_000, 1)
  for (let i = 0; i < 1_000; i++) table.getOrCreate(i, 0)
  for (const i of [900, 901]) table.getOrCreate(i, 0).untilMs = 0
  const shared = table.getOrCreate('early', 0)
  const late = Array.from({ length: 100 }, (_, i) => table.getOrCreate(`late ${i}`, 0))
  expect(late.filter((entry) => entry !== shared)).toHaveLength(1)
  // Each entry is checked once before any is checked twice.
  expect(table.get(900)).toBe(shared)
  expect(table.get(901)).toBe(shared)
})

test("a flood of 60,000 new clients resets no client's rate limit count, and the number of its admitted calls is limited", () => {
  let nowMs = 0
  const counts = new LocalRateCounter(() => nowMs)
  const take = (subject: string): boolean =>
    counts.take({ name: 'login requests', subject, max: 2, windowMs: 60_000 }).allowed
  expect([take('flooder'), take('flooder'), take('flooder')]).toEqual([true, true, false])
  let through = 0
  for (let i = 0; i < 60_000; i++) if (take(`stranger ${i}`)) through += 1
  // Subjects without their own entry share 1,024 entries.
  expect(through).toBeLessThanOrEqual(50_000 + 2 * 1024)
  expect(take('flooder')).toBe(false)
  nowMs = 60_000
  expect(take('flooder')).toBe(true)
  expect(take('stranger 59999')).toBe(true)
})

test('on nodes without Redis, addresses that have not called for a window make room for new ones', async () => {
  let nowMs = 0
  const counts = new SharedRateCounter(
    peersWithoutExchange(() => 2),
    () => {},
    () => nowMs,
  )
  const take = (subject: string) =>
    counts.take({ name: 'global requests', subject, max: 1, windowMs: 60_000 })
  for (let i = 0; i < 50_000; i++) void take(`early ${i}`)
  nowMs = 60_000
  let refused = 0
  for (let i = 0; i < 10_000; i++) if (!(await take(`late ${i}`)).allowed) refused += 1
  expect(refused).toBe(0)
  await counts.close()
})

test('a window that is changed while other nodes are asked is asked for at once, and takes nothing of the new one', async () => {
  const asked: { readonly counted: CountedLimit; readonly request: PermitRequest }[] = []
  const windows = new Map<number, SharedWindow>()
  const peers: PermitPeers = {
    isReachable: true,
    isRefilling: false,
    nodes: 2,
    generation: 'one',
    async exchangePermits(counted, request) {
      asked.push({ counted, request })
      const window = windows.get(counted.windowMs) ?? new SharedWindow()
      windows.set(counted.windowMs, window)
      await setImmediate()
      return window.exchange(1_800_000_000_000, request, 2)
    },
  }
  let alone = 0
  const counts = new SharedRateCounter(
    peers,
    () => (alone += 1),
    () => 0,
  )
  const take = async (windowMs: number) =>
    counts.take({ name: 'key requests', subject: 1, max: 100, windowMs })
  const before = take(30_000)
  const after = [take(60_000), take(60_000)]
  expect((await before).allowed).toBe(true)
  expect((await Promise.all(after)).map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, 98],
    [true, 97],
  ])
  expect(alone).toBe(0)
  expect(asked.length).toBeLessThan(5)
  for (const { counted, request } of asked) expect(request.windowMs).toBe(counted.windowMs)
  await counts.close()
})

test('a call that began before the window of a limit was changed counts in the new window, and sets nothing back', async () => {
  const counts = new SharedRateCounter(
    peersWithoutExchange(() => 2),
    () => {},
    () => 0,
  )
  const limit = (windowMs: number) => ({ name: 'model tokens', subject: 'm', max: 100, windowMs })
  const isAllowed = async (windowMs: number) => (await counts.check(limit(windowMs))).allowed
  expect(await isAllowed(60_000)).toBe(true)
  expect(await isAllowed(3_600_000)).toBe(true)
  counts.add(limit(3_600_000), 40)
  expect(await isAllowed(3_600_000)).toBe(true)
  counts.add(limit(60_000), 10)
  expect(await isAllowed(3_600_000)).toBe(false)
  await counts.close()
})

test('a limit by address keeps the addresses, and not the headers that they are parts of', () => {
  const counts = new LocalRateCounter(() => 0)
  const take = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const header = Buffer.from(`${'1.1.1.1, '.repeat(1_700)}203.0.113.${i % 256}:${i}`).toString('latin1')
      const subject = header.split(', ').at(-1) ?? ''
      counts.take({ name: 'relay requests', subject, max: 1, windowMs: 60_000 })
    }
  }
  take(0, 100)
  collectAll()
  const before = process.memoryUsage().heapUsed
  take(100, 2_100)
  collectAll()
  // The headers have 30 MB.
  expect((process.memoryUsage().heapUsed - before) / 2 ** 20).toBeLessThan(8)
})
