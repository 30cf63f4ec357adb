import { expect, test } from 'vitest'
import { TwoLevelPool } from './two-level-pool.ts'

const MAX = 192

function pool() {
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

test('many keys of one user together have at most what the user may have', () => {
  const { shares, fill } = pool()
  shares.take({ client: 2, key: 1 }, 1)
  for (let key = 1; key <= 40; key += 1) fill(1, key)
  expect(shares.heldBy(1)).toBeLessThanOrEqual(MAX / 2)
  fill(2, 1)
  expect(shares.heldBy(2)).toBe(MAX / 4)
})

test('the keys of one user leave each other as much as they have', () => {
  const { shares, fill } = pool()
  shares.take({ client: 1, key: 2 }, 1)
  // The user may have 168, and the other key has 1.
  expect(fill(1, 1)).toBe(83)
  // Half of what remains, together with the one that it had.
  expect(fill(1, 2)).toBe(42 - 1)
})

test('a key that is alone has all that its user may have', () => {
  const { shares, fill } = pool()
  expect(fill(1, 1)).toBe((MAX * 7) / 8)
  expect(shares.take({ client: 2, key: 2 }, MAX / 8)).toBe(true)
})

test('a key counts as active for a minute, even if its user holds nothing meanwhile', () => {
  const { shares, fill, clock } = pool()
  shares.take({ client: 1, key: 2 }, 1)
  shares.give({ client: 1, key: 2 }, 1)
  clock.ms = 59_000
  expect(fill(1, 1)).toBe(84)
})
