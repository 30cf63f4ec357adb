import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type SlotEntry, FairSemaphore, RequestSlots } from './fair-semaphore.ts'

const WAIT_MS = 2_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function semaphoreOf(max: number, waiting = 100): FairSemaphore {
  return new FairSemaphore({
    max: () => max,
    aloneShare: 1,
    waiting: () => waiting,
    waitMs: () => WAIT_MS,
    nowMs: () => performance.now(),
  })
}

const enterAll = (slots: FairSemaphore, clients: string): SlotEntry[] =>
  clients.split('').map((client) => slots.enter(client))
const statesOf = (entries: readonly SlotEntry[]): string => entries.map(({ state }) => state).join(' ')

describe('slots that clients share', () => {
  test('a slot of a fair semaphore is taken at once while one is free', () => {
    const entry = semaphoreOf(4).enter('ann')
    expect(entry.isIn).toBe(true)
    expect(entry.decided).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an entry waits for a slot of a fair semaphore until one is released', async () => {
    const slots = semaphoreOf(1)
    const [first, second] = enterAll(slots, 'ab') as [SlotEntry, SlotEntry]
    expect(second.state).toBe('waiting')
    first.leave()
    await second.decided
    expect(second.isIn).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an entry waits for a slot of a fair semaphore no longer than the timeout', async () => {
    const slots = semaphoreOf(1)
    const [first, second] = enterAll(slots, 'ab') as [SlotEntry, SlotEntry]
    await vi.advanceTimersByTimeAsync(WAIT_MS - 1)
    expect(second.state).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    await second.decided
    expect(second.state).toBe('out')
    first.leave()
    expect([slots.taken, slots.waiting]).toEqual([0, 0])
  })

  test('released slots of a fair semaphore go to waiting clients in turn, not to the client with the most entries', () => {
    const slots = semaphoreOf(1)
    const [holder, ...waiting] = enterAll(slots, 'zaaaabbc') as [SlotEntry, ...SlotEntry[]]
    const order: string[] = []
    for (let next: SlotEntry | undefined = holder; next; ) {
      next.leave()
      next = waiting.find(({ isIn }) => isIn)
      if (next) order.push(String(next.client))
    }
    expect(order.join('')).toBe('abcabaa')
  })

  test('a released slot of a fair semaphore goes to the oldest waiting entry of a client', () => {
    const slots = semaphoreOf(1)
    const [holder, ...waiting] = enterAll(slots, 'aaa') as [SlotEntry, ...SlotEntry[]]
    holder.leave()
    expect(statesOf(waiting)).toBe('in waiting')
  })

  test('slots of a fair semaphore stay free for other clients, however many entries of one client wait', () => {
    const slots = semaphoreOf(8)
    slots.enter('bob').leave()
    const greedy = enterAll(slots, 'a'.repeat(20))
    expect(greedy.filter(({ isIn }) => isIn)).toHaveLength(4)
    expect(slots.enter('bob').isIn).toBe(true)
  })

  test("one client can fill at most half of a fair semaphore's queue while another client is active", () => {
    const slots = semaphoreOf(2, 10)
    slots.enter('bob').leave()
    const greedy = enterAll(slots, 'a'.repeat(20))
    expect(statesOf(greedy.slice(0, 2))).toBe('in waiting')
    expect(slots.enter('cid').isIn).toBe(true)
    expect(slots.waiting).toBe(5)
    expect(slots.enter('bob').state).toBe('waiting')
    expect(slots.waiting).toBe(6)
  })

  test('an entry that leaves the queue of a fair semaphore releases its position', async () => {
    const slots = semaphoreOf(1)
    const [first, second, third] = enterAll(slots, 'abc') as [SlotEntry, SlotEntry, SlotEntry]
    second.leave()
    await second.decided
    expect([second.state, slots.waiting]).toEqual(['out', 1])
    first.leave()
    expect(third.isIn).toBe(true)
  })
})

test('a fair semaphore never exceeds its maximum, lets no client wait while a slot is free, and gets all slots back', () => {
  const step = fc.record({ client: fc.nat(3), leaves: fc.boolean(), which: fc.nat(30), passMs: fc.nat(900) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 12 }), (steps, max) => {
      const slots = semaphoreOf(max, 6)
      const entries: SlotEntry[] = []
      const count = (state: string): number => entries.filter((entry) => entry.state === state).length
      for (const { client, leaves, which, passMs } of steps) {
        vi.advanceTimersByTime(passMs)
        if (leaves) entries[which]?.leave()
        else entries.push(slots.enter(client))
        expect(slots.taken).toBe(count('in'))
        expect(slots.waiting).toBe(count('waiting'))
        expect(slots.taken).toBeLessThanOrEqual(max)
        expect(slots.waiting).toBeLessThanOrEqual(6)
        const isHere = (one: SlotEntry): boolean => one.isIn
        for (const waiting of entries.filter(({ state }) => state === 'waiting'))
          if (!entries.some((one) => isHere(one) && one.client === waiting.client))
            expect(slots.taken).toBe(max)
      }
      for (const entry of entries) entry.leave()
      expect([slots.taken, slots.waiting]).toEqual([0, 0])
    }),
  )
  expect(vi.getTimerCount()).toBe(0)
})

test.each([
  [8_000, 64],
  [16, 8],
])(
  'with a maximum of %i calls at a time, live streams may use %i of the slots for account requests',
  (maxCalls, streams) => {
    expect(new RequestSlots(() => maxCalls, performance.now.bind(performance)).streams).toBe(streams)
  },
)
