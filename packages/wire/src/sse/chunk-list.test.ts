import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ChunkList } from './chunk-list.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 600 }), { maxLength: 40 })

test('the bytes taken from a list of stream chunks are those that were added, and nothing remains', () => {
  fc.assert(
    fc.property(chunks, fc.nat(2000), fc.nat(8), (given, singles, size) => {
      const gathered = new ChunkList()
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
    { numRuns: lawRuns(200) },
  )
})

test('chunks that lie one after the other in memory are taken without a copy', () => {
  const whole = Buffer.from('0123456789')
  const gathered = new ChunkList()
  for (const [from, to] of [
    [2, 5],
    [5, 5],
    [5, 9],
  ] as const)
    gathered.add(whole.subarray(from, to))
  const taken = gathered.take()
  whole.write('x', 6)
  expect(taken.toString()).toBe('2345x78')
})

test('chunks of one buffer with a gap, or in another order, are taken in their order', () => {
  const whole = Buffer.from('0123456789')
  const gathered = new ChunkList()
  for (const [from, to] of [
    [6, 8],
    [0, 2],
    [3, 4],
  ] as const)
    gathered.add(whole.subarray(from, to))
  expect(gathered.take().toString()).toBe('67013')
})

test('a million single bytes in a list of stream chunks do not take an object each', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const gathered = new ChunkList()
  const chunk = Buffer.from('x')
  const used = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = used()
  for (let i = 0; i < 1_000_000; i++) gathered.add(chunk.subarray(0))
  expect(used() - before).toBeLessThan(20_000_000)
  expect(gathered.take()).toHaveLength(1_000_000)
})
