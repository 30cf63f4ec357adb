import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, it } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { Pseudonyms } from './pseudonyms.ts'
import { compileRule, type Rule, type RuleMatch } from './rule.ts'
import { TextScreen } from './screen.ts'
import type { ScreenRule } from './screen-rule.ts'

/** Expressions over few letters, so that random texts match often, and nearly, and in many ways at once. */
const EXPRESSIONS = [
  'ab',
  'a+b',
  'a[ab]{2}c',
  '(?:ab|abc|bca)c?',
  '"[^"]*"',
  '".*?"',
  'a.{0,3}?c',
  '(?i)AB+',
  '\\bab\\b',
  '\\Bb',
  '(?m)^a.?$',
  '^b',
  'c$',
  'a|ab|abc',
  '(?:a|b)*c',
  '😀+',
  '[^a]{2}😀',
  'é|e\u0301',
  'a(?:bc)*',
  '(?:a{1,3}b){2}',
  'b\\s+c',
  '(?s).b.c',
  'a[^b]*b',
  '\\pL{3}',
  '(?i)ſa|K',
]
const LETTERS = ['a', 'b', 'c', 'A', 'B', '"', ' ', '\n', '😀', 'é', 'e', '\u0301', 's', 'k', '\u212a', '密']
const MOST = 12

const expression = fc.constantFrom(...EXPRESSIONS)
const text = fc.array(fc.constantFrom(...LETTERS), { maxLength: 40 }).map((letters) => letters.join(''))
const match: fc.Arbitrary<RuleMatch> = fc.oneof(
  expression.map((regex) => ({ regex, most: MOST })),
  fc.array(expression, { minLength: 2, maxLength: 3 }).map((regex) => ({ regex, most: MOST })),
  fc
    .uniqueArray(fc.constantFrom('a', 'ab', 'a b', 'BA', '密', 'é', 'sk'), { minLength: 1, maxLength: 3 })
    .map((words) => ({ words })),
)
const compiled = new Map<string, Rule>()

/** Compiles each rule once. */
function compile(match: RuleMatch): Rule {
  const name = JSON.stringify(match)
  const rule = compiled.get(name) ?? compileRule('r', match)
  compiled.set(name, rule)
  return rule
}

/** A rule whose scanners may spend so much on the automaton; without any allowance they are always guided. */
function withAllowance(match: RuleMatch, allowed: number): Rule {
  const rule = compile(match)
  return { ...rule, searches: rule.searches.map((search) => ({ ...search, allowed })) }
}

const rule: fc.Arbitrary<ScreenRule> = fc
  .record({
    match,
    do: fc.constantFrom(
      'redact' as const,
      'redact' as const,
      'flag' as const,
      'block' as const,
      'replace' as const,
    ),
    with: fc.constantFrom('#', '<>'),
  })
  .map(({ match, ...action }) => ({ rule: compile(match), ...action }))
const screen = fc.array(rule, { minLength: 1, maxLength: 3 }).map((rules) => new TextScreen(rules))
const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 40 })

