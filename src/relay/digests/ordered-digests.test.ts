import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { searchForOneDigest } from './digest-store.ts'
import { OrderedDigests } from './ordered-digests.ts'

const digestOf = (name: string | number): Buffer => createHash('sha256').update(String(name)).digest()
const MINUTE_MS = 60_000
const valueOf = (digests: OrderedDigests, digest: Buffer): number | undefined =>
  digests.find(searchForOneDigest(digest), () => true)?.value

test.each([1, 3, 100, 1_000])(
  'of many sessions, exactly the %i that were used last are remembered',
  (most) => {
    const digests = new OrderedDigests()
    const retention = { ms: MINUTE_MS, most }
    for (let n = 0; n < most; n++) digests.remember(digestOf(n), n, retention)
    digests.remember(digestOf(0), 0, retention)
    digests.remember(digestOf('new'), 7, retention)
    for (let n = 1; n < most; n++)
      expect(valueOf(digests, digestOf(n)), `session ${n}`).toBe(n === 1 ? undefined : n)
    if (most > 1) expect(valueOf(digests, digestOf(0))).toBe(0)
    expect(valueOf(digests, digestOf('new'))).toBe(7)
  },
)

test('a remembered session is forgotten once its lifetime is over', () => {
  let nowMs = 1_000
  const digests = new OrderedDigests(() => nowMs)
  digests.remember(digestOf('a'), 1, { ms: MINUTE_MS, most: 10 })
  nowMs += MINUTE_MS - 1
  expect(valueOf(digests, digestOf('a'))).toBe(1)
  nowMs += 1
  expect(valueOf(digests, digestOf('a'))).toBeUndefined()
  expect(digests.startingWith([digestOf('a').readUInt32LE()], 8)).toEqual([])
})

test('after the maximum number of remembered sessions is lowered, the next sessions replace the surplus ones', () => {
  const digests = new OrderedDigests()
  for (let n = 0; n < 20; n++) digests.remember(digestOf(n), n, { ms: MINUTE_MS, most: 20 })
  for (let n = 0; n < 20; n++) digests.remember(digestOf('again'), 1, { ms: MINUTE_MS, most: 2 })
  const marks = [...Array(20).keys()].map((n) => digestOf(n).readUInt32LE())
  expect(digests.startingWith(marks, 20).map(({ value, index }) => [value, index])).toEqual([[19, 19]])
})

test('a remembered session is found only if all bytes of its digest match, not by the first 32 bits alone', () => {
  const digests = new OrderedDigests()
  digests.remember(digestOf('a'), 1, { ms: MINUTE_MS, most: 10 })
  const other = Buffer.from(digestOf('a'))
  other[23] = (other[23] ?? 0) ^ 1
  expect(valueOf(digests, other)).toBeUndefined()
})
