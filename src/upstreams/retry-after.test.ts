import { expect, test } from 'vitest'
import { forwardedRetryAfter, retryAfterMs } from './retry-after.ts'

const NOW = Date.parse('Fri, 20 Nov 2026 10:00:00 GMT')

test.each([
  ['7', 7000],
  [' 1.5 ', 1500],
  ['Fri, 20 Nov 2026 10:00:30 GMT', 30_000],
  ['99999999999', 99_999_999_999_000],
  ['0', undefined],
  ['-3', undefined],
  ['soon', undefined],
  ['2026-11-20', undefined],
  ['Fri, 20 Nov 2026 09:59:00 GMT', undefined],
  ['', undefined],
  [undefined, undefined],
])("the waiting time is read from an upstream's headers: %j as %j ms", (header, ms) =>
  expect(retryAfterMs(header, NOW)).toBe(ms),
)

test.each([
  ['7', '7'],
  ['0', '0'],
  [' 17 ', '17'],
  ['Fri, 20 Nov 2026 10:00:30 GMT', 'Fri, 20 Nov 2026 10:00:30 GMT'],
  ['Fri, 20 Nov 1998 10:00:30 GMT', 'Fri, 20 Nov 1998 10:00:30 GMT'],
  ['1.5', undefined],
  ['-3', undefined],
  ['+3', undefined],
  ['1e3', undefined],
  ['12345678901', undefined],
  ['7, 8', undefined],
  ['soon', undefined],
  ['Fri, 99 Nov 2026 10:00:30 GMT', undefined],
  ['Fri, 20 Xyz 2026 10:00:30 GMT', undefined],
  ['Fri, 20 Nov 2026 10:00:30 GMT; x', undefined],
  ['Fri, 20 Nov 2026 10:00:30 UTC', undefined],
  ['', undefined],
  [undefined, undefined],
])("a provider's retry-after is forwarded to the client if it is valid: %j as %j", (header, told) =>
  expect(forwardedRetryAfter(header)).toBe(told),
)
