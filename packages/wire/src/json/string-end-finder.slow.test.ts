import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { SOURCE_SHA256 } from './string-end-module.ts'
import { StringEndFinder } from './string-end-finder.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

/** The end of a string, found byte by byte. */
interface End {
  /** Offset of the closing quote, of the invalid character, or of the text's end. */
  readonly at: number
  readonly isQuote: boolean
  /** Offsets at which a character or an escape sequence begins, including the end. */
  readonly starts: ReadonlySet<number>
}

function endOf(bytes: Buffer, from: number): End {
  const starts = new Set<number>()
  let at = from
  for (;;) {
    starts.add(at)
    const text = bytes.toString('latin1', at, at + 6)
    const size = /^(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))/.exec(text)?.[0].length
    if (size === undefined || text < ' ') return { at, isQuote: text.startsWith('"'), starts }
    at += size
  }
}

function check(bytes: Buffer, from: number, strings = new StringEndFinder(bytes)): void {
  const { at, isQuote, starts } = endOf(bytes, from)
  const found = strings.skip(from)
  if (isQuote && bytes.length - at >= 16) expect(found).toBe(at)
  expect(starts).toContain(found)
  expect(at - found).toBeLessThan(16 + 6)
  if (!isQuote && bytes.length - at >= 16) expect(at - found).toBeLessThan(16)
}

const PIECES = [
  'a',
  'b',
  'u',
  '0',
  'F',
  'é',
  '"',
  '\\',
  '\\\\',
  '\\"',
  '\\n',
  '\\u00e9',
  '\\u12',
  '\\x',
  '\n',
]
const texts = fc
  .array(
    fc.oneof(
      { weight: 10, arbitrary: fc.constant('aaaaaaa') },
      { weight: 20, arbitrary: fc.constantFrom(...PIECES) },
      fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
    ),
    { maxLength: 120 },
  )
  .map((pieces) => Buffer.from(pieces.join(''), 'latin1'))

describe('the end of a string', () => {
  test('the end of a JSON string is the first quote that no backslash escapes, unless an error precedes it', () => {
    fc.assert(
      fc.property(texts, (bytes) => {
        const strings = new StringEndFinder(bytes)
        const starts = [...endOf(bytes, 0).starts]
        for (const from of starts) check(bytes, from, strings)
      }),
      { numRuns: lawRuns(1_000) },
    )
  })

  test.each(Array.from({ length: 256 }, (_, byte) => byte))(
    'the end of a JSON string, or an error before it, is found with byte %i at any position, escaped and not',
    (byte) => {
      for (let at = 0; at < 34; at++) {
        const bytes = Buffer.from(`${'a'.repeat(40)}"${'a'.repeat(20)}`)
        bytes[at] = byte
        check(bytes, 0)
        if (at === 0) continue
        bytes[at - 1] = 0x5c
        check(bytes, 0)
      }
    },
  )

  test.each(Array.from({ length: 256 }, (_, byte) => byte))(
    'the end of a JSON string, or an error before it, is found with byte %i as a digit of an escape at any position',
    (byte) => {
      for (let at = 0; at < 34; at++) {
        for (let digit = 0; digit < 4; digit++) {
          const bytes = Buffer.from(`${'a'.repeat(at)}\\u09aF${'a'.repeat(40 - at)}"${'a'.repeat(20)}`)
          bytes[at + 2 + digit] = byte
          check(bytes, 0)
        }
      }
    },
  )

  test('the end of a JSON string is found after any number of backslashes at any position', () => {
    for (let at = 0; at < 34; at++)
      for (let count = 0; count < 40; count++)
        check(Buffer.from(`${'a'.repeat(at)}${'\\'.repeat(count)}"${'a'.repeat(20)}"${'a'.repeat(20)}`), 0)
  })

  test('the end of a JSON string is found beyond the 64 KiB of one read, forwards and backwards', () => {
    const quotes = [65_535, 65_536, 131_071, 131_072, 199_900]
    const bytes = Buffer.alloc(200_000, 'a')
    for (const at of quotes) bytes[at] = 0x22
    const strings = new StringEndFinder(bytes)
    expect([0, 65_536, 65_537, 131_072, 131_073, 10].map((at) => strings.skip(at))).toEqual([
      ...quotes,
      65_535,
    ])
  })

  test('the end of a JSON string is found where an escape sequence lies across two reads', () => {
    for (const sequence of ['\\"', '\\\\', '\\u0022'])
      for (let at = 65_500; at < 65_540; at++) {
        const text = `${'a'.repeat(at)}${sequence}${'a'.repeat(70_000)}"${'a'.repeat(20)}`
        expect(new StringEndFinder(Buffer.from(text)).skip(0)).toBe(text.length - 21)
      }
  })

  test('the end of a JSON string is found in each of two texts that are read in turn', () => {
    const tail = 'a'.repeat(20)
    const first = new StringEndFinder(Buffer.from(`aaaa"${tail}`))
    const second = new StringEndFinder(Buffer.from(`aaaaaaaaaa"${tail}`))
    expect([first.skip(0), second.skip(0), first.skip(1), second.skip(5)]).toEqual([4, 10, 4, 10])
  })
})

describe('a CPU without vector instructions', () => {
  afterEach(() => vi.unstubAllGlobals())

  test('without WebAssembly vector instructions, the JSON scanner reads the same objects byte by byte', async () => {
    vi.stubGlobal('WebAssembly', {
      Module() {
        throw new Error('no vectors')
      },
    })
    vi.resetModules()
    const { scanObject } = await import('./json-scan.ts')
    const text = `{"a":"${'x'.repeat(70_000)}\\u00e9\\n${'y'.repeat(40)}","b":"\\\\"}`
    expect(scanObject(Buffer.from(text)).value('a')).toBe(JSON.parse(text).a)
    const broken = Buffer.from(text.replace('\\n', '\\x'))
    expect(() => scanObject(broken)).toThrow('a character that can be escaped')
  })
})

test('the compiled WebAssembly module of the JSON scanner was made from the source in its folder', () => {
  const source = readFileSync(new URL('string-end.wat', import.meta.url))
  // If this fails, run `node tools/assemble.mjs`.
  expect(hash('sha256', source)).toBe(SOURCE_SHA256)
})
