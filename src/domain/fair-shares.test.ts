import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHash } from 'node:crypto'
import { lawRuns } from '../../test/runner/tier.ts'
import { DigestTable } from './digest-table.ts'
import { OwnedEntries } from './owned-entries.ts'

const keyOf = (owner: number, name: number): Buffer =>
  createHash('sha256').update(`${owner} ${name}`).digest()

/** A table of digests or of named values, in which owners store entries. */
interface Table {
  put(owner: number, name: number, most: number): void
  has(owner: number, name: number): boolean
  readonly size: number
}

const TABLES: readonly (readonly [string, () => Table])[] = [
  [
    'digests',
    () => {
      const table = new DigestTable()
      return {
        put: (owner, name, most) => table.put(owner, keyOf(owner, name), 1, 1_000_000, 0, most),
        has: (owner, name) => table.get(keyOf(owner, name), 0) !== undefined,
        get size() {
          return table.size
        },
      }
    },
  ],
  [
    'named values',
    () => {
      const table = new OwnedEntries<number, true>()
      return {
        put: (owner, name, most) => table.set(owner, String(name), true, most),
        has: (owner, name) => table.get(owner, String(name)) === true,
        get size() {
          return table.size
        },
      }
    },
  ],
]

describe.each(TABLES)('a bounded table of %s', (_, open) => {
  test('one owner that fills it pushes out no entry of owners within their shares', () => {
    const table = open()
    for (let owner = 1; owner <= 9; owner++) for (let n = 0; n < 10; n++) table.put(owner, n, 100)
    for (let n = 0; n < 5_000; n++) table.put(0, n, 100)
    for (let owner = 1; owner <= 9; owner++)
      for (let n = 0; n < 10; n++) expect(table.has(owner, n), `${owner} ${n}`).toBe(true)
    for (let n = 4_990; n < 5_000; n++) expect(table.has(0, n)).toBe(true)
    expect(table.size).toBe(100)
  })

  test('an owner alone has all of it, and gives it to others only up to their shares', () => {
    const table = open()
    for (let n = 0; n < 100; n++) table.put(0, n, 100)
    for (let n = 0; n < 80; n++) table.put(1, n, 100)
    const countOf = (owner: number): number =>
      Array.from({ length: 100 }, (__, n) => n).filter((n) => table.has(owner, n)).length
    expect([countOf(0), countOf(1)]).toEqual([50, 50])
    // The newest are kept.
    expect([table.has(0, 99), table.has(0, 49), table.has(1, 79), table.has(1, 29)]).toEqual([
      true,
      false,
      true,
      false,
    ])
  })

  test('of any sequence of calls, an owner with more than a fair share loses only entries of its own', () => {
    const step = fc.record({ owner: fc.nat(4), name: fc.nat(12) })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 120 }), (most, steps) => {
        const table = open()
        let known: { owner: number; name: number }[] = []
        for (const { owner, name } of steps) {
          const isKnown = known.some((one) => one.owner === owner && one.name === name)
          const owners = new Set([...known.map((one) => one.owner), owner])
          const own = known.filter((one) => one.owner === owner).length
          table.put(owner, name, most)
          const others = known.filter((one) => one.owner !== owner || one.name !== name)
          const lost = others.filter((one) => !table.has(one.owner, one.name))
          expect(table.has(owner, name)).toBe(true)
          expect(lost.length).toBeLessThanOrEqual(isKnown ? 0 : 1)
          for (const one of lost) {
            const ofLoser = known.filter((other) => other.owner === one.owner)
            if (own > 0 && (own + 1) * owners.size > most) expect(one.owner).toBe(owner)
            else expect(ofLoser.length * owners.size).toBeGreaterThanOrEqual(most)
            // The oldest of its owner gives way.
            expect(ofLoser.find((other) => !(other.owner === owner && other.name === name))).toBe(one)
          }
          known = [...others.filter((one) => !lost.includes(one)), { owner, name }]
          expect(table.size).toBe(known.length)
          expect(known.length).toBeLessThanOrEqual(most)
        }
      }),
      { numRuns: lawRuns(1_000) },
    )
  })
})
