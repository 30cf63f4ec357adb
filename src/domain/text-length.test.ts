import { expect, test } from 'vitest'
import { characterCount } from './text-length.ts'

test.each([
  ['', 0],
  ['abc', 3],
  ['日本語', 3],
  ['e\u0301', 1],
  ['👩‍👩‍👧‍👦', 1],
  ['🇩🇪🇫🇷', 2],
])('%j has %i characters', (text, count) => {
  expect(characterCount(text)).toBe(count)
})
