import { expect, test } from 'vitest'
import { DistrustedUpstreams } from './distrusted-upstreams.ts'

test('an upstream is distrusted for ten minutes after the last unrequested bytes, and no other upstream is', () => {
  const distrust = new DistrustedUpstreams()
  expect(distrust.has('a', 0)).toBe(false)
  expect(distrust.add('a', 0)).toBe(true)
  expect(distrust.has('a', 599_999)).toBe(true)
  expect(distrust.has('b', 1)).toBe(false)
  expect(distrust.add('a', 300_000)).toBe(false)
  expect(distrust.has('a', 899_999)).toBe(true)
  expect(distrust.has('a', 900_000)).toBe(false)
  // The upstream was trusted again in between.
  expect(distrust.add('a', 900_001)).toBe(true)
})