/** Cuts a text into pieces of these sizes, over and over, also between the halves of a character. */
function cut(text: string, sizes: readonly number[]): readonly string[] {
  const pieces: string[] = []
  for (let at = 0, piece = 0; at < text.length; piece++) {
    const size = sizes[piece % sizes.length] as number
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

function streamed(screen: TextScreen, pieces: readonly string[]) {
  const stream = screen.stream()
  const outputs = pieces.map((piece) => stream.push(piece))
  outputs.push(stream.end())
  return { outputs, text: outputs.join(''), counts: stream.counts, blockedBy: stream.blockedBy }
}

/** The matches of an expression as another implementation of RE2 finds them. */
function found(regex: string, text: string): readonly { start: number; end: number }[] {
  const matcher = RE2JS.compile(regex).matcher(text)
  const spans: { start: number; end: number }[] = []
  while (matcher.find()) spans.push({ start: matcher.start(), end: matcher.end() })
  return spans
}

function redacted(text: string, spans: readonly { start: number; end: number }[]): string {
  let result = ''
  let passed = 0
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    if (passed > 0 && start < passed) {
      passed = Math.max(passed, end)
      continue
    }
    result += `${text.slice(passed, start)}#`
    passed = end
  }
  return result + text.slice(passed)
}

describe('a screen', () => {
  it('redacts the matches of an expression that RE2 finds', () => {
    fc.assert(
      fc.property(expression, text, (regex, text) => {
        const screen = new TextScreen([{ rule: compile({ regex }), do: 'redact', with: '#' }])
        const spans = found(regex, text)
        expect(screen.find(text).map(({ start, end }) => ({ start, end }))).toEqual(spans)
        expect(screen.apply(text).text).toBe(redacted(text, spans))
      }),
      { numRuns: lawRuns(3000) },
    )
  })

  it('replaces the matches of several expressions that overlap by one text', () => {
    fc.assert(
      fc.property(fc.array(expression, { minLength: 2, maxLength: 4 }), text, (regexes, text) => {
        const rules = regexes.map((regex) => ({
          rule: compile({ regex }),
          do: 'redact' as const,
          with: '#',
        }))
        const spans = regexes.flatMap((regex) => found(regex, text))
        expect(new TextScreen(rules).apply(text).text).toBe(redacted(text, spans))
        const together = new TextScreen([{ rule: compile({ regex: regexes }), do: 'redact', with: '#' }])
        expect(together.apply(text).text).toBe(redacted(text, spans))
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  it('gives the same text, counts and verdict however a text is cut', () => {
    fc.assert(
      fc.property(screen, text, sizes, (screen, text, sizes) => {
        const { outputs: _, ...result } = streamed(screen, cut(text, sizes))
        expect(result).toEqual(screen.apply(text))
      }),
      { numRuns: lawRuns(5000) },
    )
  })

  it('writes the same tokens however a text is read', () => {
    const made = () => new Pseudonyms({ key: Buffer.from('a key'), user: 'ann' })
    fc.assert(
      fc.property(screen, text, sizes, (screen, text, sizes) => {
        const [whole, pushed, read] = [made(), made(), made()]
        const expected = screen.apply(text, whole)
        const pieces = cut(text, sizes)
        const stream = screen.stream(pushed)
        const output = pieces.map((piece) => stream.push(piece)).join('') + stream.end()
        const { counts, blockedBy } = stream
        expect({ text: output, counts, blockedBy }).toEqual(expected)
        const reader = screen.stream(read)
        let at = 0
        let given = ''
        for (const { length } of pieces) given += reader.readTo(text, (at += length))
        expect({ text: given, counts: reader.counts, blockedBy: reader.blockedBy }).toEqual(expected)
        for (const one of [pushed, read]) expect([...one.entries()]).toEqual([...whole.entries()])
      }),
      { numRuns: lawRuns(5000) },
    )
  })

  it('waits with a token until its match has ended, and those that overlap it', () => {
    const tokens = (regexes: readonly string[], pieces: readonly string[]) => {
      const pseudonyms = new Pseudonyms({ key: Buffer.from('a key'), user: 'ann' })
      const rules = regexes.map((regex) => ({ rule: compile({ regex }), do: 'replace' as const }))
      const stream = new TextScreen(rules).stream(pseudonyms)
      const outputs = pieces.map((piece) => stream.push(piece))
      outputs.push(stream.end())
      const values = [...pseudonyms.entries()]
      return outputs.map((output) =>
        values.reduce((text, [token, value]) => text.replaceAll(token, `<${value}>`), output),
      )
    }
    expect(tokens(['a(?:bc)*'], ['xa', 'bc', 'b', 'cbx'])).toEqual(['x', '', '', '<abcbc>bx', ''])
    expect(tokens(['abc', 'cd+'], ['xab', 'c', 'd', 'dx'])).toEqual(['x', '', '', '<abcdd>x', ''])
    expect(tokens(['abc', 'cdd'], ['xabc', 'd', 'x'])).toEqual(['x', '', '<abc>dx', ''])
  })

  it('hides what a match gains when it goes on in the next piece', () => {
    const screen = new TextScreen([{ rule: compile({ regex: 'a(?:bc)*' }), do: 'redact', with: '#' }])
    expect(streamed(screen, ['xa', 'bc', 'b', 'cbx']).outputs).toEqual(['x#', '', '', 'bx', ''])
  })

  it('keeps nothing of a text that it has blocked', () => {
    const screen = new TextScreen([
      { rule: compile({ words: ['a'] }), do: 'block' },
      { rule: compile({ words: ['密'] }), do: 'redact', with: '#' },
    ])
    const stream = screen.stream()
    expect(stream.push('密a密')).toBe('#')
    expect([stream.blockedBy, stream.held, stream.retained]).toEqual([0, 0, 0])
  })

  it('never gives out a part of a match', () => {
    fc.assert(
      fc.property(
        fc.array(expression, { minLength: 1, maxLength: 3 }),
        text,
        sizes,
        (regexes, text, sizes) => {
          const rules = regexes.map((regex) => ({
            rule: compile({ regex }),
            do: 'redact' as const,
            with: '#',
          }))
          const spans = regexes.flatMap((regex) => found(regex, text))
          const kept = [...text.matchAll(/[^]/g)]
            .filter(({ index }) => !spans.some(({ start, end }) => start <= index && index < end))
            .map(([unit]) => unit)
          const { text: output } = streamed(new TextScreen(rules), cut(text, sizes))
          expect(output.replaceAll('#', '').replaceAll('[REDACTED]', '')).toBe(kept.join(''))
        },
      ),
      { numRuns: lawRuns(2000) },
    )
  })

  it('holds back at most as many characters as its longest rule declares', () => {
    fc.assert(
      fc.property(screen, text, sizes, (screen, text, sizes) => {
        const stream = screen.stream()
        for (const piece of cut(text, sizes)) {
          stream.push(piece)
          // Half of a character waits for the other half, whatever the rules.
          const half = piece.isWellFormed() ? 0 : 1
          expect(stream.held).toBeLessThanOrEqual(screen.most + half)
          const most = Math.max(...screen.rules.map(({ rule }) => rule.most))
          expect(stream.retained).toBeLessThanOrEqual(most + half)
        }
      }),
      { numRuns: lawRuns(3000) },
    )
  })

  it('never cuts between the halves of a character', () => {
    fc.assert(
      fc.property(screen, text, sizes, (screen, text, sizes) => {
        for (const output of streamed(screen, cut(text, sizes)).outputs)
          expect(output.isWellFormed()).toBe(true)
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  it('gives out each character as soon as no rule can match it any more', () => {
    // What may still come, for expressions whose matches are decided within so many characters.
    const letters = ['a', 'b', 'c']
    const continuations = ['', ...letters]
    for (let length = 2; length <= 4; length++)
      continuations.push(
        ...continuations.filter((c) => c.length === length - 1).flatMap((c) => letters.map((l) => c + l)),
      )
    const decided = [
      'ab',
      'a+b',
      'a[ab]{2}c',
      'abc|bca',
      'a.{0,3}?c',
      '\\bab\\b',
      'a(?:bc)*',
      'c$',
      '(?:a|b)*c',
    ]
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom(...decided), { minLength: 1, maxLength: 3 }),
        fc.array(fc.constantFrom(...letters), { maxLength: 10 }),
        (regexes, letters) => {
          const screen = new TextScreen(
            regexes.map((regex) => ({
              rule: compile({ regex, most: 40 }),
              do: 'redact' as const,
              with: '#',
            })),
          )
          const stream = screen.stream()
          const text = letters.join('')
          for (const letter of text) stream.push(letter)
          if (stream.held === 0) return
          const first = text.length - stream.held
          const isMatched = (continuation: string) =>
            screen.find(text + continuation).some(({ start, end }) => start <= first && first < end)
          expect(continuations.some(isMatched)).toBe(true)
        },
      ),
      { numRuns: lawRuns(1000) },
    )
  })

  it('gives the same result when its tables are full and begin anew', () => {
    const match = { regex: '(?:a|b)*a(?:a|b){14}c', most: 60 }
    const screen = new TextScreen([{ rule: withAllowance(match, Infinity), do: 'redact', with: '#' }])
    let seed = 7
    const next = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31
    const text = Array.from({ length: 60_000 }, () => (next() < 0.02 ? ' ' : next() < 0.5 ? 'a' : 'b')).join(
      '',
    )
    const closed = text.replaceAll(/([ab]{20}) /g, '$1c')
    const whole = screen.apply(closed).text
    const spans = found(match.regex, closed).filter(({ start, end }) => end - start <= 60)
    expect(spans.length).toBeGreaterThan(50)
    for (const { start, end } of spans) expect(whole).not.toContain(closed.slice(start, end))
    // Another text is read with the same tables at the same time.
    const stream = screen.stream()
    const other = screen.stream()
    let output = ''
    for (const piece of cut(closed, [5, 3])) {
      output += stream.push(piece)
      other.push(piece.replaceAll('a', 'ba'))
    }
    expect(output + stream.end()).toBe(whole)
    const [search] = screen.rules[0]?.rule.searches ?? []
    if (!search || !('automaton' in search)) throw new Error('an expression is searched by an automaton')
    expect(search.automaton.generation).toBeGreaterThan(1)
    expect(search.automaton.table.byteLength).toBeLessThanOrEqual(4 * 2 ** 20)
    const guided = new TextScreen([{ rule: withAllowance(match, 0), do: 'redact', with: '#' }])
    expect(guided.apply(closed).text).toBe(whole)
  })
})
