import fc from 'fast-check'
import { anyCharacter } from './characters.ts'

/** JSON text to be put into other JSON unchanged. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** JSON.stringify, except that `Raw` keeps its text; undefined values are left out. */
export function jsonText(value: unknown): string {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${jsonText(member)}`).join(',')}}`
}

// Created once, because each arbitrary of texts lists all characters that a text may have.
const TEXTS = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 6 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\ud800 half', 'data: [DONE]\n\n', '"\\', '\r\n\r\n', '\0', ' '),
  },
)
const NAMES = fc.stringMatching(/^[A-Za-z][\w-]{0,11}$/)

/** Text of every script, with escapes, NUL and halves of surrogate pairs among it. */
export function texts(): fc.Arbitrary<string> {
  return TEXTS
}

/** Text with at least one visible character. */
export function words(): fc.Arbitrary<string> {
  return texts().map((text) => (text.trim() === '' ? 'word' : text))
}

/** Names of tools and ids, as every provider accepts them. */
export function names(): fc.Arbitrary<string> {
  return NAMES
}

const NUMBERS = ['0', '-0', '1.0', '1e3', '0.1', '9007199254740993', '-123456789012345678901234567890']

/**
 * JSON text of any value, with numbers beyond double precision and keys that a JavaScript object would
 * reorder.
 */
function valueTexts(depth: number): fc.Arbitrary<string> {
  const leaf = fc.oneof(
    fc.constantFrom('null', 'true', 'false', '{}', '[]'),
    fc.constantFrom(...NUMBERS),
    texts().map((text) => JSON.stringify(text)),
  )
  if (depth === 0) return leaf
  const list = fc.array(valueTexts(depth - 1), { maxLength: 3 }).map((values) => `[${values.join(', ')}]`)
  return fc.oneof(leaf, list, objectTexts(depth - 1))
}

/** JSON text of an object. */
export function objectTexts(depth = 2): fc.Arbitrary<string> {
  const key = fc.oneof(names(), fc.constantFrom('10', '2', '__proto__', 'constructor', 'é', ''))
  const members = fc.uniqueArray(fc.tuple(key, valueTexts(depth)), {
    selector: ([name]) => name,
    maxLength: 4,
  })
  return members.map(
    (pairs) => `{${pairs.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(',')}}`,
  )
}
