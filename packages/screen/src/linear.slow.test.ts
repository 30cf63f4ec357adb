import process from 'node:process'
import { describe, expect, it } from 'vitest'
import { Pseudonyms } from './pseudonyms.ts'
import { compileRule, PII_KINDS, type RuleMatch } from './rule.ts'
import { TextScreen } from './screen.ts'

/** Expressions and texts on which matchers that go back take exponential or quadratic time. */
const ATTACKS: readonly [RuleMatch, string][] = [
  [{ regex: '(a+)+b' }, 'a'],
  [{ regex: '(a|a)*b' }, 'a'],
  [{ regex: '(a|aa)+$' }, 'a'],
  [{ regex: '(.*)(.*)(.*)(.*)x' }, 'a'],
  [{ regex: 'a.*b.*c' }, 'ab'],
  [{ regex: '([a-z]+\\s?)+@' }, 'abc '],
  [{ regex: '[a-z]{1,64}@' }, 'a'],
  [{ regex: 'a[^b]*b', most: 4096 }, 'a'],
  [{ regex: '(?s)<a.*?>.*?</a>', most: 4096 }, '<a>'],
  [{ words: ['a a a a a a a b'] }, 'a '],
  [{ secrets: true }, 'eyJhbGci'],
  [{ secrets: true }, '-----BEGIN PRIVATE KEY-----'],
  [{ secrets: true }, 'token=token='],
  [{ pii: PII_KINDS }, '1.1'],
  [{ pii: PII_KINDS }, '0 1'],
  [{ pii: PII_KINDS }, 'a.a@a.'],
  [{ pii: PII_KINDS }, 'a:'],
  [{ pii: PII_KINDS }, '+1-'],
]
const LENGTH = 2_000
const FACTOR = 32
/** What grows with the square takes 1,024 times as long. */
const MOST = 4 * FACTOR
/** A short text is cheap, and measured more often. */
const SHORT_TIMES = 16

/** CPU time of a work in microseconds: the quickest of several times. */
function cost(work: () => unknown, times = 4): number {
  let quickest = Infinity
  for (let time = 0; time < times; time++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    quickest = Math.min(quickest, user + system)
  }
  return quickest
}

function streamed(screen: TextScreen, text: string): void {
  const stream = screen.stream()
  for (let at = 0; at < text.length; at += 64) stream.push(text.slice(at, at + 64))
  stream.end()
}

function replaced(screen: TextScreen, text: string): void {
  const stream = screen.stream(new Pseudonyms({ key: Buffer.from('a key'), user: '' }))
  for (let at = 64; at < text.length; at += 64) stream.readTo(text, at)
  stream.readTo(text, text.length)
}

describe('the time of a rule', () => {
  for (const [match, unit] of ATTACKS)
    it(`grows with the length of the text for ${JSON.stringify(match).slice(0, 50)} on ${unit}…`, () => {
      const screen = new TextScreen([{ rule: compileRule('r', match), do: 'redact' }])
      const text = unit.repeat(LENGTH / unit.length)
      const long = unit.repeat((FACTOR * LENGTH) / unit.length)
      expect(cost(() => screen.apply(long)) / cost(() => screen.apply(text), SHORT_TIMES)).toBeLessThan(MOST)
      expect(
        cost(() => streamed(screen, long)) / cost(() => streamed(screen, text), SHORT_TIMES),
      ).toBeLessThan(MOST)
    })

  for (const [match, unit] of [
    [{ regex: '[a-z ]+' }, 'ab '],
    [{ regex: ['a b|b a', 'b.a'] }, 'a b '],
    [{ pii: PII_KINDS }, '0 1'],
  ] satisfies [RuleMatch, string][])
    it(`grows with the length of a text whose matches of ${JSON.stringify(match).slice(0, 50)} are replaced`, () => {
      const rule = compileRule('r', match)
      const screen = new TextScreen([
        { rule, do: 'replace' },
        { rule, do: 'redact' },
      ])
      const [text, long] = [unit.repeat(LENGTH / unit.length), unit.repeat((FACTOR * LENGTH) / unit.length)]
      expect(
        cost(() => replaced(screen, long)) / cost(() => replaced(screen, text), SHORT_TIMES),
      ).toBeLessThan(MOST)
    })

  for (const [what, text] of [
    ['backslashes', (length: number) => '\\'.repeat(length)],
    ['escapes of line breaks', (length: number) => '\\n'.repeat(length / 2)],
    ['escapes of backslashes', (length: number) => '\\u005c'.repeat(length / 6)],
    ['beginnings of JSON', (length: number) => '{"'.repeat(length / 2)],
    ['lists in lists', (length: number) => '['.repeat(length)],
    ['short strings of JSON', (length: number) => `[${'"a\\n",'.repeat(length / 6)}""]`],
    ['matches behind escapes', (length: number) => '\\nann@example.com'.repeat(length / 17)],
    ['JSON in JSON', (length: number) => nested('ann@example.com\n'.repeat(length / 200))],
  ] as const)
    it(`grows with the length of a text of ${what}`, () => {
      const screen = new TextScreen([
        { rule: compileRule('r', { regex: 'a.?b' }), do: 'redact' },
        { rule: compileRule('p', { pii: ['email'] }), do: 'redact' },
      ])
      const [short, long] = [text(LENGTH), text(FACTOR * LENGTH)]
      const growth = (MOST * long.length) / (FACTOR * short.length)
      expect(cost(() => screen.apply(long)) / cost(() => screen.apply(short), SHORT_TIMES)).toBeLessThan(
        growth,
      )
      expect(
        cost(() => streamed(screen, long)) / cost(() => streamed(screen, short), SHORT_TIMES),
      ).toBeLessThan(growth)
    })

  it('grows with the length of a long string of JSON with escapes that is read in steps', () => {
    const screen = new TextScreen([{ rule: compileRule('p', { pii: ['email'] }), do: 'replace' }])
    const text = (length: number): string => JSON.stringify(['ann@example.com\n'.repeat(length / 16)])
    const [short, long] = [text(20 * LENGTH), text(20 * FACTOR * LENGTH)]
    expect(
      cost(() => replaced(screen, long), 1) / cost(() => replaced(screen, short), SHORT_TIMES),
    ).toBeLessThan(MOST)
  })
})

/** A text in JSON in JSON, four levels deep. */
function nested(text: string): string {
  let result = text
  for (let level = 0; level < 4; level++) result = JSON.stringify({ content: result })
  return result
}
