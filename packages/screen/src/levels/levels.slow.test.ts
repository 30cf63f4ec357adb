import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { Pseudonyms } from '../pseudonyms.ts'
import { compileRule } from '../rule.ts'
import { TextScreen } from '../screen.ts'
import { escaped, MAX_LEVELS, unescaped } from './escapes.ts'

const WITH = '<"#">'
const rules = (...regexes: string[]) =>
  new TextScreen(
    regexes.map((regex) => ({ rule: compileRule('r', { regex, most: 24 }), do: 'redact', with: WITH })),
  )
const screens = [
  rules('a+b'),
  rules(String.raw`\bab\b`, 'n+a'),
  rules(String.raw`\d{3}`, 'b.c'),
  rules(String.raw`a.{0,9}b`),
  rules('^ab', 'c$'),
  rules(String.raw`\\n`, 'u00'),
  new TextScreen([
    { rule: compileRule('f', { regex: 'b' }), do: 'flag' },
    { rule: compileRule('r', { regex: 'a+b' }), do: 'redact', with: WITH },
    { rule: compileRule('b', { words: ['stop'] }), do: 'block' },
  ]),
  new TextScreen([
    { rule: compileRule('w', { words: ['ab', 'nab'] }), do: 'replace' },
    { rule: compileRule('r', { regex: 'a+b' }), do: 'replace' },
  ]),
]
const UNITS = [
  'a', 'b', 'n', 'u', '0', '0061', '6', '12', '123', '"', '\\', '\\\\', '\\n', '\\"', '\\u0061', '\\u00', '\n', ' ',
  '{', '}', '[', ']', ':', ',', '{"', '":"', '"}', '{\\"', '\\":\\"', '\\"}', '{\\\\\\"', 'stop', 'é', '😀', '\\ud83d\\ude00', 'true', '-',
] as const // biome-ignore format: a table
const hostile = fc.array(fc.constantFrom(...UNITS), { maxLength: 30 }).map((units) => units.join(''))
const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 20 })
const piece = fc
  .array(
    fc.constantFrom(
      'a',
      'b',
      'aab',
      '12',
      '123',
      '"',
      '\\',
      '\n',
      '/',
      'é',
      '😀',
      ' ',
      'nab',
      '{',
      '[',
      'u0061',
    ),
    {
      maxLength: 8,
    },
  )
  .map((units) => units.join(''))

