import { describe, expect, test } from 'vitest'
import { environmentProxies } from './environment-proxies.ts'

const proxyOf = (address: string, except = '') =>
  environmentProxies({ http: 'http://plain.test:1', https: 'http://secure.test:2', except })(new URL(address))

describe('a proxy of the environment', () => {
  test('is that of the scheme of the address', () => {
    expect(proxyOf('http://api.example')).toBe('http://plain.test:1')
    expect(proxyOf('https://api.example:8443/v1')).toBe('http://secure.test:2')
    const onlyHttp = environmentProxies({ http: 'http://plain.test:1', https: undefined, except: '' })
    expect(onlyHttp(new URL('https://api.example'))).toBeUndefined()
  })

  test.each([
    'http://localhost:8080',
    'http://a.localhost',
    'http://127.0.0.1',
    'http://127.9.9.9',
    'http://[::1]:1',
    'http://10.1.2.3',
    'http://172.31.0.1',
    'http://192.168.1.1',
    'http://100.64.0.1',
    'http://169.254.1.1',
    'http://[fd12::1]',
    'http://[fe80::1]',
    'http://[::ffff:10.1.2.3]',
    'http://0x0a.1.2.3',
  ])('is not used for loopback and private addresses: %s', (address) => {
    expect(proxyOf(address)).toBeUndefined()
  })

  test.each(['http://172.32.0.1', 'http://8.8.8.8', 'http://[2001:db8::1]', 'http://localhost.example'])(
    'is used for all others: %s',
    (address) => expect(proxyOf(address)).toBeDefined(),
  )

  // As curl's page of NO_PROXY has it.
  test.each([
    ['*', 'https://api.example', true],
    ['example', 'https://example', true],
    ['example', 'https://api.example', true],
    ['example', 'https://myexample', false],
    ['.example', 'https://api.example', true],
    ['.example', 'https://example', true],
    ['example.', 'https://api.example', true],
    ['a.test, API.example', 'https://api.example', true],
    ['a.test API.example', 'https://api.example', true],
    ['api.example', 'https://api.example:8443', true],
    ['api.example', 'https://example', false],
    ['8.8.8.8', 'https://8.8.8.8', true],
    ['8.8.8.0/24', 'https://8.8.8.8', true],
    ['8.8.0.0/24', 'https://8.8.8.8', false],
    ['2001:db8::/32', 'https://[2001:db8::1]', true],
    ['[2001:db8::1]', 'https://[2001:db8::1]', true],
    ['8.8', 'https://8.8.8.8', false],
    ['*.example', 'https://api.example', false],
    ['', 'https://api.example', false],
  ])('is not used for what NO_PROXY names: %j, %s', (except, address, isDirect) => {
    expect(proxyOf(address, except) === undefined).toBe(isDirect)
  })
})
