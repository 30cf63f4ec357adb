import { characterCount } from '../character-count.ts'

/** Value of a column. */
export type Stored = string | number | null

/** Rule of values, and what is expected where it is broken. */
interface Rule<V> {
  accepts(value: V): boolean
  readonly expected: string
}

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json
}

/** Type of a field: `V` in the program and in JSON, `C` in its column. */
export interface FieldType<V = unknown, C extends Stored = Stored> {
  readonly json: 'boolean' | 'integer' | 'string' | 'any'
  readonly column: 'integer' | 'text'
  /** Whether null is a value. */
  readonly isNullable: boolean
  /** Allowed values, as messages describe them. */
  readonly expected: string
  readonly choices?: readonly V[] | undefined
  /** Lowest and highest integer. */
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Maximum length of a text, in UTF-16 code units and in bytes of UTF-8. */
  readonly length?: number | undefined
  readonly bytes?: number | undefined
  readonly rules: readonly Rule<V>[]
  /** Form in which a given value is stored. */
  normal?(value: V): V
  /** Conversions between value and column; absent where both are equal. */
  encode?(value: V): C
  decode?(column: C): V
}

/** Bounds of texts that are written over HTTP, in bytes of UTF-8. `docs/api.md: Limits`. */
export const TEXT_BYTES = Object.freeze({
  /** Every text that is none of the others. */
  plain: 2048,
  /** One key of a provider. */
  providerKey: 8192,
  /** The addresses that a token may be used from. */
  addresses: 16_384,
  /** A list, a mapping, several keys, or a system prompt. */
  list: 65_536,
})

/** Whether a text has at most `bytes` bytes. */
export function isWithin(text: string, bytes: number): boolean {
  return text.length <= bytes && Buffer.byteLength(text) <= bytes
}

/**
 * Returns what is expected in place of a value, as it follows `expected `; undefined for a value of the type.
 * Null is not a value here.
 */
export function mismatch<V>(type: FieldType<V>, value: unknown): string | undefined {
  const { json, expected, choices, min = -Infinity, max = Infinity, length = Infinity, bytes, rules } = type
  const isOfType =
    json === 'any' || (json === 'integer' ? Number.isSafeInteger(value) : typeof value === json)
  if (!isOfType) return expected
  const given = value as V
  if (choices && !choices.includes(given)) return expected
  if (typeof given === 'number' && (given < min || given > max)) return expected
  if (typeof given === 'string') {
    if (bytes !== undefined && !isWithin(given, bytes)) return `at most ${bytes} bytes`
    if (given.length > length) return expected
  }
  return rules.find((rule) => !rule.accepts(given))?.expected
}

/** Whether a value is one of the type. */
export function isOfType<V>(type: FieldType<V>, value: unknown): value is V {
  return mismatch(type, value) === undefined
}

/** A whole number. */
export function whole(
  expected = 'a whole number',
  bounds: { readonly min?: number; readonly max?: number } = {},
): FieldType<number, number> {
  return { json: 'integer', column: 'integer', isNullable: false, expected, rules: [], ...bounds }
}

/** One of a few whole numbers. */
export function wholeOf<const V extends number>(
  choices: readonly V[],
  expected: string,
): FieldType<V, number> {
  return { json: 'integer', column: 'integer', isNullable: false, expected, choices, rules: [] }
}

/** True or false, stored as 1 and 0. */
export const flag: FieldType<boolean, number> = {
  json: 'boolean',
  column: 'integer',
  isNullable: false,
  expected: 'true or false',
  rules: [],
  encode: Number,
  decode: (column) => column === 1,
}

/** A text of at most this number of characters, as people count them. */
export function text(characters: number): FieldType<string, string> {
  const expected = `a text of at most ${characters} characters`
  return {
    ...plainText(expected, { bytes: Math.max(TEXT_BYTES.plain, characters * 4) }),
    rules: [{ accepts: (given) => isStorable(given) && characterCount(given) <= characters, expected }],
  }
}

/** A text that is not bounded here. */
export function plainText(
  expected = 'a text',
  bounds: { readonly bytes?: number; readonly length?: number } = {},
): FieldType<string, string> {
  return { json: 'string', column: 'text', isNullable: false, expected, rules: [], ...bounds }
}

/** One of a few texts. */
export function textOf<const V extends string>(
  choices: readonly V[],
  expected: string,
): FieldType<V, string> {
  return { json: 'string', column: 'text', isNullable: false, expected, choices, rules: [] }
}

/** A trimmed text of 1 to `characters` characters, as people count them, without control characters. */
export function name(characters: number): FieldType<string, string> {
  const expected = `a text of 1 to ${characters} characters without spaces around it`
  const accepts = (given: string): boolean =>
    given !== '' &&
    given === given.trim() &&
    !/\p{Cc}/u.test(given) &&
    given.isWellFormed() &&
    characterCount(given) <= characters
  return { ...plainText(expected, { bytes: TEXT_BYTES.plain }), rules: [{ accepts, expected }] }
}

/** A text of several lines, entries or members, stored without spaces around it. */
export function listText(bytes: number): FieldType<string, string> {
  return {
    ...plainText('a text', { bytes }),
    rules: [{ accepts: isStorable, expected: 'a text without NUL and lone surrogates' }],
    normal: (given) => given.trim(),
  }
}

/** A text of a form. */
export function matching(pattern: RegExp, expected: string): FieldType<string, string> {
  return ruled(plainText(expected), { accepts: (given) => pattern.test(given), expected })
}

/** A value that readers of its own check, such as a list or a mapping; JSON in a column. */
export function json<V>(): FieldType<V, string> & { readonly json: 'any' } {
  return {
    json: 'any',
    column: 'text',
    isNullable: false,
    expected: 'a value',
    rules: [],
    encode: (value) => JSON.stringify(value),
    decode: (column) => JSON.parse(column) as V,
  }
}

/** The type with further rules. */
export function ruled<V, C extends Stored>(
  type: FieldType<V, C>,
  ...rules: readonly Rule<V>[]
): FieldType<V, C> {
  return { ...type, rules: [...type.rules, ...rules] }
}

/** The type with null as a further value. */
export function nullable<V, C extends Stored>(type: FieldType<V, C>): FieldType<V | null, C | null> {
  return { ...(type as unknown as FieldType<V | null, C | null>), isNullable: true }
}

/** The type with absence as a further value. */
export function optional<V, C extends Stored, T extends FieldType<V, C>>(
  type: T & FieldType<V, C>,
): FieldType<V | undefined, C> & Pick<T, 'json'> {
  return type as unknown as FieldType<V | undefined, C> & Pick<T, 'json'>
}

function isStorable(given: string): boolean {
  return !given.includes('\0') && given.isWellFormed()
}
