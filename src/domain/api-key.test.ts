import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lookupKey } from './api-key.ts'

describe('the lookup key', () => {
  test.each([
    ['sk-abc123', 'abc123'],
    ['abc123', 'abc123'],
    ['sk-sk-sk-abc123', 'abc123'],
    ['sk-abc123-17', 'abc123'],
    ['sk-abc123-', 'abc123'],
  ])('the lookup key of %s is %s', (sent, key) => {
    expect(lookupKey(sent)).toBe(key)
  })

  test.each(['', 'sk-', '-abc', 'sk--abc', 'a b', 'ab_c', 'é', 'x'.repeat(129)])(
    '"%s" has no lookup key',
    (sent) => {
      expect(lookupKey(sent)).toBeUndefined()
    },
  )

  test('only a whole prefix is removed: keys may begin with s or k', () => {
    const base62 = fc.stringMatching(/^[0-9A-Za-z]{1,60}$/)
    fc.assert(fc.property(base62, fc.nat(3), (key, times) => lookupKey('sk-'.repeat(times) + key) === key))
  })
})
