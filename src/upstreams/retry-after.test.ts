import { expect, test } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const NOW = Date.parse('Fri, 20 Nov 2026 10:00:00 GMT')

test.each([
  ['7', 7000],
  [' 1.5 ', 1500],
  ['Fri, 20 Nov 2026 10:00:30 GMT', 30_000],
  ['0', undefined],
  ['-3', undefined],
  ['soon', undefined],
  ['2026-11-20', undefined],
  ['Fri, 20 Nov 2026 09:59:00 GMT', undefined],
  ['', undefined],
  [undefined, undefined],
])('%j asks for %j ms', (header, ms) => expect(retryAfterMs(header, NOW)).toBe(ms))
