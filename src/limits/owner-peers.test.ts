import { expect, test } from 'vitest'
import { SlotsOfWorkers, PermitsOfWorkers } from './owner-peers.ts'
import { SharedRateCounter } from './shared-rate-counter.ts'
import { SharedSemaphore } from './semaphore.ts'

const NODES = ['a', 'b', 'c'] as const

/** Counters of several nodes on one table, whose exchanges take a turn of the event loop. */
function counters(owned: PermitsOfWorkers, nowMs: () => number): readonly SharedRateCounter[] {
  return NODES.map(
    () =>
      new SharedRateCounter(
        {
          isReachable: true,
          isRefilling: false,
          generation: 'owner',
          nodes: NODES.length,
          exchangePermits: async (counted, request) => owned.exchange(counted, request, NODES.length),
        },
        () => {},
        nowMs,
      ),
  )
}

test('of simultaneous calls to several processes exactly as many as the rate limit allows are admitted', async () => {
  let now = 1_000_000
  const owned = new PermitsOfWorkers(() => now)
  const nodes = counters(owned, () => now)
  const counted = { name: 'key requests', subject: 1, max: 50, windowMs: 60_000 }
  const burst = async (): Promise<number> => {
    const verdicts = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => nodes[index % NODES.length]?.take(counted)),
    )
    return verdicts.filter((verdict) => verdict?.allowed).length
  }
  expect(await burst()).toBe(50)
  expect(await burst()).toBe(0)
  // Unused permits count until the window after their expiry has passed, because they might have been used.
  now += 60_000 + 15_000
  expect(await burst()).toBe(50)
  await Promise.all(nodes.map((node) => node.close()))
})

test('tokens that one worker process counts against a rate limit make another process refuse calls', async () => {
  let now = 1_000_000
  const owned = new PermitsOfWorkers(() => now)
  const [a, b] = counters(owned, () => now)
  const counted = { name: 'key tokens', subject: 1, max: 100, windowMs: 60_000 }
  a?.add(counted, 100)
  await a?.close()
  now += 2_000
  expect((await b?.check(counted))?.allowed).toBe(false)
  await b?.close()
})

test('slots for parallel calls are counted over all processes, and those of a lost process are free at once', async () => {
  const slots = new SlotsOfWorkers()
  const [a, b] = NODES.map(
    (node) =>
      new SharedSemaphore({
        isReachable: true,
        isRefilling: false,
        generation: 'owner',
        refreshMs: 20_000,
        nodes: NODES.length,
        exchangeSlots: async (subject, report) => slots.exchange(node, subject, report),
      }),
  )
  if (!a || !b) throw new Error('no nodes')
  const limit = { subject: 'key:1', max: 5 }
  const taken = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => (index % 2 === 0 ? a : b).take(limit)),
  )
  expect(taken.filter(Boolean)).toHaveLength(5)
  expect(await b.take(limit)).toBe(false)
  slots.drop('a')
  expect(await b.take(limit)).toBe(true)
  await b.close()
})
