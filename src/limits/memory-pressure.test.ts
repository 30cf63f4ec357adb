import { expect, test } from 'vitest'
import { MemoryPressure, type MemoryTaken, memoryTaken } from './memory-pressure.ts'

const LITTLE: MemoryTaken = { heap: 100, heapLimit: 1_000, resident: 200, residentLimit: 2_000 }

/** Memory of which so much is taken, and how often it was collected and looked at. */
function memory(given: Partial<MemoryTaken>, collected: Partial<MemoryTaken> = given) {
  const seen = { collections: 0, looks: 0, taken: { ...LITTLE, ...given } }
  const pressure = new MemoryPressure(
    () => {
      seen.looks += 1
      return seen.taken
    },
    () => {
      seen.collections += 1
      seen.taken = { ...LITTLE, ...collected }
    },
  )
  return { pressure, seen }
}

test.each([
  ['little', {}, false],
  ['three quarters of the heap', { heap: 750 }, false],
  ['more of the heap', { heap: 751 }, true],
  ['three quarters of the container', { resident: 1_500 }, false],
  ['more of the container', { resident: 1_501 }, true],
  ['much where there is no container', { resident: 1e12, residentLimit: Number.POSITIVE_INFINITY }, false],
])('%s', (_, given, isHigh) => {
  expect(memory(given).pressure.isHigh(0)).toBe(isHigh)
})

test('garbage is collected before anybody is refused for it', () => {
  const { pressure, seen } = memory({ heap: 900 }, { heap: 300 })
  expect(pressure.isHigh(0)).toBe(false)
  expect(seen.collections).toBe(1)
})

test('it is collected once in ten seconds at the most, and where there is too much alone', () => {
  const { pressure, seen } = memory({ heap: 900 })
  for (let ms = 0; ms < 10_000; ms += 50) expect(pressure.isHigh(ms)).toBe(true)
  expect(seen.collections).toBe(1)
  pressure.isHigh(10_000)
  expect(seen.collections).toBe(2)
  seen.taken = LITTLE
  expect(pressure.isHigh(30_000)).toBe(false)
  expect(seen.collections).toBe(2)
})

test('it is looked at ten times a second, however many calls come', () => {
  const { pressure, seen } = memory({})
  for (let ms = 0; ms < 1_000; ms++) pressure.isHigh(ms)
  expect(seen.looks).toBe(10)
})

test('this process has a heap within its limit, and no container that is larger than the machine', () => {
  const { heap, heapLimit, resident, residentLimit } = memoryTaken()
  expect(heap).toBeGreaterThan(1e6)
  expect(heap).toBeLessThan(heapLimit)
  expect(resident).toBeGreaterThan(heap / 2)
  expect(residentLimit).toBeGreaterThan(resident)
})
