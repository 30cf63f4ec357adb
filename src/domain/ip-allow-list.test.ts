import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { allowedAddresses, isAddressRange, parseAddresses } from './ip-allow-list.ts'
import { lawRuns } from '../../test/runner/tier.ts'

describe('an allow-list', () => {
  test.each([null, '', '  \n \n'])('an IP allow-list without entries (%j) admits every address', (list) => {
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
  ])('an allow-list admits or refuses an address: %j and %s: %s', (list, address, allowed) => {
    expect(allowedAddresses(list)(address)).toBe(allowed)
  })

  test.each([
    'somewhere',
    '192.0.2.1\nrubbish',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.1/24/5',
    'fe80::1%eth0',
  ])('an allow-list with an unreadable line (%j) admits no address', (list) => {
    expect(allowedAddresses(list)('192.0.2.1')).toBe(false)
    expect(parseAddresses(list.split('\n'))).toBeUndefined()
  })

  test('an IP allow-list never admits a text that is not an IP address', () => {
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
])('a valid address or CIDR is accepted: %s', (text) => expect(isAddressRange(text)).toBe(true))

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
])('an invalid address or CIDR is refused: "%s"', (text) => expect(isAddressRange(text)).toBe(false))

/** An address as sixteen bytes; an IPv4 address in its IPv6-mapped form. */
interface Written {
  readonly bytes: readonly number[]
  readonly text: string
  readonly isMapped: boolean
}

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
/** Few distinct values, so that addresses often share a prefix. */
const byte = fc.constantFrom(0, 1, 10, 127, 128, 192, 254, 255)
const hex = (bytes: readonly number[]): string =>
  Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  ).join(':')
const v4 = fc
  .tuple(byte, byte, byte, byte)
  .map((four): Written => ({ bytes: [...MAPPED, ...four], text: four.join('.'), isMapped: true }))
const mapped = v4.map(({ bytes, text }): Written => ({ bytes, text: `::ffff:${text}`, isMapped: false }))
const v6 = fc
  .array(byte, { minLength: 16, maxLength: 16 })
  .map((bytes): Written => ({ bytes, text: hex(bytes), isMapped: false }))
const address = fc.oneof(v4, v6, mapped)
const range = address.chain((written) =>
  fc
    .option(fc.nat(written.isMapped ? 32 : 128), { freq: 5 })
    .map((bits) => ({ ...written, bits: bits ?? undefined })),
)

/** Reference implementation that compares bit by bit. */
function isWithin(one: Written, { bytes, bits, isMapped }: Written & { bits: number | undefined }): boolean {
  const wanted = bits === undefined ? 128 : bits + (isMapped ? 96 : 0)
  for (let bit = 0; bit < wanted; bit++) {
    const at = bit >> 3
    const mask = 0x80 >> (bit & 7)
    if (((one.bytes[at] ?? 0) & mask) !== ((bytes[at] ?? 0) & mask)) return false
  }
  return true
}

test('an IP allow-list admits the same addresses as a bitwise reference implementation', () => {
  const numRuns = lawRuns(20_000)
  let allowed = 0
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 3 }), address, (ranges, one) => {
      const list = ranges.map(({ text, bits }) => (bits === undefined ? text : `${text}/${bits}`))
      const expected = ranges.some((each) => isWithin(one, each))
      if (expected) allowed += 1
      expect(allowedAddresses(list.join('\n'))(one.text), `${one.text} in ${list.join()}`).toBe(expected)
      // One invalid line anywhere makes the whole list invalid.
      expect(allowedAddresses([...list, 'rubbish'].join('\n'))(one.text)).toBe(false)
    }),
    { numRuns },
  )
  expect(allowed).toBeGreaterThan(numRuns / 20)
})
