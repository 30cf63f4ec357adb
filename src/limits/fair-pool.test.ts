import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FairPool, TwoLevelPool } from './fair-pool.ts'

const MINUTE_MS = 60_000

function pool(max: number, alone = 1): { pool: FairPool; clock: { ms: number } } {
  const clock = { ms: 0 }
  return { pool: new FairPool({ max: () => max, aloneShare: alone, nowMs: () => clock.ms }), clock }
}

/** Takes units until refused; returns their number. */
function takeAll(from: FairPool, client: string): number {
  let taken = 0
  while (from.take(client, 1)) taken += 1
  return taken
}

describe('a pool that clients share', () => {
  test('a client can take a whole shared pool if no other client has requested from it within a minute', () => {
    const { pool: slots } = pool(10)
    expect(takeAll(slots, 'ann')).toBe(10)
  })

  test('a single client cannot take the part of a shared pool that is configured to stay free', () => {
    const { pool: slots } = pool(16, 0.5)
    expect(takeAll(slots, 'ann')).toBe(8)
  })

  test.each([10, 9, 2])(
    'a client can take at most half of a shared pool of %i if another client requested from it within a minute',
    (max) => {
      const { pool: slots, clock } = pool(max)
      slots.take('bob', 1)
      slots.give('bob', 1)
      clock.ms += MINUTE_MS
      expect(takeAll(slots, 'ann')).toBe(Math.floor(max / 2))
      clock.ms += 1
      expect(takeAll(slots, 'ann')).toBe(Math.ceil(max / 2))
    },
  )

  test('each new client of a shared pool can take half of what the clients before it left free', () => {
    const { pool: slots } = pool(16)
    slots.take('bob', 1)
    slots.give('bob', 1)
    expect(['a', 'b', 'c', 'd'].map((greedy) => takeAll(slots, greedy))).toEqual([8, 4, 2, 1])
    expect(slots.take('late', 1)).toBe(true)
  })

  test('three clients that take from a shared pool of 40 in turn end with ten each, so that ten stay free for a new client', () => {
    const { pool: slots } = pool(40)
    for (let round = 0; round < 40; round++) for (const client of ['a', 'b', 'c']) slots.take(client, 1)
    expect(['a', 'b', 'c'].map((client) => slots.usedBy(client))).toEqual([10, 10, 10])
  })

  test('a client that holds nothing can take the last unit of a shared pool', () => {
    const { pool: slots } = pool(1)
    slots.take('bob', 1)
    slots.give('bob', 1)
    expect(slots.take('ann', 1)).toBe(true)
    expect(slots.take('bob', 1)).toBe(false)
  })

  test('a shared pool that refuses an amount takes none of it', () => {
    const { pool: bytes } = pool(100)
    expect(bytes.take('ann', 101)).toBe(false)
    expect(bytes.held).toBe(0)
    expect(bytes.take('ann', 100)).toBe(true)
  })
})

/** A step of one of four clients: a request after a pause, or the return of its oldest amount. */
const step = fc.record({
  client: fc.nat(3),
  act: fc.constantFrom('take', 'take', 'give'),
  amount: fc.integer({ min: 1, max: 40 }),
  passMs: fc.constantFrom(0, 10, 30_000, 61_000),
})

describe('a shared pool in any sequence of requests', () => {
  const play = (
    steps: readonly (typeof step extends fc.Arbitrary<infer One> ? One : never)[],
    check: (shared: FairPool, taken: boolean, client: number, amount: number, aloneForMs: number) => void,
    max = 100,
  ): void => {
    const { pool: shared, clock } = pool(max, 0.75)
    const held: number[][] = [[], [], [], []]
    const askedMs = held.map(() => Number.NEGATIVE_INFINITY)
    for (const { client, act, amount, passMs } of steps) {
      clock.ms += passMs
      const own = held[client] as number[]
      if (act === 'give') {
        const back = own.shift()
        if (back !== undefined) shared.give(client, back)
      } else {
        askedMs[client] = clock.ms
        const others = askedMs.filter((_, other) => other !== client)
        const isTaken = shared.take(client, amount)
        if (isTaken) own.push(amount)
        check(shared, isTaken, client, amount, clock.ms - Math.max(...others))
      }
      const sums = held.map((amounts) => amounts.reduce((sum, one) => sum + one, 0))
      expect(sums.map((_, one) => shared.usedBy(one))).toEqual(sums)
      expect(shared.held).toBe(sums.reduce((sum, one) => sum + one, 0))
    }
    for (const [client, amounts] of held.entries()) for (const one of amounts) shared.give(client, one)
    expect([shared.held, shared.clients]).toEqual([0, 0])
  }

  test('the clients of a shared pool never hold more than its total, and everything that they took is returned', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) =>
        play(steps, (shared) => expect(shared.held).toBeLessThanOrEqual(100)),
      ),
    )
  })

  test('no client exceeds its share of a pool while another is active, except with its first amount', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) =>
        play(steps, (shared, isTaken, client, amount, aloneForMs) => {
          const own = shared.usedBy(client)
          if (!isTaken || own === amount) return
          expect(own).toBeLessThanOrEqual(aloneForMs <= MINUTE_MS ? 100 - shared.held : 75)
        }),
      ),
    )
  })

  test('a client that holds nothing of a pool gets any amount that the pool has left', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        let before = 0
        play(steps, (shared, isTaken, client, amount) => {
          before = isTaken ? shared.held - amount : shared.held
          const hadNothing = shared.usedBy(client) === (isTaken ? amount : 0)
          if (hadNothing) expect(isTaken).toBe(before + amount <= 100)
        })
      }),
    )
  })
})

const MAX = 192

function twoLevelPool() {
  const clock = { ms: 0 }
  const shares = new TwoLevelPool({ max: () => MAX, aloneShare: 7 / 8, nowMs: () => clock.ms })
  /** Takes, one by one, everything that a key may have. */
  const fill = (client: number, key: number): number => {
    let taken = 0
    while (shares.take({ client, key }, 1)) taken += 1
    return taken
  }
  return { shares, fill, clock }
}

test("many keys of one user together take at most the user's share of a shared pool", () => {
  const { shares, fill } = twoLevelPool()
  shares.take({ client: 2, key: 1 }, 1)
  for (let key = 1; key <= 40; key += 1) fill(1, key)
  expect(shares.usedBy(1)).toBeLessThanOrEqual(MAX / 2)
  fill(2, 1)
  expect(shares.usedBy(2)).toBe(MAX / 4)
})

test('a key takes at most half of what its user may still take from a shared pool while another key is active', () => {
  const { shares, fill } = twoLevelPool()
  shares.take({ client: 1, key: 2 }, 1)
  // The user may have 168, and the other key has 1.
  expect(fill(1, 1)).toBe(83)
  // Half of what remains, together with the one that it had.
  expect(fill(1, 2)).toBe(42 - 1)
})

test("the only active key of a user can take the user's whole share of a shared pool", () => {
  const { shares, fill } = twoLevelPool()
  expect(fill(1, 1)).toBe((MAX * 7) / 8)
  expect(shares.take({ client: 2, key: 2 }, MAX / 8)).toBe(true)
})

test('a key that used a shared pool counts as active for a minute, even if its user holds nothing meanwhile', () => {
  const { shares, fill, clock } = twoLevelPool()
  shares.take({ client: 1, key: 2 }, 1)
  shares.give({ client: 1, key: 2 }, 1)
  clock.ms = 59_000
  expect(fill(1, 1)).toBe(84)
})
