import { expect, test } from 'vitest'
import { characterCount } from './text-length.ts'

test.each([
  ['', 0],
  ['abc', 3],
  ['日本語', 3],
  ['e\u0301', 1],
  ['👩‍👩‍👧‍👦', 1],
  ['🇩🇪🇫🇷', 2],
])('characters of a text are counted as a person does: %j has %i', (text, count) => {
  expect(characterCount(text)).toBe(count)
})
