import { expect, test } from 'vitest'
import { parseProxy } from './parse-proxy.ts'

test.each([
  ['http://proxy.example:3128', 'http', 'proxy.example', 3128, undefined],
  ['http://proxy.example', 'http', 'proxy.example', 80, undefined],
  ['http://proxy.example:80/', 'http', 'proxy.example', 80, undefined],
  ['socks5://proxy.example', 'socks5', 'proxy.example', 1080, undefined],
  ['socks5h://proxy.example:80', 'socks5', 'proxy.example', 80, undefined],
  ['SOCKS5://a%3A:b%40@[::1]:9', 'socks5', '::1', 9, { user: 'a:', password: 'b@' }],
] as const)('a valid proxy address is read: %s', (text, kind, host, port, credentials) => {
  expect(parseProxy(text)).toEqual({ kind, host, port, credentials })
})

test.each([
  'https://proxy.example',
  'proxy.example:3128',
  'http://proxy.example/path',
  'http://proxy.example?x',
  'socks4://proxy.example',
  'http://%ff@proxy.example',
  'http://',
])('an invalid proxy address is refused: %s', (text) => {
  expect(parseProxy(text)).toBeUndefined()
})
