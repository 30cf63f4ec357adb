import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exactNumber } from '@sluice/wire/json/exact-json'
import { jsonPieces } from './send-json.ts'

test('the pieces of a JSON text together are what is written at once', () => {
  const leaf = fc.oneof(
    fc.constant(undefined),
    fc.constant(Symbol('x')),
    fc.date(),
    fc.constant(exactNumber('9007199254740993.50')),
    fc.constant(() => 1),
  )
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 7 },
      fc.jsonValue(),
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
    ),
  })).value
  fc.assert(
    fc.property(value, (data) => {
      expect([...jsonPieces({ data })].join('')).toBe(JSON.stringify({ data }))
    }),
  )
})

test('each element of a list on a page is a separate piece', () => {
  const items = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(1_000) }))
  const longest = Math.max(...[...jsonPieces({ data: { items } })].map(({ length }) => length))
  expect(longest).toBeLessThan(1_100)
})
