import { characterCount, fitsInBytes, TEXT_BYTE_LIMITS } from '../text-length.ts'
import { isVisibleLabel } from '../username.ts'

/** A value in a database column. */
export type Stored = string | number | null

type NumericBound = 'minimum' | 'maximum' | 'maxLength' | 'x-max-bytes' | 'minItems'

/** Bounds of values, by their keywords in JSON Schema; `maxLength` is in UTF-16 code units. */
type Bounds<J> = { readonly [Name in NumericBound]?: number } & { readonly enum?: readonly J[] }

/** An additional rule for values, and what an error message says if a value breaks it. */
interface Rule<J> {
  accepts(value: J): boolean
  readonly expected: string
  /** Whether the rule bounds what is written over HTTP, and not what an operator writes in gateway.yaml. */
  readonly isOverHttp?: boolean
}

/**
 * Type of a record's field, with conversions between its three forms: `V` in the program, `C` in the database
 * column, `J` in JSON.
 */
export interface FieldType<V = unknown, C extends Stored = Stored, J = V> {
  readonly json: 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object' | 'any'
  /** Type of the entries of a list or a mapping. */
  readonly items?: FieldType
  readonly column: 'integer' | 'text'
  /** Whether null is allowed. */
  readonly isNullable: boolean
  /** What values are allowed, as the words after `expected` in error messages. */
  readonly expected: string
  readonly bounds: Bounds<J>
  readonly rules: readonly Rule<J>[]
  fromJson(given: J): V
  toJson(value: V): J
  encode(value: V): C
  decode(column: C): V
}

/**
 * Conversion for a value that is the same in two of its forms (program, column, JSON): returns the value
 * itself.
 */
export const unchangedValue = (value: unknown): never => value as never

const COLUMNS: { readonly [Kind in FieldType['json']]?: object } = {
  integer: { column: 'integer', encode: unchangedValue, decode: unchangedValue },
  boolean: { column: 'integer', encode: Number, decode: (column: Stored) => column === 1 },
  string: { column: 'text', encode: unchangedValue, decode: unchangedValue },
  number: { column: 'text', encode: String, decode: Number },
}
const JSON_TEXT = { column: 'text', encode: JSON.stringify, decode: JSON.parse } as const

function typed<V, C extends Stored, J = V>(
  json: FieldType['json'],
  expected: string,
  bounds: Bounds<J> = {},
): FieldType<V, C, J> {
  const plain = {
    json,
    expected,
    bounds,
    rules: [],
    isNullable: false,
    fromJson: unchangedValue,
    toJson: unchangedValue,
  }
  return { ...plain, ...(COLUMNS[json] ?? JSON_TEXT) } as unknown as FieldType<V, C, J>
}

/**
 * Describes what was expected, in words that follow `expected `, if a JSON value does not have the type;
 * undefined if it has. Ignores `isNullable`: callers must accept null themselves.
 */
export function describeMismatch<V, C extends Stored, J>(
  type: FieldType<V, C, J>,
  value: unknown,
): string | undefined {
  const { json, items, expected, rules, bounds } = type
  const { minimum = -Infinity, maximum = Infinity, maxLength = Infinity, minItems = 0 } = bounds
  const { enum: choices, 'x-max-bytes': bytes = Infinity } = bounds
  const kind = kindOf(value)
  if (json !== 'any' && kind !== json && !(json === 'number' && kind === 'integer')) return expected
  if (choices && !choices.includes(value as never)) return expected
  if (typeof value === 'number' && (value < minimum || value > maximum)) return expected
  if (typeof value === 'string') {
    if (!fitsInBytes(value, bytes)) return `at most ${bytes} bytes`
    if (value.length > maxLength) return expected
  }
  if (items) {
    const entries = Object.values(value as object)
    if (entries.length < minItems || !entries.every((one) => isOfType(items, one))) return expected
  }
  return rules.find((rule) => !rule.accepts(value as never))?.expected
}

