import { expect, test } from 'vitest'
import { goDuration, limitHeadersOf } from './limit-headers.ts'

test.each([
  [0, '0s'],
  [119.2, '120ms'],
  [999.5, '1s'],
  [1_000, '1s'],
  [1_001, '2s'],
  [60_000, '1m0s'],
  [360_000, '6m0s'],
  [7_200_000, '2h0m0s'],
  [90_061_000, '25h1m1s'],
])('a rate limit header states that a limit resets in %s ms as %s', (ms, text) => {
  expect(goDuration(ms)).toBe(text)
})

test('a response has no rate limit headers for a limit that does not apply to the call', () => {
  const requests = { limit: 5, remaining: 4, resetMs: 1_500 }
  expect(limitHeadersOf('chat')?.({ requests, tokens: undefined }, 0)).toEqual({
    'x-ratelimit-limit-requests': '5',
    'x-ratelimit-remaining-requests': '4',
    'x-ratelimit-reset-requests': '2s',
  })
  expect(limitHeadersOf('messages')?.({ requests: undefined, tokens: requests }, 500)).toEqual({
    'anthropic-ratelimit-tokens-limit': '5',
    'anthropic-ratelimit-tokens-remaining': '4',
    'anthropic-ratelimit-tokens-reset': '1970-01-01T00:00:02Z',
  })
})
