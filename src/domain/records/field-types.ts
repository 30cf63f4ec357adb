import { characterCount } from '../character-count.ts'
import { isWithin, TEXT_BYTES } from '../text-bytes.ts'

/** Value of a column. */
export type Stored = string | number | null

/** Bounds of values, by their keywords in JSON Schema. */
interface Bounds<V> {
  readonly enum?: readonly V[]
  readonly minimum?: number
  readonly maximum?: number
  /** Maximum number of UTF-16 code units. */
  readonly maxLength?: number
  /** Maximum number of bytes in UTF-8. */
  readonly 'x-max-bytes'?: number
}

/** Additional rule for values, and what is expected of a value that breaks it. */
interface Rule<V> {
  accepts(value: V): boolean
  readonly expected: string
}

/** Type of a field: `V` in the program and in JSON, `C` in the database column. */
export interface FieldType<V = unknown, C extends Stored = Stored> {
  readonly json: 'boolean' | 'integer' | 'string' | 'any'
  readonly column: 'integer' | 'text'
  /** Whether null is allowed. */
  readonly isNullable: boolean
  /** Allowed values, as messages describe them. */
  readonly expected: string
  readonly bounds: Bounds<V>
  readonly rules: readonly Rule<V>[]
  /** The form in which a value is stored, such as without surrounding spaces. */
  normal(value: V): V
  encode(value: V): C
  decode(column: C): V
}

/** Conversion for types whose values are the same on both sides. */
export const same = (value: unknown): never => value as never

const COLUMNS = { boolean: 'integer', integer: 'integer', string: 'text', any: 'text' } as const
const PLAIN = { isNullable: false, rules: [], normal: same, encode: same, decode: same }

const typed = <V, C extends Stored>(
  json: FieldType['json'],
  expected: string,
  bounds: Bounds<V> = {},
): FieldType<V, C> => ({ ...PLAIN, json, column: COLUMNS[json], expected, bounds })

/**
 * Describes what is expected instead of a value, as it follows `expected `; undefined if the value has the
 * type. Null does not count as a value here.
 */
export function mismatch<V>(type: FieldType<V>, value: unknown): string | undefined {
  const { json, expected, rules, bounds } = type
  const { minimum = -Infinity, maximum = Infinity, maxLength = Infinity, 'x-max-bytes': bytes } = bounds
  const given = value as V
  const isOfType = json === 'integer' ? Number.isSafeInteger(value) : json === 'any' || typeof value === json
  if (!isOfType) return expected
  if (bounds.enum && !bounds.enum.includes(given)) return expected
  if (typeof value === 'number' && (value < minimum || value > maximum)) return expected
  if (typeof value === 'string') {
    if (bytes !== undefined && !isWithin(value, bytes)) return `at most ${bytes} bytes`
    if (value.length > maxLength) return expected
  }
  return rules.find((rule) => !rule.accepts(given))?.expected
}

/** Whether a value is one of the type. */
export function isOfType<V>(type: FieldType<V>, value: unknown): value is V {
  return mismatch(type, value) === undefined
}

/** A whole number. */
export const whole = (expected = 'a whole number', bounds?: Bounds<number>) =>
  typed<number, number>('integer', expected, bounds)

/** One of a few whole numbers. */
export const wholeOf = <const V extends number>(choices: readonly V[], expected: string) =>
  typed<V, number>('integer', expected, { enum: choices })

/** True or false, stored as 1 and 0. */
export const flag: FieldType<boolean, number> = {
  ...typed('boolean', 'true or false'),
  encode: Number,
  decode: (column) => column === 1,
}

/** A text without its own bounds. */
export const plainText = (expected = 'a text', bounds?: Bounds<string>) =>
  typed<string, string>('string', expected, bounds)

/** One of a few texts. */
export const textOf = <const V extends string>(choices: readonly V[], expected: string) =>
  typed<V, string>('string', expected, { enum: choices })

/** A text of at most this number of characters, as people count them. */
export const text = (characters: number) =>
  shortText(characters, `a text of at most ${characters} characters`, isStorable)

/** A trimmed text of 1 to `characters` characters, as people count them, without control characters. */
export const name = (characters: number) =>
  shortText(characters, `a text of 1 to ${characters} characters without spaces around it`, isName)

/** A text of several lines, entries or members, stored without surrounding spaces. */
export function listText(bytes: number): FieldType<string, string> {
  const expected = 'a text without NUL and lone surrogates'
  const type = ruled(plainText('a text', { 'x-max-bytes': bytes }), { accepts: isStorable, expected })
  return { ...type, normal: (given) => given.trim() }
}

/** A text that matches a pattern. */
export function matching(pattern: RegExp, expected: string): FieldType<string, string> {
  return ruled(plainText(expected), { accepts: (given) => pattern.test(given), expected })
}

/** A list, a mapping or another structure, stored as JSON. The reader of the field validates it. */
export function json<V>(): FieldType<V, string> & { readonly json: 'any' } {
  return {
    ...typed<V, string>('any', 'a value'),
    json: 'any',
    encode: (value) => JSON.stringify(value),
    decode: (column) => JSON.parse(column) as V,
  }
}

/** The type with additional rules. */
export function ruled<V, C extends Stored>(type: FieldType<V, C>, ...rules: Rule<V>[]): FieldType<V, C> {
  return { ...type, rules: [...type.rules, ...rules] }
}

/** The type, also allowing null. */
export function nullable<V, C extends Stored>(type: FieldType<V, C>): FieldType<V | null, C | null> {
  return {
    ...(type as unknown as FieldType<V | null, C | null>),
    isNullable: true,
    encode: (value) => (value === null ? null : type.encode(value)),
    decode: (column) => (column === null ? null : type.decode(column)),
  }
}

/** The type, also allowing undefined. */
export function optional<V, C extends Stored, T extends FieldType<V, C>>(
  type: T & FieldType<V, C>,
): FieldType<V | undefined, C> & Pick<T, 'json'> {
  return type
}

function shortText(characters: number, expected: string, isAllowed: (given: string) => boolean) {
  const bytes = Math.max(TEXT_BYTES.plain, characters * 4)
  const accepts = (given: string): boolean => isAllowed(given) && characterCount(given) <= characters
  return ruled(plainText(expected, { 'x-max-bytes': bytes }), { accepts, expected })
}

function isName(given: string): boolean {
  return given !== '' && given === given.trim() && !/\p{Cc}/u.test(given) && given.isWellFormed()
}

function isStorable(given: string): boolean {
  return !given.includes('\0') && given.isWellFormed()
}
