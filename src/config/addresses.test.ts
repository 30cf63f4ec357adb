import { expect, test } from 'vitest'
import { isAddressRange, readBaseUrl } from './addresses.ts'

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

test.each([
  ['https://api.example.com/v1', 'https://api.example.com/v1'],
  ['https://api.example.com/v1/', 'https://api.example.com/v1'],
  ['https://api.example.com/v1//', 'https://api.example.com/v1'],
  ['https://api.example.com', 'https://api.example.com'],
  ['HTTP://API.Example.com:8080/V1/', 'http://api.example.com:8080/V1'],
  ['http://[::1]:4000/v1beta/openai', 'http://[::1]:4000/v1beta/openai'],
])('the base URL %s is taken as %s', (text, url) => {
  expect(readBaseUrl(text)).toEqual({ url })
})

test.each([
  '',
  'api.example.com',
  '//api.example.com',
  'file:///v1',
  'https:/api.example.com',
  'https://',
  'https://a b',
  'https:\\\\a',
])('"%s" is no base URL', (text) => expect(readBaseUrl(text)).toHaveProperty('expected'))
