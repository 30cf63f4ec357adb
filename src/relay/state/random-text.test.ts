import { expect, test } from 'vitest'
import { RandomText } from './random-text.ts'

test('texts have the length that is asked for, in characters of base64url', () => {
  const random = new RandomText(48)
  for (let length = 1; length <= 48; length++)
    expect(random.next(length)).toMatch(new RegExp(`^[\\w-]{${length}}$`))
})

test('no two texts are alike, over many fillings of the pool', () => {
  const random = new RandomText(20)
  expect(new Set(Array.from({ length: 5_000 }, () => random.next(20))).size).toBe(5_000)
})

test('each character is as frequent as any other, at every place', () => {
  const random = new RandomText(21)
  const texts = Array.from({ length: 64_000 }, () => random.next(21))
  for (let place = 0; place < 21; place++) {
    const counts = new Map<string, number>()
    for (const text of texts) counts.set(text[place] ?? '', (counts.get(text[place] ?? '') ?? 0) + 1)
    expect(counts.size).toBe(64)
    // 1,000 are expected of each, with a standard deviation of 32: eight of them are never seen by chance.
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(8 * 32)
  }
})
