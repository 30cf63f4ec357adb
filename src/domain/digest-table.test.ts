import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { DigestTable } from './digest-table.ts'

const key = (name: string | number): Buffer => createHash('sha256').update(String(name)).digest()

describe('a table of digests', () => {
  test('a remembered prompt is found until it expires, and only with a key that equals its key in all bytes', () => {
    const prompts = new DigestTable()
    prompts.put(1, key('a'), 123_456, 2000, 1000, 10)
    expect(prompts.get(key('a'), 1900)).toBe(123_456)
    expect(prompts.get(key('a'), 2000)).toBeUndefined()
    for (let at = 0; at < 24; at++) {
      const other = Buffer.from(key('a'))
      other[at] = (other[at] ?? 0) ^ 1
      expect(prompts.get(other, 1000), `byte ${at}`).toBeUndefined()
    }
  })
  test('a prompt that is remembered again replaces its earlier entry, with the latest token count', () => {
    const prompts = new DigestTable()
    for (const tokens of [1, 2, 3]) prompts.put(1, key('a'), tokens, 5000, 0, 10)
    expect(prompts.size).toBe(1)
    expect(prompts.get(key('a'), 0)).toBe(3)
  })
  test.each([1, 7, 100, 5000])(
    'the table of remembered prompts holds at most %s prompts, the latest among them',
    (most) => {
      const prompts = new DigestTable()
      for (let index = 0; index < most * 4; index++) {
        prompts.put(1, key(index), index, 1_000_000 + index * 100, 0, most)
        if (prompts.get(key(index), 0) !== index || prompts.size > most) throw new Error(`prompt ${index}`)
      }
      expect(prompts.size).toBe(most)
      const known = Array.from({ length: most * 4 }, (_, index) => prompts.get(key(index), 0)).filter(
        (tokens) => tokens !== undefined,
      )
      expect(known).toHaveLength(most)
      if (most > 100) expect(known.filter((tokens) => tokens >= most * 2).length).toBeGreaterThan(most * 0.8)
    },
  )
  test('a remembered prompt takes at most 64 bytes', () => {
    const prompts = new DigestTable()
    for (let index = 0; index < 20_000; index++) prompts.put(1, key(index), index, 1_000_000, 0, 10_000)
    expect(prompts.bytes / 10_000).toBeLessThanOrEqual(64)
  })
  test('two prompts whose keys begin with the same 32 bits are both remembered', () => {
    const prompts = new DigestTable()
    const other = Buffer.from(key('a'))
    other[4] = (other[4] ?? 0) ^ 1
    prompts.put(1, key('a'), 1, 5000, 0, 10)
    prompts.put(1, other, 2, 5000, 0, 10)
    expect(prompts.hasMark(other.readUInt32LE(), 0)).toBe(true)
    expect(prompts.hasMark(other.readUInt32LE(), 5000)).toBe(false)
    expect([prompts.get(key('a'), 0), prompts.get(other, 0)]).toEqual([1, 2])
  })
  test('expired prompts make room for new ones in a full table of remembered prompts', () => {
    const prompts = new DigestTable()
    for (let index = 0; index < 10; index++) prompts.put(1, key(index), index, 1000, 0, 10)
    for (let index = 10; index < 20; index++) prompts.put(1, key(index), index, 9000, 2000, 10)
    for (let index = 10; index < 20; index++) expect(prompts.get(key(index), 2000)).toBe(index)
  })
  test('expired prompts of other users make room for new ones before any that has not expired', () => {
    const prompts = new DigestTable()
    for (let index = 0; index < 6; index++) prompts.put(2, key(index), index, 1000, 0, 10)
    for (let index = 6; index < 10; index++) prompts.put(1, key(index), index, 9000, 0, 10)
    for (let index = 10; index < 16; index++) prompts.put(1, key(index), index, 9000, 2000, 10)
    for (let index = 6; index < 16; index++) expect(prompts.get(key(index), 2000), `${index}`).toBe(index)
  })
  test('after the maximum number of remembered prompts is changed, those that expire last are still known', () => {
    const prompts = new DigestTable()
    for (let index = 0; index < 20; index++) prompts.put(1, key(index), index, 1000 + index * 100, 0, 20)
    prompts.put(1, key('new'), 99, 9000, 0, 5)
    const known = Array.from({ length: 20 }, (_, index) => index).filter(
      (index) => prompts.get(key(index), 0) !== undefined,
    )
    expect(known).toEqual([16, 17, 18, 19])
    expect(prompts.get(key('new'), 0)).toBe(99)
  })
  test('digests that begin with the same 32 bits are bounded, so that looking one up stays cheap', () => {
    const prompts = new DigestTable()
    const alike = (index: number): Buffer => {
      const digest = Buffer.from(key(index))
      digest.writeUInt32LE(7)
      return digest
    }
    prompts.put(2, alike(-1), 1, 9000, 0, 10_000)
    for (let index = 0; index < 1000; index++) prompts.put(1, alike(index), index, 9000, 0, 10_000)
    const known = Array.from({ length: 1000 }, (_, index) => index).filter(
      (index) => prompts.get(alike(index), 0) !== undefined,
    )
    expect([known.length, known.at(-1)]).toEqual([63, 999])
    // Those of another user stay.
    expect(prompts.get(alike(-1), 0)).toBe(1)
  })
})
