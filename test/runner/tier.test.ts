import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byTier, lawRuns, pairsByDay } from './tier.ts'

const pairsOf = (rows: readonly (readonly (number | boolean)[])[]): Set<string> =>
  new Set(
    rows.flatMap((row) =>
      row.flatMap((one, at) => row.slice(at + 1).map((other, by) => `${at}${one} ${at + 1 + by}${other}`)),
    ),
  )

test('two values of one row of a matrix also meet in a row that is tried', () => {
  const row = fc.tuple(fc.nat(5), fc.nat(4), fc.nat(3), fc.boolean())
  fc.assert(
    fc.property(fc.array(row), (rows) => {
      const tried = pairsByDay(rows)
      expect(rows).toEqual(expect.arrayContaining([...tried]))
      expect(pairsOf(tried)).toEqual(pairsOf(rows))
    }),
    { numRuns: lawRuns(1_000) },
  )
})

test('by day a few rows of a whole matrix are tried', () => {
  const values = [...Array(10).keys()]
  const rows = values.flatMap((a) => values.flatMap((b) => values.map((c) => [a, b, c] as const)))
  // A hundred rows have the pairs of the first two columns.
  expect(pairsByDay(rows).length).toBeLessThanOrEqual(byTier(200, rows.length))
})
