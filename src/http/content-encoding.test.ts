import { expect, test } from 'vitest'
import { chooseEncoding } from './content-encoding.ts'

test.each([
  ['br where a browser takes everything', 'gzip, deflate, br, zstd', 'br'],
  ['gzip for older clients', 'gzip, deflate', 'gzip'],
  ['the file itself without the header', undefined, 'identity'],
  ['the file itself for an encoding that is not offered', 'zstd', 'identity'],
  ['none that has the weight 0', 'br;q=0, gzip;q=0.5', 'gzip'],
  ['br for a wildcard', '*', 'br'],
  ['what a wildcard does not exclude', '*;q=0, gzip', 'gzip'],
  ['names in any case', 'GZIP', 'gzip'],
])('the chosen content encoding is right for %s', (_, accepted, chosen) => {
  expect(chooseEncoding(accepted)).toBe(chosen)
})