function kindOf(value: unknown): string {
  if (Number.isSafeInteger(value)) return 'integer'
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

/** Whether a JSON value is of this type. */
export function isOfType<V, C extends Stored, J>(type: FieldType<V, C, J>, value: unknown): value is J {
  return describeMismatch(type, value) === undefined
}

/** A whole number. */
export const integerType = (expected = 'a whole number', bounds?: Bounds<number>) =>
  typed<number, number>('integer', expected, bounds)

/** A number that need not be whole, stored as text. */
export const numberType = (expected: string, bounds: Bounds<number>) =>
  typed<number, string>('number', expected, bounds)

/** True or false, stored as 1 and 0. */
export const flagType = typed<boolean, number>('boolean', 'true or false')

/** A text; without `bounds`, of any length. */
export const plainTextType = (expected = 'a text', bounds?: Bounds<string>) =>
  typed<string, string>('string', expected, bounds)

/** One of a few texts or whole numbers. */
export const oneOfType = <const V extends string | number>(choices: readonly V[], expected: string) => {
  const json = typeof choices[0] === 'string' ? 'string' : 'integer'
  return typed<V, V extends number ? number : string>(json, expected, { enum: choices })
}

/** A text of at most this number of characters, as people count them. */
export const textType = (characters: number) =>
  shortText(characters, `a text of at most ${characters} characters`, isStorable)

/** A trimmed text of 1 to `characters` characters, as people count them, without control characters. */
export const nameType = (
  characters: number,
  expected = `a text of 1 to ${characters} characters without spaces around it`,
) => shortText(characters, expected, isName)

/** A name that is shown beside others, without invisible and blank characters. */
export const labelType = (characters: number) =>
  shortText(
    characters,
    `a text of 1 to ${characters} characters without spaces around it and without invisible characters`,
    (given) => isName(given) && isVisibleLabel(given),
  )

/** A name in gateway.yaml; `what` describes it in error messages. */
export const declaredNameType = (what: string, characters = 200) =>
  nameType(characters, `${what} (1 to ${characters} characters, in quotes if it looks like a number)`)

/**
 * A text of at most `bytes` bytes with several lines, entries or members, stored without surrounding spaces.
 */
export function listTextType(bytes: number): FieldType<string, string> {
  const storable = { accepts: isStorable, expected: 'a text without NUL and lone surrogates' }
  const type = withRules(plainTextType('a text', { 'x-max-bytes': bytes }), storable)
  return { ...type, fromJson: (given) => given.trim() }
}

/** Names with commas between them, without invisible and blank characters. */
export const nameListType = (bytes: number): FieldType<string, string> =>
  withRules(listTextType(bytes), {
    accepts: (given) => given.split(',').every((name) => isVisibleLabel(name.trim())),
    expected: 'names without invisible characters, with commas between them',
  })

/** A text that matches a pattern. */
export const patternTextType = (pattern: RegExp, expected: string) =>
  withRules(plainTextType(expected, { 'x-max-bytes': TEXT_BYTE_LIMITS.plain }), {
    accepts: (given) => pattern.test(given),
    expected,
  })

/** A list of distinct values, stored as JSON. */
export function listType<V>(items: FieldType<V>, expected: string, minItems = 0) {
  const isDistinct = (given: readonly V[]): boolean => new Set(given).size === given.length
  const type = typed<readonly V[], string>('array', expected, { minItems })
  return withRules({ ...type, items }, { accepts: isDistinct, expected: 'each entry once' })
}

/** A mapping from names to values, stored as JSON. */
export function mappingType<V>(items: FieldType<V>, expected: string) {
  const type = typed<ReadonlyMap<string, V>, string, Readonly<Record<string, V>>>('object', expected)
  const conversions: Partial<typeof type> = {
    fromJson: (given) => new Map(Object.entries(given)),
    toJson: (value) => Object.fromEntries(value),
    encode: (value) => JSON.stringify(Object.fromEntries(value)),
    decode: (column) => new Map(Object.entries(JSON.parse(column))),
  }
  return { ...type, items, ...conversions }
}

/** Any other structure, stored as JSON. Only the code that reads the field checks the value. */
export const jsonType = <V>() =>
  typed<V, string>('any', 'a value') as FieldType<V, string> & { readonly json: 'any' }

/** The type without the bounds of what is written over HTTP, which do not apply to gateway.yaml. */
export function withoutHttpBounds(type: FieldType): FieldType {
  const { 'x-max-bytes': _, ...bounds } = type.bounds
  return { ...type, bounds, rules: type.rules.filter(({ isOverHttp }) => !isOverHttp) }
}

/** A type with additional rules. */
export function withRules<V, C extends Stored, J>(
  type: FieldType<V, C, J>,
  ...rules: Rule<J>[]
): typeof type {
  return { ...type, rules: [...type.rules, ...rules] }
}

/** A type that also allows null. */
export function nullableType<V, C extends Stored, J>(type: FieldType<V, C, J>) {
  const orNull = (convert: (given: never) => unknown) => (given: unknown) =>
    given === null ? null : convert(given as never)
  const names = ['fromJson', 'toJson', 'encode', 'decode'] as const
  const conversions = Object.fromEntries(names.map((name) => [name, orNull(type[name])]))
  return { ...type, isNullable: true, ...conversions } as FieldType<V | null, C | null, J | null>
}

function shortText(characters: number, expected: string, isAllowed: (given: string) => boolean) {
  const bytes = Math.max(TEXT_BYTE_LIMITS.plain, characters * 4)
  const accepts = (given: string): boolean => isAllowed(given) && characterCount(given) <= characters
  return withRules(plainTextType(expected, { 'x-max-bytes': bytes }), { accepts, expected })
}

/** Whether a text is trimmed and not empty, and has neither control characters nor lone surrogates. */
export function isName(given: string): boolean {
  return given !== '' && given === given.trim() && !/\p{Cc}/u.test(given) && given.isWellFormed()
}

function isStorable(given: string): boolean {
  return !given.includes('\0') && given.isWellFormed()
}
