import { expect, test } from 'vitest'
import {
  cacheTokensOf,
  cacheBreakCounts,
  callsByCacheBreakCauser,
  shareReadFromCache,
  truncatedVerdict,
} from './cache-breaks.ts'

test('cache breaks are grouped by cause, the gateway first, with the most frequent reason of a group first', () => {
  const breaks = {
    provider: 9,
    channel_moved: 1,
    key_moved: 2,
    model_changed: 1,
    tools_changed: 1,
    system_changed: 1,
    messages_changed: 3,
    lifetime_passed: 2,
  }
  expect(cacheBreakCounts(breaks).map(({ reason, causer, calls }) => [causer, reason, calls])).toEqual([
    ['gateway', 'key_moved', 2],
    ['gateway', 'channel_moved', 1],
    ['client', 'messages_changed', 3],
    ['client', 'lifetime_passed', 2],
    ['client', 'model_changed', 1],
    ['client', 'tools_changed', 1],
    ['client', 'system_changed', 1],
    ['provider', 'provider', 9],
  ])
  expect(cacheBreakCounts({})).toEqual([])
  expect(callsByCacheBreakCauser(cacheBreakCounts(breaks))).toEqual([
    { causer: 'gateway', calls: 3 },
    { causer: 'client', calls: 8 },
    { causer: 'provider', calls: 9 },
  ])
})

test('the share of input tokens that are read from caches is computed from all input, including cache writes', () => {
  expect(shareReadFromCache({ input: 100, cached: 600, cache_write: 300 })).toBe(0.6)
  expect(shareReadFromCache({ input: 0, cached: 0, cache_write: 0 })).toBeUndefined()
})

test('the input of a call is divided into tokens read from a cache, tokens written to one, and all remaining tokens', () => {
  const call = {
    prompt_tokens: 1_000,
    cached_tokens: 500,
    cache_write_5m_tokens: 1,
    cache_write_30m_tokens: 20,
    cache_write_1h_tokens: 300,
    cache_write_12h_tokens: 4,
  }
  expect(cacheTokensOf(call)).toEqual({ input: 175, cached: 500, cache_write: 325 })
})

test("a provider's verdict on a cache miss is shown up to 500 characters", () => {
  expect(truncatedVerdict('v'.repeat(500))).toBe('v'.repeat(500))
  expect(truncatedVerdict('v'.repeat(501))).toBe(`${'v'.repeat(500)}…`)
})
