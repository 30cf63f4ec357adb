import { expect, test } from 'vitest'
import { findNearest } from './nearest.ts'

test.each([
  ['retrys', 'retries'],
  ['base_ulr', 'base_url'],
  ['Keys', 'keys'],
  ['key', 'keys'],
  ['colour', undefined],
  ['', undefined],
])('the nearest name to "%s" is %s', (name, expected) => {
  expect(findNearest(name, ['retries', 'base_url', 'keys', 'protocol'])).toBe(expected)
})

test('the length of a name counts as its letters do', () => {
  // Three letters more than `keys`, of which a third of seven may differ: two.
  expect(findNearest('keysabc', ['keys'])).toBeUndefined()
  expect(findNearest('keysab', ['keys'])).toBe('keys')
  expect(findNearest('', ['ab', 'abc'])).toBe('ab')
})
