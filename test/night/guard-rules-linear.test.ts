import { describe, expect, it } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../fixtures/pace.ts'
import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule, PII_KINDS, type RuleMatch } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'

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
/** Characters of the shorter text; the longer one is eight times as long. */
const LENGTH = 8_000

/** Asserts that the time of a work is in proportion to the length of the text. */
async function expectLinear(
  make: (length: number) => string,
  work: (text: string) => unknown,
  length = LENGTH,
): Promise<void> {
  expect(await growthOf(length, make, work)).toBeLessThan(LINEAR_GROWTH)
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
    it(`grows with the length of the text for ${JSON.stringify(match).slice(0, 50)} on ${unit}…`, async () => {
      const screen = new TextScreen([{ rule: compileRule('r', match), do: 'redact' }])
      const text = (length: number): string => unit.repeat(length / unit.length)
      await expectLinear(text, (one) => screen.apply(one))
      await expectLinear(text, (one) => streamed(screen, one))
    })

  for (const [match, unit] of [
    [{ regex: '[a-z ]+' }, 'ab '],
    [{ regex: ['a b|b a', 'b.a'] }, 'a b '],
    [{ pii: PII_KINDS }, '0 1'],
  ] satisfies [RuleMatch, string][])
    it(`grows with the length of a text whose matches of ${JSON.stringify(match).slice(0, 50)} are replaced`, async () => {
      const rule = compileRule('r', match)
      const screen = new TextScreen([
        { rule, do: 'replace' },
        { rule, do: 'redact' },
      ])
      const text = (length: number): string => unit.repeat(length / unit.length)
      await expectLinear(text, (one) => replaced(screen, one))
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
    it(`grows with the length of a text of ${what}`, async () => {
      const screen = new TextScreen([
        { rule: compileRule('r', { regex: 'a.?b' }), do: 'redact' },
        { rule: compileRule('p', { pii: ['email'] }), do: 'redact' },
      ])
      await expectLinear(text, (one) => screen.apply(one))
      await expectLinear(text, (one) => streamed(screen, one))
    })

  it('grows with the length of a long string of JSON with escapes that is read in steps', async () => {
    const screen = new TextScreen([{ rule: compileRule('p', { pii: ['email'] }), do: 'replace' }])
    const text = (length: number): string => JSON.stringify(['ann@example.com\n'.repeat(length / 16)])
    await expectLinear(text, (one) => replaced(screen, one), 5 * LENGTH)
  })
})

/** A text in JSON in JSON, four levels deep. */
function nested(text: string): string {
  let result = text
  for (let level = 0; level < 4; level++) result = JSON.stringify({ content: result })
  return result
}
