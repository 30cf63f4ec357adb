import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { toBase64, toNumbers } from './vectors.ts'

describe('garbage of a conversion of vectors', () => {
  const NUMBERS = Array.from({ length: 20_000 }, (_, index) => Math.fround(Math.sin(index) / 20))
  const QUOTED = Buffer.from(`"${Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')}"`)
  const LIST = Buffer.from(JSON.stringify(NUMBERS.map((value) => value + 1e-12)))

  test.each([
    ['to numbers', () => toNumbers(QUOTED)],
    ['to base64', () => toBase64(LIST)],
  ])(
    'a conversion %s leaves fewer bytes of garbage than a text or an element for each number',
    (_, convert) => {
      const allocated = Array.from({ length: 200 }, () => {
        const before = process.memoryUsage().heapUsed
        convert()
        return process.memoryUsage().heapUsed - before
      })
      const compiled = allocated.slice(-9).toSorted((a, b) => a - b)
      // Uses the median, because some samples include a garbage collection.
      expect(compiled[4]).toBeLessThan(40 * NUMBERS.length)
    },
  )
})
