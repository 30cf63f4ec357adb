import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scalarScanner, isPlain, PlainText } from './plain-text.ts'

/** Bytes, mostly plain, so that there are runs to skip. */
const texts = fc
  .array(fc.oneof({ weight: 40, arbitrary: fc.constant(0x61) }, fc.integer({ min: 0, max: 255 })), {
    maxLength: 300,
  })
  .map((bytes) => Buffer.from(bytes))

function endOf(bytes: Buffer, from: number): number {
  const found = bytes.subarray(from).findIndex((byte) => !isPlain(byte))
  return found === -1 ? bytes.length : from + found
}

describe('the plain bytes of a text', () => {
  test('end where the first byte stands that a JSON string must escape, or that ends it', () => {
    fc.assert(
      fc.property(texts, (bytes) => {
        const text = new PlainText(bytes)
        for (let at = 0; at <= bytes.length; at++) expect(text.endOf(at)).toBe(endOf(bytes, at))
      }),
    )
  })

  test.each(Array.from({ length: 256 }, (_, byte) => byte))(
    'are ended, or not, by byte %i at any place',
    (byte) => {
      for (let at = 0; at < 40; at++) {
        const bytes = Buffer.alloc(40, 'a')
        bytes[at] = byte
        expect(new PlainText(bytes).endOf(0)).toBe(isPlain(byte) ? 40 : at)
      }
    },
  )

  test('are found beyond what memory takes at once, forwards and backwards', () => {
    const bytes = Buffer.alloc(200_000, 'a')
    for (const at of [65_535, 65_536, 131_071, 131_072, 199_999]) bytes[at] = 0x22
    const text = new PlainText(bytes)
    expect([0, 65_536, 65_537, 131_072, 131_073, 10].map((at) => text.endOf(at))).toEqual([
      65_535, 65_536, 131_071, 131_072, 199_999, 65_535,
    ])
    expect(text.endOf(200_000)).toBe(200_000)
  })

  test('are those of each text, where two are looked at in turn', () => {
    const [one, other] = [Buffer.from('aaaa"aaaaaaaaaaaa'), Buffer.from('aaaaaaaaaa\\aaaaaa')]
    const [first, second] = [new PlainText(one), new PlainText(other)]
    expect([first.endOf(0), second.endOf(0), first.endOf(1), second.endOf(5)]).toEqual([4, 10, 4, 10])
  })

  test('are the same byte by byte', () => {
    fc.assert(
      fc.property(texts, fc.nat(300), (bytes, from) => {
        const slow = scalarScanner()
        slow.memory.set(bytes)
        const start = Math.min(from, bytes.length)
        expect(slow.plainEnd(start, bytes.length)).toBe(endOf(bytes, start))
      }),
    )
  })
})
