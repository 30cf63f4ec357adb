import { expect, test } from 'vitest'
import { withoutTrailing } from './without-trailing.ts'

test.each([
  ['100', '0', '1'],
  ['1001', '0', '1001'],
  ['000', '0', ''],
  ['', '0', ''],
  ['/v1//', '/', '/v1'],
])('characters at the end of a text are removed: %j without %j is %j', (text, letter, expected) => {
  expect(withoutTrailing(text, letter)).toBe(expected)
})
