import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { HeapCollector } from './heap-collector.ts'

const MIB = 1024 * 1024

/** Garbage of a heap that uses so many bytes after a collection, and the number of collections. */
function heapOf(usedBytes: number) {
  const seen = { collections: 0 }
  const garbage = new HeapCollector({ collect: () => (seen.collections += 1), usedBytes: () => usedBytes })
  const note = async (bytes: number): Promise<number> => {
    garbage.note(bytes)
    await nextTurn()
    return seen.collections
  }
  return { garbage, note, seen }
}

test('a garbage collection runs after each 64 MiB of garbage from large conversations', async () => {
  const { note } = heapOf(30 * MIB)
  expect(await note(63 * MIB)).toBe(0)
  expect(await note(MIB)).toBe(1)
  expect(await note(63 * MIB)).toBe(1)
  expect(await note(80 * MIB)).toBe(2)
})

test('a single garbage collection runs after large conversations that end in the same turn of the event loop', async () => {
  const { garbage, note, seen } = heapOf(30 * MIB)
  garbage.note(80 * MIB)
  garbage.note(80 * MIB)
  expect(seen.collections).toBe(0)
  expect(await note(MIB)).toBe(1)
})

test('a heap of over 64 MiB is collected only after as much garbage as its size, as its collection takes longer', async () => {
  const { note } = heapOf(500 * MIB)
  expect(await note(64 * MIB)).toBe(1)
  expect(await note(499 * MIB)).toBe(1)
  expect(await note(MIB)).toBe(2)
})
