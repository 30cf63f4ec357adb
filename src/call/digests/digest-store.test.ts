import { describe, expect, test } from 'vitest'
import { type DigestSearch, LocalDigests, MAX_COMPUTED_DIGESTS } from './digest-store.ts'

const RETENTION = { ms: 1_000_000, most: 1000 }

/** A digest with this mark; `rest` distinguishes those with the same one. */
function digestOf(mark: number, rest: number): Buffer {
  const digest = Buffer.alloc(24, rest)
  digest.writeUInt32LE(mark)
  return digest
}

/** Searches digests with the marks 1, 2, …, and counts those that are computed. */
function searchOf(count: number, rest: number): DigestSearch & { computed: number } {
  return {
    owner: 1,
    count,
    computed: 0,
    mark: (index) => index + 1,
    digest(index) {
      this.computed++
      return digestOf(index + 1, rest)
    },
  }
}

describe('a search for digests', () => {
  test('a search for a remembered prompt computes only the digests whose 32-bit mark is remembered', () => {
    const store = new LocalDigests()
    store.remember(1, digestOf(3, 7), 30, RETENTION)
    store.remember(1, digestOf(5, 7), 50, RETENTION)
    const search = searchOf(100, 7)
    expect(store.find(search, () => true)).toEqual({ index: 2, value: 30 })
    expect(search.computed).toBe(1)
  })
  test('a search for a remembered prompt continues after a wrong digest or one with an implausible token count', () => {
    const store = new LocalDigests()
    store.remember(1, digestOf(3, 8), 30, RETENTION)
    store.remember(1, digestOf(5, 7), 50, RETENTION)
    store.remember(1, digestOf(6, 7), 60, RETENTION)
    expect(store.find(searchOf(100, 7), ({ value }) => value !== 50)).toEqual({ index: 5, value: 60 })
  })
  test('a search for a remembered prompt computes a limited number of digests, however many 32-bit marks match', () => {
    const store = new LocalDigests()
    for (let mark = 1; mark <= 100; mark++) store.remember(1, digestOf(mark, 8), 1, RETENTION)
    store.remember(1, digestOf(101, 7), 1, RETENTION)
    const search = searchOf(200, 7)
    expect(store.find(search, () => true)).toBeUndefined()
    expect(search.computed).toBe(MAX_COMPUTED_DIGESTS)
  })
})
