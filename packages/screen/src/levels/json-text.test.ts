import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { Pseudonyms } from '../pseudonyms.ts'
import { compileRule } from '../rule.ts'
import { TextScreen } from '../screen.ts'

const redacting = new TextScreen([
  {
    rule: compileRule('r', { regex: ['a+b', String.raw`\d{4}-?\d{4}`, String.raw`\n/`] }),
    do: 'redact',
    with: '<"#">',
  },
])
const blocking = new TextScreen([
  { rule: compileRule('r', { regex: 'a+b' }), do: 'redact' },
  { rule: compileRule('b', { words: ['stop'] }), do: 'block' },
])

const string = fc
  .array(
    fc.constantFrom(
      'a',
      'b',
      '1',
      '1234',
      '-',
      '"',
      '\\',
      '\n',
      '/',
      'é',
      '😀',
      '\u2028',
      ' ',
      'stop',
      'u0061',
    ),
    {
      maxLength: 10,
    },
  )
  .map((parts) => parts.join(''))
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    string,
    fc.constantFrom(1, -0.5, 1e21, true, false, null, 12_345_678, 1234),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(string, tie('value'), { maxKeys: 3 }),
  ),
})).value

/** A value with all its strings screened, keys and numbers among them. */
function screened(screen: TextScreen, value: unknown): unknown {
  if (typeof value === 'string') return screen.apply(value).text
  if (typeof value === 'number') {
    const { text } = screen.apply(String(value))
    return text === String(value) ? value : text
  }
  if (Array.isArray(value)) return value.map((item) => screened(screen, item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [screen.apply(key).text, screened(screen, item)]),
  )
}

function streamed(screen: TextScreen, text: string, size: number) {
  const stream = screen.stream(undefined, true)
  let output = ''
  for (let at = 0; at < text.length; at += size) output += stream.push(text.slice(at, at + size))
  output += stream.end()
  return { text: output, counts: stream.counts, blockedBy: stream.blockedBy }
}

/** Some characters written in another way that JSON allows. */
function otherwise(json: string, every: number): string {
  let n = 0
  return json.replaceAll(/\\.|[a-zé/]/gu, (found) => {
    if (++n % every !== 0 || found === '\\u') return found
    if (found === '/') return '\\/'
    const character = JSON.parse(`"${found}"`) as string
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

describe('a text that is JSON', () => {
  it('has every string, key and number screened by itself, and stays JSON', () => {
    fc.assert(
      fc.property(value, fc.boolean(), (value, isIndented) => {
        const { text } = redacting.apply(JSON.stringify(value, null, isIndented ? 1 : 0), undefined, true)
        expect(JSON.parse(text)).toEqual(screened(redacting, value))
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  it('is the same however it is cut', () => {
    fc.assert(
      fc.property(
        value,
        string,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        (value, rest, size, isBlocking) => {
          const screen = isBlocking ? blocking : redacting
          // What follows the value is no JSON.
          const text = JSON.stringify(value) + rest
          expect(streamed(screen, text, size)).toEqual(screen.apply(text, undefined, true))
        },
      ),
      { numRuns: lawRuns(3000) },
    )
  })

  it('keeps its bytes where nothing is changed, whatever escapes it uses', () => {
    fc.assert(
      fc.property(
        value,
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 9 }),
        (value, every, size) => {
          const screen = new TextScreen([{ rule: compileRule('r', { words: ['nothing'] }), do: 'redact' }])
          const string = JSON.stringify(value)
          const text = /true|false|null|e\+/.test(string) ? string : otherwise(string, every)
          expect(streamed(screen, text, size).text).toBe(text)
        },
      ),
      { numRuns: lawRuns(2000) },
    )
  })

  it('hides a match that is written with escapes', () => {
    expect(redacting.apply(String.raw`{"x":"\u0061\u0061b c"}`, undefined, true).text).toBe(
      String.raw`{"x":"<\"#\"> c"}`,
    )
    expect(redacting.apply(String.raw`{"x":1234,"y":12345678}`, undefined, true).text).toBe(
      String.raw`{"x":1234,"y":"<\"#\">"}`,
    )
  })

  it('is screened as plain text if it is no JSON', () => {
    expect(redacting.apply('call aab with 1234-1234', undefined, true).text).toBe('call <"#"> with <"#">')
    expect(redacting.apply('{hello aab}', undefined, true).text).toBe('{hello <"#">}')
    expect(redacting.apply('[12345678x]', undefined, true).text).toBe('[<"#">x]')
  })

  it('takes tokens, which are put back with their escapes', () => {
    const screen = new TextScreen([{ rule: compileRule('q', { regex: '<[^>]*>' }), do: 'replace' }])
    const pseudonyms = new Pseudonyms({ key: Buffer.alloc(32), user: '1' })
    const text = JSON.stringify({ to: 'say <"hi"\n>', n: ['<x>', '<x>'] })
    const { text: replaced } = screen.apply(text, pseudonyms, true)
    expect(replaced).toMatch(/^\{"to":"say \[\[Q_[0-9a-f]{8}\]\]","n":\["\[\[Q_[0-9a-f]{8}\]\]","\[\[Q_/)
    expect(pseudonyms.size).toBe(2)
    expect(pseudonyms.restoreJson(replaced)).toBe(text)
  })
})
