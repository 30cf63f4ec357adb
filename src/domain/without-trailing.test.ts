import { expect, test } from 'vitest'
import { withoutTrailing } from './without-trailing.ts'

test.each([
  ['100', '0', '1'],
  ['1001', '0', '1001'],
  ['000', '0', ''],
  ['', '0', ''],
  ['/v1//', '/', '/v1'],
])('%j without %j at its end is %j', (text, letter, expected) => {
  expect(withoutTrailing(text, letter)).toBe(expected)
})
