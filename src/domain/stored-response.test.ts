import { expect, test } from 'vitest'
import { countStreamedTokens, addStreamedPart } from './stored-response.ts'

test('the tokens of a response part that was streamed twice are counted once', () => {
  const part = { first: 0, last: 99, tokens: 90 }
  expect(countStreamedTokens([part])).toBe(90)
  expect(countStreamedTokens(addStreamedPart([part], part))).toBe(90)
  expect(countStreamedTokens([part, { first: 20, last: 59, tokens: 40 }])).toBe(90)
})

test('the tokens of consecutive parts of a stream add up, in whichever order the parts are reported', () => {
  const parts = [
    { first: 100, last: 199, tokens: 50 },
    { first: 0, last: 99, tokens: 90 },
  ]
  expect(countStreamedTokens(parts)).toBe(140)
  expect(countStreamedTokens(parts.toReversed())).toBe(140)
})

test('a stream part that overlaps an earlier part adds only tokens for its new bytes', () => {
  expect(
    countStreamedTokens([
      { first: 0, last: 99, tokens: 100 },
      { first: 50, last: 149, tokens: 100 },
    ]),
  ).toBe(150)
})

test('of two stream parts with the same beginning only the longer one is kept', () => {
  const [short, long] = [
    { first: 0, last: 9, tokens: 5 },
    { first: 0, last: 99, tokens: 60 },
  ]
  expect(addStreamedPart([short], long)).toEqual([long])
  expect(addStreamedPart([long], short)).toEqual([long])
})

test('at most 1,000 parts of a stream are kept, and the tokens of further parts are still counted', () => {
  const all = Array.from({ length: 1_500 }, (_, n) => ({ first: 2 * n, last: 2 * n, tokens: 1 }))
  const kept = all.reduce(addStreamedPart, [] as ReturnType<typeof addStreamedPart>)
  expect(kept).toHaveLength(1_000)
  expect(countStreamedTokens(kept)).toBe(1_500)
})
