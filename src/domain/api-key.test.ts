import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lookupPartOfKey, maskedKey, tokenStatusAt } from './api-key.ts'

describe('the lookup key', () => {
  test.each([
    ['sk-abc123', 'abc123'],
    ['abc123', 'abc123'],
    ['sk-sk-sk-abc123', 'abc123'],
    ['sk-abc123-17', 'abc123'],
    ['sk-abc123-', 'abc123'],
  ])('the lookup key of %s is %s', (sent, key) => {
    expect(lookupPartOfKey(sent)).toBe(key)
  })

  test.each(['', 'sk-', '-abc', 'sk--abc', 'a b', 'ab_c', 'é', 'x'.repeat(129)])(
    '"%s" is not accepted as an API key: it has no lookup key',
    (sent) => {
      expect(lookupPartOfKey(sent)).toBeUndefined()
    },
  )

  test('only whole sk- prefixes are removed from an API key, and a key that begins with s or k keeps its letters', () => {
    const base62 = fc.stringMatching(/^[0-9A-Za-z]{1,60}$/)
    fc.assert(
      fc.property(base62, fc.nat(3), (key, times) => lookupPartOfKey('sk-'.repeat(times) + key) === key),
    )
  })
})

test.each([
  ['sk-abcdefghijkl', 'sk-a**********ijkl'],
  ['sk-abcdef', 'sk-a**********cdef'],
  ['sk-abcde', '**********'],
  ['sk-a', '**********'],
])('the key %s is shown as %s', (key, shown) => {
  expect(maskedKey(key)).toBe(shown)
})

const [UNTIL, AT] = [1_800_000_000, 1_800_000_000_000]

test.each([
  ['enabled while it has time and quota', 1, UNTIL, false, 1, AT - 1, 1],
  ['expired from its very second on', 1, UNTIL, false, 1, AT, 3],
  ['never expired at -1', 1, -1, false, 1, AT, 1],
  ['exhausted at zero', 1, -1, false, 0, AT, 4],
  ['exhausted below zero', 1, -1, false, -5, AT, 4],
  ['never exhausted without a limit', 1, -1, true, -5, AT, 1],
  ['disabled whatever else', 2, UNTIL, false, 0, AT, 2],
  ['enabled again once its time was put off, whatever is stored', 3, -1, false, 1, AT, 1],
  ['enabled again once it has quota, whatever is stored', 4, -1, false, 1, AT, 1],
  ['expired, whatever else is stored', 4, UNTIL, false, 0, AT, 3],
] as const)(
  'the status of an API key follows from its stored status, its expiry and its remaining quota: %s',
  (_, status, expired_time, unlimited_quota, remain, nowMs, expected) => {
    expect(tokenStatusAt({ status, expired_time, unlimited_quota }, remain, nowMs)).toBe(expected)
  },
)
