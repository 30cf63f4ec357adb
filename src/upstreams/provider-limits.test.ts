import { expect, test } from 'vitest'
import { ProviderLimits, statedLimits } from './provider-limits.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')
const CHANNEL = { name: 'main' }
const KEY = { value: 'one' }

test.each([
  ['6m0s', 360_000],
  ['120ms', 120],
  ['1s', 1_000],
  ['2m59.56s', 179_560],
  ['1d2h', 93_600_000],
  ['30', 30_000],
])('a reset of %s is read as %d ms', (reset, ms) => {
  const headers = {
    'x-ratelimit-limit-requests': '100',
    'x-ratelimit-remaining-requests': '7',
    'x-ratelimit-reset-requests': reset,
  }
  const { requests } = statedLimits(headers, NOW)
  expect(requests).toEqual({ limit: 100, remaining: 7, resetsMs: NOW + ms })
})

test('of the limits on input, output and both, the one that has the least left is read', () => {
  const headers = {
    'anthropic-ratelimit-tokens-limit': '90000',
    'anthropic-ratelimit-tokens-remaining': '80000',
    'anthropic-ratelimit-output-tokens-limit': '8000',
    'anthropic-ratelimit-output-tokens-remaining': '500',
    'anthropic-ratelimit-output-tokens-reset': '2026-11-25T12:00:30Z',
  }
  expect(statedLimits(headers, NOW)).toEqual({
    tokens: { limit: 8_000, remaining: 500, resetsMs: NOW + 30_000 },
  })
})

test.each(['-1', '1e3', 'many', '', '9'.repeat(40)])('a remainder of %j is ignored', (remaining) => {
  expect(statedLimits({ 'x-ratelimit-remaining-requests': remaining }, NOW)).toEqual({})
})

/** Limits after a response that left this much of a key until a minute later. */
function stating(requests: number, tokens: number) {
  const clock = { ms: NOW }
  const limits = new ProviderLimits(() => clock.ms)
  const headers = {
    'x-ratelimit-remaining-requests': String(requests),
    'x-ratelimit-reset-requests': '1m0s',
    'x-ratelimit-remaining-tokens': String(tokens),
    'x-ratelimit-reset-tokens': '1m0s',
  }
  limits.begin(CHANNEL, KEY, 'm', { tokens: 1 })(headers)
  return { clock, limits, canTake: (tokens: number) => limits.canTake(CHANNEL, KEY, 'm', { tokens }) }
}

test('a key can take a call whose bound its provider has left, and any after the reset', () => {
  const { clock, canTake } = stating(1, 100)
  expect(canTake(100)).toBe(true)
  expect(canTake(101)).toBe(false)
  clock.ms += 60_000
  expect(canTake(101)).toBe(true)
})

test('a key without requests is spent for its model alone', () => {
  const { limits, canTake } = stating(0, 100)
  expect(canTake(1)).toBe(false)
  expect(limits.canTake(CHANNEL, KEY, 'other', { tokens: 1 })).toBe(true)
  expect(limits.canTake(CHANNEL, { value: 'two' }, 'm', { tokens: 1 })).toBe(true)
})

test('calls under way count against what was stated, until they are answered', () => {
  const { limits, canTake } = stating(2, 100)
  const answered = limits.begin(CHANNEL, KEY, 'm', { tokens: 60 })
  expect(canTake(41)).toBe(false)
  expect(canTake(40)).toBe(true)
  limits.begin(CHANNEL, KEY, 'm', { tokens: 0 })
  expect(canTake(0)).toBe(false)
  answered()
  answered()
  expect(canTake(100)).toBe(true)
})