function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, n = 0; at < text.length; n += 1) {
    const length = lengths[n % lengths.length] as number
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

const made = () => new Pseudonyms({ key: Buffer.alloc(32), user: 'ann' })

function streamed(screen: TextScreen, pieces: readonly string[], isJson: boolean) {
  const stream = screen.stream(made(), isJson)
  let text = ''
  for (const one of pieces) text += stream.push(one)
  text += stream.end()
  return { text, counts: stream.counts, blockedBy: stream.blockedBy }
}

/** A text in a string of JSON, in a string of JSON, and so on. */
function nested(text: string, levels: number, around: (inner: string) => unknown): string {
  let result = text
  for (let level = 0; level < levels; level += 1) result = JSON.stringify(around(result))
  return result
}

const AROUND: readonly ((inner: string) => unknown)[] = [
  (inner) => ({ content: inner }),
  (inner) => [{ type: 'text', text: inner, n: 7 }],
  (inner) => ({ [inner]: null, also: [true, 1.5] }),
  (inner) => [inner],
  (inner) => inner,
]
const OUT = (text: unknown): string => {
  if (typeof text === 'string') return text
  const value = text as Record<string, unknown> & unknown[]
  if (Array.isArray(value))
    return typeof value[0] === 'string' ? value[0] : String((value[0] as { text: unknown }).text)
  return 'content' in value ? String(value['content']) : (Object.keys(value)[0] as string)
}

describe('a text with escapes', () => {
  it('gives the same result however it is cut', () => {
    fc.assert(
      fc.property(fc.nat(screens.length - 1), hostile, sizes, fc.boolean(), (index, text, sizes, isJson) => {
        const screen = screens[index] as TextScreen
        const whole = screen.apply(text, made(), isJson)
        expect(streamed(screen, cut(text, sizes), isJson)).toEqual(whole)
      }),
      { numRuns: lawRuns(20_000) },
    )
  })

  it('has no match left at any level', () => {
    // None of these letters is one of an escape.
    const screen = rules('x+y')
    fc.assert(
      fc.property(hostile, (text) => {
        const { text: sent } = screen.apply(text)
        for (let level = 0; level <= MAX_LEVELS; level += 1) expect(unescaped(sent, level)).not.toMatch(/x+y/)
      }),
      { numRuns: lawRuns(10_000) },
    )
  })

  it('is found and replaced at each level, and stays JSON at each', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: MAX_LEVELS }),
        fc.constantFrom(...AROUND),
        fc.constantFrom('', 'see: ', '```json\n'),
        fc.tuple(piece, piece),
        sizes,
        (levels, around, before, [left, right], sizes) => {
          // What looks like JSON is read as JSON.
          // A quote within a text is a quote.
          fc.pre(before === '' || typeof around('') === 'object')
          fc.pre(!/[{[]\s*["{[\\]|^\s*["[]/.test(left))
          const screen = new TextScreen([
            { rule: compileRule('r', { regex: 'KEY[0-9]{4}' }), do: 'redact', with: WITH },
          ])
          const inner = (key: string) => `${left}\n${key}\n${right}`
          const text = before + nested(inner('KEY1234'), levels, around)
          const { text: sent, counts } = screen.apply(text)
          expect(counts).toEqual([1])
          let value = sent.slice(before.length)
          for (let level = 0; level < levels; level += 1) value = OUT(JSON.parse(value))
          expect(value).toBe(inner(WITH))
          expect(streamed(screen, cut(text, sizes), false).text).toBe(sent)
        },
      ),
      { numRuns: lawRuns(3000) },
    )
  })

  it('keeps every other byte, and stays JSON whatever is replaced in it', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({
          stringUnit: fc.constantFrom('a', 'b', '1', '"', '\\', '\n', 'n', '{', '[', ':', ',', 'é'),
        }),
        fc.integer({ min: 0, max: 3 }),
        fc.nat(5),
        fc.boolean(),
        (value, levels, index, isIndented) => {
          const screen = screens[index] as TextScreen
          const json = JSON.stringify({ value }, null, isIndented ? 2 : 0)
          const text = nested(json, levels, (inner) => ({ content: inner }))
          let sent: string = screen.apply(text).text
          for (let level = 0; level < levels; level += 1)
            sent = Object.values(JSON.parse(sent) as object)[0] as string
          expect(() => JSON.parse(sent) as unknown).not.toThrow()
          const nothing = new TextScreen([{ rule: compileRule('n', { words: ['nothing'] }), do: 'redact' }])
          expect(nothing.apply(text).text).toBe(text)
        },
      ),
      { numRuns: lawRuns(3000) },
    )
  })

  it('has the same token at every level, which is put back as the value is written there', () => {
    const value = 'say "hi"\\\nto <x>'
    const screen = new TextScreen([{ rule: compileRule('q', { regex: '(?s)say.*?>' }), do: 'replace' }])
    for (let levels = 0; levels <= MAX_LEVELS; levels += 1) {
      const pseudonyms = made()
      const text = nested(`a\n${value}.`, levels, (inner) => ({ content: inner }))
      const { text: sent } = screen.apply(text, pseudonyms)
      expect([...pseudonyms.entries()]).toEqual([[expect.stringMatching(/^\[\[Q_[0-9a-f]{8}\]\]$/), value]])
      expect(pseudonyms.restore(sent)).toBe(text)
      for (const size of [1, 2, 3, 7]) {
        const restorer = pseudonyms.restorer()
        const restored = cut(sent, [size]).map((one) => restorer.push(one))
        expect(restored.join('') + restorer.end()).toBe(text)
      }
    }
  })
})

it('escapes are those of JSON; everything else stays as it is', () => {
  expect(unescaped(String.raw`\n\t\"\\\/\b\f\r\u0041 \x \u12 \u00g0 \ `, 1)).toBe(
    '\n\t"\\/\b\f\rA \\x \\u12 \\u00g0 \\ ',
  )
  expect(unescaped(escaped('a"\n\\', 8), 8)).toBe('a"\n\\')
})
