import { describe, expect, test } from 'vitest'
import { newResponseId, RandomText } from './response-id.ts'

test("a response id is as long as the upstream's id that it replaces, if that leaves enough random characters", () => {
  for (let length = 0; length < 100; length++) {
    const id = newResponseId(length)
    expect(id).toMatch(/^resp_[\w-]+$/)
    expect(id.length).toBe(length >= 37 && length <= 65 ? length : 49)
  }
})

test('no two response ids made at the same moment are equal, whatever their length', () => {
  for (const length of [37, 49, 65])
    expect(new Set(Array.from({ length: 2_000 }, () => newResponseId(length))).size).toBe(2_000)
})

describe.each([
  ['hex', '[0-9a-f]', 16],
  ['base64url', '[\\w-]', 64],
] as const)('random texts in %s', (alphabet, character, characters) => {
  test('the random part of a response id has the requested length', () => {
    const random = new RandomText(alphabet, 48)
    for (let length = 1; length <= 48; length++)
      expect(random.next(length)).toMatch(new RegExp(`^${character}{${length}}$`))
  })

  test('the random parts of response ids are all different, over many fillings of the pool of random bytes', () => {
    const random = new RandomText(alphabet, 20)
    expect(new Set(Array.from({ length: 5_000 }, () => random.next(20))).size).toBe(5_000)
  })

  test('the random parts of response ids have each character equally often, at every position', () => {
    const random = new RandomText(alphabet, 21)
    const expected = 1_000
    const texts = Array.from({ length: expected * characters }, () => random.next(21))
    for (let place = 0; place < 21; place++) {
      const counts = new Map<string, number>()
      for (const text of texts) counts.set(text[place] ?? '', (counts.get(text[place] ?? '') ?? 0) + 1)
      expect(counts.size).toBe(characters)
      // Random counts do not deviate by eight standard deviations.
      for (const count of counts.values())
        expect(Math.abs(count - expected)).toBeLessThan(8 * Math.sqrt(expected))
    }
  })
})
