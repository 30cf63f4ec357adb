import { expect, test } from 'vitest'
import { streamedTokens, withPart } from './stored-response.ts'

test('a part that was streamed twice counts once', () => {
  const part = { first: 0, last: 99, tokens: 90 }
  expect(streamedTokens([part])).toBe(90)
  expect(streamedTokens(withPart([part], part))).toBe(90)
  expect(streamedTokens([part, { first: 20, last: 59, tokens: 40 }])).toBe(90)
})

test('consecutive parts of a stream add up, in any order', () => {
  const parts = [
    { first: 100, last: 199, tokens: 50 },
    { first: 0, last: 99, tokens: 90 },
  ]
  expect(streamedTokens(parts)).toBe(140)
  expect(streamedTokens(parts.toReversed())).toBe(140)
})

test('of an overlapping part only the new bytes count', () => {
  expect(
    streamedTokens([
      { first: 0, last: 99, tokens: 100 },
      { first: 50, last: 149, tokens: 100 },
    ]),
  ).toBe(150)
})

test('of two parts with the same beginning the longer one counts', () => {
  const [short, long] = [
    { first: 0, last: 9, tokens: 5 },
    { first: 0, last: 99, tokens: 60 },
  ]
  expect(withPart([short], long)).toEqual([long])
  expect(withPart([long], short)).toEqual([long])
})

test('the number of parts is limited, and no part is lost', () => {
  const all = Array.from({ length: 1_500 }, (_, n) => ({ first: 2 * n, last: 2 * n, tokens: 1 }))
  const kept = all.reduce(withPart, [] as ReturnType<typeof withPart>)
  expect(kept).toHaveLength(1_000)
  expect(streamedTokens(kept)).toBe(1_500)
})
