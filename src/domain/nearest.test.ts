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
