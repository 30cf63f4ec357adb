import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isMetadataAddress, pointsToMetadataAddress } from './metadata-address.ts'

describe('the address of a metadata service', () => {
  test.each([
    '169.254.169.254',
    '169.254.0.0',
    '169.254.170.2',
    '169.254.255.255',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd00:0ec2:0:0:0:0:0:254',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::ffff:6464:64c8',
    '::a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::168.63.129.16',
    '2002:a9fe:a9fe::1',
    '::ffff:0:169.254.169.254',
    'fe80::a9fe:a9fe%eth0',
    'fe80::6464:64c8',
    // Teredo: the address of the server, and the inverted one of the client.
    '2001:0:a9fe:a9fe::1',
    '2001::5601:5601',
    '2001:0:4136:e378:8000:63bf:5601:5601',
    // ISATAP in any network.
    'fe80::5efe:169.254.169.254',
    'fe80::200:5efe:a9fe:a9fe',
    '2001:db8::5efe:a9fe:a9fe',
    '2001:db8:1:2:200:5efe:168.63.129.16',
    // The local prefix of NAT64 with each length.
    '64:ff9b:1::a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    '64:ff9b:1:12a9:fe:a9fe::',
    '64:ff9b:1:1234:a9:fea9:fe00:0',
    '64:ff9b:1:1:2:3:a9fe:a9fe',
  ])('the address of a metadata service is recognized: %s', (address) => {
    expect(isMetadataAddress(address)).toBe(true)
  })

  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '192.168.1.10',
    '169.253.255.255',
    '169.255.0.0',
    '168.63.129.17',
    '100.100.100.201',
    '192.0.0.193',
    '::1',
    '::ffff:10.0.0.1',
    'fd00::1',
    'fd00:ec3::254',
    'fe80::1%eth0',
    '64:ff9b::10.0.0.1',
    '2002:a9ff::',
    '2001:0:a00:1::f5ff:fffe',
    '2001:db8::5efe:10.0.0.1',
    '2001:db8:a9fe:a9fe::1',
    '2001:1:a9fe:a9fe::1',
    'fd00::a9fe:a9fe',
    'localhost',
    '',
  ])('an address of no metadata service is recognized as such: %j', (address) => {
    expect(isMetadataAddress(address)).toBe(false)
  })
})

describe('a URL of a metadata service', () => {
  test.each([
    'http://169.254.169.254/v1',
    'https://169.254.169.254:8443',
    'http://169.254.169.254./v1',
    'http://2852039166/v1',
    'http://0xa9fea9fe/v1',
    'http://0251.0376.0251.0376/v1',
    'http://0xa9.254.0251.254/v1',
    'http://169.254.43518/v1',
    'http://169.16689662/v1',
    'http://１６９.２５４.１６９.２５４/v1',
    'http://168.63.129.16',
    'http://[fd00:ec2::254]/v1',
    'http://[::ffff:169.254.169.254]/v1',
    'http://[0:0:0:0:0:ffff:a9fe:a9fe]:80/v1',
    'http://%31%36%39.254.169.254/v1',
    'socks5://169.254.169.254:1080',
    'socks5://169.254.169.254.:1080',
    'socks5://0xa9fea9fe',
    'socks5h://2852039166:9',
    'SOCKS5://user:password@0251.0376.0251.0376:9',
    'socks5://%31%36%39.254.169.254',
    'socks5://169。254。169。254',
    'socks5://１６９．２５４．１６９．２５４',
    'socks5://[::ffff:a9fe:a9fe]:1080',
  ])('a URL of a metadata service is recognized: %s', (url) => {
    expect(pointsToMetadataAddress(url)).toBe(true)
  })

  test.each([
    'http://127.0.0.1:8000/v1',
    'http://metadata.google.internal/v1',
    'https://169.254.169.254.example/v1',
    'x',
  ])('a URL of no metadata service is recognized as such: %s', (url) => {
    expect(pointsToMetadataAddress(url)).toBe(false)
  })
})

/**
 * One byte of an address in the notations that C programs accept, including other digits and
 * percent-encoding.
 */
const byteAs: Readonly<Record<string, (byte: number) => string>> = {
  decimal: String,
  octal: (byte) => `0${byte.toString(8)}`,
  hexadecimal: (byte) => `0X${byte.toString(16)}`,
  'full-width': (byte) =>
    String(byte).replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  encoded: (byte) => String(byte).replaceAll(/\d/g, (digit) => `%3${digit}`),
}

test('the address of a cloud metadata service is recognized in every spelling, with every URL scheme', () => {
  const scheme = fc.constantFrom('http', 'https', 'HTTP', 'socks5', 'socks5h', 'Socks5')
  const byte = fc.integer({ min: 0, max: 255 })
  const spelling = fc.constantFrom(...Object.values(byteAs))
  const dot = fc.constantFrom('.', '。', '．', '｡', '%2e', '%2E')
  const end = fc.constantFrom('', '.', '。', ':1080', '/', './')
  fc.assert(
    fc.property(
      fc.tuple(scheme, end),
      fc.tuple(byte, byte),
      fc.array(spelling, { minLength: 4, maxLength: 4 }),
      fc.array(dot, { minLength: 3, maxLength: 3 }),
      ([scheme, end], [c, d], spellings, dots) => {
        const host = [169, 254, c, d].map((byte, i) => `${spellings[i]?.(byte)}${dots[i] ?? ''}`).join('')
        expect(pointsToMetadataAddress(`${scheme}://${host}${end}`)).toBe(true)
      },
    ),
  )
})
