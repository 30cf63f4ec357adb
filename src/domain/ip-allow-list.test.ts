import { describe, expect, test } from 'vitest'
import { allowedAddresses, isAddressRange, parseAddresses } from './ip-allow-list.ts'

describe('an allow-list', () => {
  test.each([null, '', '  \n \n'])('without entries (%j) lets everybody in', (list) => {
    expect(allowedAddresses(list)('192.0.2.1')).toBe(true)
  })

  test.each([
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['192.0.2.0/24\n2001:db8::/32', '192.0.2.77', true],
    ['192.0.2.0/24\n2001:db8::/32', '2001:db8:1::5', true],
    ['192.0.2.0/24\n2001:db8::/32', '2001:db9::5', false],
    ['::1', '0:0:0:0:0:0:0:1', true],
    ['192.0.2.0/24', '::ffff:192.0.2.9', true],
    ['0.0.0.0/0', '203.0.113.5', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    [' 192.0.2.1 \r\n', '192.0.2.1', true],
  ])('%j and %s: %s', (list, address, allowed) => {
    expect(allowedAddresses(list)(address)).toBe(allowed)
  })

  test.each([
    'somewhere',
    '192.0.2.1\nrubbish',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.1/24/5',
    'fe80::1%eth0',
  ])('with a line that cannot be read (%j) lets nobody in', (list) => {
    expect(allowedAddresses(list)('192.0.2.1')).toBe(false)
    expect(parseAddresses(list.split('\n'))).toBeUndefined()
  })

  test('never lets in what is no address', () => {
    expect(allowedAddresses('0.0.0.0/0')('')).toBe(false)
    expect(allowedAddresses('0.0.0.0/0')('localhost')).toBe(false)
  })
})

test.each([
  '10.0.0.1',
  '10.0.0.0/8',
  '0.0.0.0/0',
  '192.168.1.7/32',
  '::1',
  '2001:db8::/32',
  '::/0',
  '::ffff:10.0.0.1/128',
])('%s is an address or CIDR', (text) => expect(isAddressRange(text)).toBe(true))

test.each([
  '',
  '10.0.0',
  '10.0.0.256',
  '10.0.0.0/33',
  '10.0.0.0/08',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  '::/129',
  'fe80::1%eth0',
  'localhost',
  '010.0.0.1',
  ' 10.0.0.1',
])('"%s" is no address or CIDR', (text) => expect(isAddressRange(text)).toBe(false))
