import { expect, test } from 'vitest'
import { nearest } from './nearest.ts'

test.each([
  ['retrys', 'retries'],
  ['base_ulr', 'base_url'],
  ['Keys', 'keys'],
  ['key', 'keys'],
  ['colour', undefined],
  ['', undefined],
])('the nearest name to "%s" is %s', (name, expected) => {
  expect(nearest(name, ['retries', 'base_url', 'keys', 'protocol'])).toBe(expected)
})
