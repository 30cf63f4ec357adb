import { expect, test } from 'vitest'
import { Distrust } from './distrusted-upstreams.ts'

test('an upstream is distrusted for ten minutes from the last time on, and no other is', () => {
  const distrust = new Distrust()
  expect(distrust.isFor('a', 0)).toBe(false)
  expect(distrust.note('a', 0)).toBe(true)
  expect(distrust.isFor('a', 599_999)).toBe(true)
  expect(distrust.isFor('b', 1)).toBe(false)
  expect(distrust.note('a', 300_000)).toBe(false)
  expect(distrust.isFor('a', 899_999)).toBe(true)
  expect(distrust.isFor('a', 900_000)).toBe(false)
  // It is news again.
  expect(distrust.note('a', 900_001)).toBe(true)
})
