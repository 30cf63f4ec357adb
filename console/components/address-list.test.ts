import { expect, test } from 'vitest'
import { findInvalidAddress } from './address-list.ts'

test.each(['', '10.0.0.1', '10.0.0.0/8\n\n192.168.1.1', '::1', '2001:db8::/32', '::ffff:10.0.0.1, 10.0.0.2'])(
  'an address list in the console accepts IP addresses and ranges, separated by commas or lines: %j',
  (text) => {
    expect(findInvalidAddress(text)).toBeUndefined()
  },
)

test.each([
  ['300.1.1.1', '300.1.1.1'],
  ['10.0.0.1\n10.0.0.0/33', '10.0.0.0/33'],
  ['2001:db8::/129', '2001:db8::/129'],
  ['example.com', 'example.com'],
  ['1.2.3', '1.2.3'],
])('the first invalid entry of an address list is reported: in %j, %s', (text, bad) => {
  expect(findInvalidAddress(text)).toBe(bad)
})
