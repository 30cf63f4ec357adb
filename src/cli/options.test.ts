import { expect, test } from 'vitest'
import { parseExpiry } from './options.ts'

/** Unix seconds of 2026-11-20T12:00:00Z. */
const NOW = 1_795_176_000

test.each([
  ['never', -1],
  ['-1', -1],
  ['90m', NOW + 5400],
  ['12h', NOW + 43_200],
  ['30d', NOW + 2_592_000],
  ['2w', NOW + 1_209_600],
  ['1800000000', 1_800_000_000],
  ['1', 1],
  ['2027-01-31', 1_801_353_600],
  ['2027-01-31T10:00', 1_801_389_600],
  ['2027-01-31 10:00', 1_801_389_600],
  ['2027-01-31T10:00:30Z', 1_801_389_630],
  ['2027-01-31T10:00+02:00', 1_801_382_400],
  ['2028-02-29', 1_835_395_200],
])('a time on the command line is read: %s as %i', (text, seconds) => {
  expect(parseExpiry(text, NOW * 1000 + 999)).toBe(seconds)
})

test.each(
  [
    '',
    '0',
    '-2',
    '30x',
    '1.5d',
    'tomorrow',
    '2027-02-30',
    '2027-02-30 10:00',
    '2027-06-31T00:00:00Z',
    '2027-02-29T12:00+02:00',
    '2027-13-01',
    '2027-1-1',
    '2027-01-31T25:00',
    '1800000000000',
    '31.01.2027',
  ].filter((text) => text !== '30'),
)('the text %j is refused as a time of expiry', (text) => {
  expect(parseExpiry(text, NOW * 1000)).toBeUndefined()
})
