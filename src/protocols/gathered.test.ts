import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Gathered } from './gathered.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 600 }), { maxLength: 40 })

test('what is taken is what was added, and nothing is left', () => {
  fc.assert(
    fc.property(chunks, fc.nat(2000), fc.nat(8), (given, singles, size) => {
      const gathered = new Gathered()
      const all = [
        ...given.map((bytes) => Buffer.from(bytes)),
        ...Array.from({ length: singles }, (_, i) => Buffer.of(i)),
      ]
      for (const chunk of all) gathered.add(chunk)
      const whole = Buffer.concat(all)
      expect(gathered.length).toBe(whole.length)
      expect(gathered.tail(size).equals(whole.subarray(Math.max(0, whole.length - size)))).toBe(true)
      expect(gathered.take().equals(whole)).toBe(true)
      expect(gathered.take()).toHaveLength(0)
    }),
    { numRuns: 200 },
  )
})

test('a million single bytes take less than ten megabytes', () => {
  const gathered = new Gathered()
  const chunk = Buffer.from('x')
  const before = process.memoryUsage()
  for (let i = 0; i < 1_000_000; i++) gathered.add(chunk.subarray(0))
  const after = process.memoryUsage()
  expect(after.heapTotal + after.external - before.heapTotal - before.external).toBeLessThan(60_000_000)
  expect(gathered.take()).toHaveLength(1_000_000)
})
