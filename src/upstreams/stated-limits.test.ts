import { expect, test } from 'vitest'
import { statedLimits } from './stated-limits.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')

const read = (headers: Record<string, string>) => statedLimits({ retryAfter: undefined, headers }, NOW)

test.each([
  ['6m0s', 360_000],
  ['120ms', 120],
  ['1s', 1_000],
  ['2m59.56s', 179_560],
  ['1d2h', 93_600_000],
  ['30', 30_000],
  // A reset in a hundred years is taken for one in 31 days.
  ['36500d', 31 * 86_400_000],
])('a provider limit whose header states a reset in %s is reset in %d ms', (reset, ms) => {
  const headers = {
    'x-ratelimit-limit-requests': '100',
    'x-ratelimit-remaining-requests': '7',
    'x-ratelimit-reset-requests': reset,
  }
  const { requests } = read(headers)
  expect(requests).toEqual({ limit: 100, remaining: 7, resetsMs: NOW + ms })
})

test("of a provider's limits on input, output and all tokens, the one with the least left is used", () => {
  const headers = {
    'anthropic-ratelimit-tokens-limit': '90000',
    'anthropic-ratelimit-tokens-remaining': '80000',
    'anthropic-ratelimit-output-tokens-limit': '8000',
    'anthropic-ratelimit-output-tokens-remaining': '500',
    'anthropic-ratelimit-output-tokens-reset': '2026-11-25T12:00:30Z',
  }
  expect(read(headers)).toEqual({
    tokens: { limit: 8_000, remaining: 500, resetsMs: NOW + 30_000 },
  })
})

test.each(['-1', '1e3', 'many', '', '9'.repeat(40)])(
  "a provider's header with %j remaining requests is ignored",
  (remaining) => {
    expect(read({ 'x-ratelimit-remaining-requests': remaining })).toEqual({})
  },
)

test.each(['soon', '-1', '1e3', '', ' ', '9'.repeat(13)])(
  "a provider's retry-after-ms header with the value %j is ignored",
  (pause) => {
    expect(read({ 'retry-after-ms': pause })).toEqual({})
  },
)
