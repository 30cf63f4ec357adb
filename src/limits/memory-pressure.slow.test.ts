import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { expect, test } from 'vitest'
import { MemoryPressure, type MemoryUsage, memoryUsage } from './memory-pressure.ts'
import { atNight } from '../../test/runner/tier.ts'

const LOW: MemoryUsage = { heap: 100, heapLimit: 1_000, resident: 200, residentLimit: 2_000 }

/** Memory pressure with a given usage, before and after a collection; counts collections and samples. */
function pressureOf(given: Partial<MemoryUsage>, collected: Partial<MemoryUsage> = given) {
  const seen = { collections: 0, samples: 0, usage: { ...LOW, ...given } }
  const pressure = new MemoryPressure(
    () => {
      seen.samples += 1
      return seen.usage
    },
    () => {
      seen.collections += 1
      seen.usage = { ...LOW, ...collected }
    },
  )
  return { pressure, seen }
}

test.each([
  ['low usage is not high', {}, false],
  ['three quarters of the heap are not high', { heap: 750 }, false],
  ['more of the heap is high', { heap: 751 }, true],
  ['three quarters of the container are not high', { resident: 1_500 }, false],
  ['more of the container is high', { resident: 1_501 }, true],
  [
    'no resident size is high without a container',
    { resident: 1e12, residentLimit: Number.POSITIVE_INFINITY },
    false,
  ],
])('memory usage counts as high or not: %s', (_, given, isHigh) => {
  expect(pressureOf(given).pressure.isHigh(0)).toBe(isHigh)
})

test('memory usage counts as high only if it stays high after a garbage collection', () => {
  const { pressure, seen } = pressureOf({ heap: 900 }, { heap: 300 })
  expect(pressure.isHigh(0)).toBe(false)
  expect(seen.collections).toBe(1)
})

test('garbage collections are forced every ten seconds at most, and only while memory usage is high', () => {
  const { pressure, seen } = pressureOf({ heap: 900 })
  for (let ms = 0; ms < 10_000; ms += 50) expect(pressure.isHigh(ms)).toBe(true)
  expect(seen.collections).toBe(1)
  pressure.isHigh(10_000)
  expect(seen.collections).toBe(2)
  seen.usage = LOW
  expect(pressure.isHigh(30_000)).toBe(false)
  expect(seen.collections).toBe(2)
})

test('memory usage is sampled ten times a second, however many calls arrive', () => {
  const { pressure, seen } = pressureOf({})
  for (let ms = 0; ms < 1_000; ms++) pressure.isHigh(ms)
  expect(seen.samples).toBe(10)
})

test('the memory limits that the process reads are above its own measured heap and resident memory', () => {
  const { heap, heapLimit, resident, residentLimit } = memoryUsage()
  expect(heap).toBeGreaterThan(1e6)
  expect(heap).toBeLessThan(heapLimit)
  if (residentLimit < Infinity) expect(resident).toBeGreaterThan(heap / 2)
  expect(residentLimit).toBeGreaterThan(resident)
})

const SUBJECT = new URL('./memory-pressure.ts', import.meta.url).href

/**
 * Program that fills the old generation with garbage and some live objects, and prints the full collections.
 */
function program(isOverload: boolean): string {
  return `
    import { PerformanceObserver } from 'node:perf_hooks'
    import { setHeapGrowthOnOverload } from '${SUBJECT}'
    setHeapGrowthOnOverload(${isOverload})
    let full = 0
    new PerformanceObserver((list) => {
      for (const { detail } of list.getEntries()) if (detail.kind === 4) full += 1
    }).observe({ entryTypes: ['gc'] })
    const kept = []
    for (let round = 0; round < 220; round++) {
      for (let i = 0; i < 20; i++)
        kept[(20 * round + i) % 200] = new Array(4_096).fill(round).map((x) => ({ x }))
      await new Promise((resolve) => setImmediate(resolve))
    }
    console.log(full)`
}

function fullCollections(isOverload: boolean): number {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--max-old-space-size=512',
      '--max-semi-space-size=4',
      '--single-threaded-gc',
      '--input-type=module',
      '--eval',
      program(isOverload),
    ],
    { encoding: 'utf8', timeout: 240_000 },
  )
  expect(stderr).toBe('')
  return Number(stdout)
}

atNight('at least a quarter fewer full garbage collections are forced in overload than otherwise', () => {
  const [usual, inOverload] = [fullCollections(false), fullCollections(true)]
  expect(usual).toBeGreaterThan(4)
  expect(inOverload).toBeLessThan(0.75 * usual)
})
