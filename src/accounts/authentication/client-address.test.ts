import { describe, expect, test } from 'vitest'
import type { Request } from '../../http/request.ts'
import { clientAddress } from './client-address.ts'

const HOUR_MS = 3_600_000

/** A request of the proxy 10.0.0.1 with this header. */
const request = (forwarded: string) =>
  ({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': forwarded } }) as unknown as Request

function behindProxy() {
  const reports: (readonly [proxy: string, form: string])[] = []
  const clock = { nowMs: 0 }
  const addressOf = clientAddress(
    ['10.0.0.0/8'],
    { onUntrusted: () => {}, onUnreadable: (...report) => reports.push(report) },
    () => clock.nowMs,
  )
  return { addressOf: (forwarded: string) => addressOf(request(forwarded)), reports, clock }
}

describe('an address that a trusted proxy forwards', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:51008', '203.0.113.7'],
    ['2001:db8::5', '2001:db8::5'],
    ['[2001:db8::5]', '2001:db8::5'],
    ['[2001:db8::5]:64828', '2001:db8::5'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:80', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7:51008, 10.2.3.4:443', '203.0.113.7'],
  ])('is read with and without a port: %s', (forwarded, address) => {
    const { addressOf, reports } = behindProxy()
    expect(addressOf(forwarded)).toBe(address)
    expect(reports).toEqual([])
  })

  test.each([
    '203.0.113.7:',
    '203.0.113.7:65536',
    '203.0.113.7:1:2',
    '[203.0.113.7]:80',
    '[2001:db8::5',
    '2001:db8::5]:80',
    '[2001:db8::5]x',
    'unknown',
    '',
    '203.0.113.7.evil',
  ])('is not guessed where it cannot be read: %j', (entry) => {
    expect(behindProxy().addressOf(`198.51.100.1, ${entry}`)).toBe('10.0.0.1')
  })

  test('is reported once an hour where it cannot be read, with the proxy and the form of the entry', () => {
    const { addressOf, reports, clock } = behindProxy()
    addressOf('client-7.example:80x')
    addressOf('unknown')
    expect(reports).toEqual([['10.0.0.1', 'aaaaaa-9.aaaaaaa:99a']])
    clock.nowMs = HOUR_MS - 1
    addressOf('unknown')
    expect(reports).toHaveLength(1)
    clock.nowMs = HOUR_MS
    addressOf('\u0007ñ'.repeat(100))
    expect(reports[1]).toEqual(['10.0.0.1', '?a'.repeat(30)])
  })
})
