import { z } from 'zod'
import { type Decimal, parseDecimal } from '../domain/decimal.ts'
import { findNearest } from '../domain/nearest.ts'
import { durationType as aDuration } from '../domain/records/duration.ts'
import {
  declaredNameType,
  type FieldType,
  describeMismatch,
  type Stored,
  integerType,
  withoutHttpBounds,
} from '../domain/records/field-types.ts'
import type { Field as RecordField, Fields, FieldNamesWith, ValueOf } from '../domain/records/record.ts'
import { escapeInvisible } from '../domain/username.ts'
import { parseDuration, parseSize } from '../domain/units.ts'
import type { Path } from './diagnostics.ts'
import { isFromVariable, UnresolvedScalar, type YamlNode, YamlScalar } from './yaml-node.ts'

/**
 * A schema that reads a node of the file into a `T`. Its error messages have the form `expected …, found …`.
 */
export type Field<T> = z.ZodType<T>

/**
 * Returned instead of a value by a function that reads a setting: states what was expected, for the error
 * message.
 */
export class InvalidValue {
  readonly expected: string
  /** Whether `expected` quotes the value, so that it is not shown if that came from a variable. */
  readonly quotes: boolean
  constructor(expected: string, { quotes = false } = {}) {
    this.expected = expected
    this.quotes = quotes
  }
}

/** Message of an error that was already reported elsewhere; errors with this message are dropped. */
export const ALREADY_REPORTED = '(reported already)'

/** Maximum number of unknown keys of a mapping for which a known one is suggested, which takes long. */
const MAX_SUGGESTIONS = 100

/** Maximum retention, ten years in milliseconds. */
const MAX_RETENTION_MS = 87_600 * 3_600_000

/**
 * Schema of a setting with a single value. `read` returns the value, undefined if it is invalid, or an
 * `InvalidValue` that states more precisely what was expected.
 */
export function scalarSchema<T>(
  expected: string,
  read: (node: YamlScalar) => T | InvalidValue | undefined,
): Field<T> {
  return z.unknown().transform((given, ctx): T => {
    const result = given instanceof YamlScalar ? read(given) : undefined
    if (result !== undefined && !(result instanceof InvalidValue)) return result
    const isShown = result instanceof InvalidValue && !(result.quotes && isFromVariable(given as YamlNode))
    const message = mismatch(isShown ? result.expected : expected, given)
    ctx.issues.push({ code: 'custom', message, input: given })
    return z.NEVER
  })
}

/**
 * Schema of a setting that is a text. `accept` returns the value to use, or an `InvalidValue` that states
 * what was expected.
 */
export function textSchema(
  expected: string,
  accept: (text: string) => string | InvalidValue | undefined,
): Field<string> {
  return scalarSchema(expected, ({ value }) => (typeof value === 'string' ? accept(value) : undefined))
}

/** A trimmed, nonempty text without control characters. */
export function nameSchema(what: string, characters?: number): Field<string> {
  return scalarOf(declaredNameType(what, characters))
}

/** A text of printable ASCII without spaces, as HTTP headers allow. Error messages never show the text. */
export function credentialSchema(expected: string): Field<string> {
  return secretSchema(expected, (given) => (/^[!-~]+$/.test(given) ? given : undefined))
}

/** The schemas of texts that error messages never show. */
export const secretSchemas = z.registry<{ readonly secret: true }>()

/** A text that error messages never show. */
export function secretSchema(expected: string, accept: (text: string) => string | undefined): Field<string> {
  const schema = z.unknown().transform((given, ctx): string => {
    const value =
      given instanceof YamlScalar && typeof given.value === 'string' ? accept(given.value) : undefined
    if (value !== undefined) return value
    const found = given instanceof YamlScalar ? 'something else' : kindOf(given)
    const message =
      given instanceof UnresolvedScalar ? ALREADY_REPORTED : `expected ${expected}, found ${found}`
    ctx.issues.push({ code: 'custom', message, input: undefined })
    return z.NEVER
  })
  return schema.register(secretSchemas, { secret: true })
}

/** A boolean, `true` or `false`. */
export const flagSchema: Field<boolean> = scalarSchema('true or false', ({ value }) => {
  if (typeof value === 'boolean') return value
  return value === 'true' ? true : value === 'false' ? false : undefined
})

/**
 * A field with a single value of a record's type. `expected` describes the value in errors if the type does
 * not.
 */
function scalarOf<V, J>(type: FieldType<V, Stored, J>, expected = type.expected): Field<V> {
  return scalarSchema(expected, ({ value }) => {
    const isDigits = type.json === 'integer' && typeof value === 'string' && /^-?\d{1,16}$/.test(value)
    const given = isDigits ? Number(value) : value
    const broken = describeMismatch(type, given)
    if (broken === undefined) return type.fromJson(given as J)
    return new InvalidValue(broken === type.expected ? expected : broken)
  })
}

/** A whole number within bounds. */
export function integerSchema(minimum: number, maximum = Number.MAX_SAFE_INTEGER): Field<number> {
  return scalarOf(integerType(`a whole number from ${minimum} to ${maximum}`, { minimum, maximum }))
}

/** One of a fixed set of texts or numbers. */
export function oneOfSchema<const T extends string | number>(values: readonly T[]): Field<T> {
  const words = values.map(String)
  return scalarSchema(`one of ${words.join(', ')}`, ({ value, source }) => {
    const found = values.find((candidate) => String(candidate) === String(value))
    if (found !== undefined) return found
    const suggestion = findNearest(source, words)
    return suggestion === undefined
      ? undefined
      : new InvalidValue(`one of ${words.join(', ')} (${suggestion}?)`)
  })
}

/** An exact decimal from zero (or above zero) to `maximum`, with at most 20 decimal places. */
export function decimalSchema({
  aboveZero = false,
  maximum = 1_000_000,
}: {
  aboveZero?: boolean
  maximum?: number
} = {}): Field<Decimal> {
  const from = aboveZero ? 'above 0 and up to' : 'from 0 to'
  return scalarSchema(`a decimal number ${from} ${maximum}`, ({ value, source }) => {
    if (typeof value === 'boolean') return undefined
    const exact = typeof value === 'number' ? (asDecimal(source) ?? parseDecimal(value)) : asDecimal(value)
    if (!exact) return undefined
    if (exact.scale > 20) return new InvalidValue('a decimal number with at most 20 places')
    const inRange =
      exact.digits >= (aboveZero ? 1n : 0n) && exact.digits <= BigInt(maximum) * 10n ** BigInt(exact.scale)
    return inRange ? exact : undefined
  })
}

/** A number from 0 to 1; `expected` says what it is. */
export function shareSchema(expected: string): Field<number> {
  return scalarSchema(expected, ({ value }) => {
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    return typeof number === 'number' && number >= 0 && number <= 1 ? number : undefined
  })
}

/** A duration in milliseconds, written `500ms`, `5s`, `20m` or `1h`. */
export const durationSchema = scalarOf(aDuration)

/** A retention period in milliseconds; 0 keeps nothing. */
export const retentionSchema: Field<number> = scalarSchema(
  'a duration such as 24h or 720h, or 0',
  ({ value }) => {
    if (value === 0 || value === '0') return 0
    const milliseconds = typeof value === 'string' ? parseDuration(value) : undefined
    if (milliseconds === undefined) return undefined
    return milliseconds <= MAX_RETENTION_MS
      ? milliseconds
      : new InvalidValue('a duration of at most 87600h, or 0')
  },
)

/** A number of bytes, written `32MiB`, `1KB` or `1024`. */
export function sizeSchema(min: number, max: number): Field<number> {
  return scalarSchema('a size such as 32MiB, 20MB or 1048576', ({ value }) => {
    const bytes = typeof value === 'boolean' ? undefined : parseSize(String(value))
    if (bytes === undefined) return undefined
    return bytes >= min && bytes <= max ? bytes : new InvalidValue(`a size from ${min} to ${max} bytes`)
  })
}

/** A mapping with these keys and no others. Null or a missing node is an empty mapping. */
export function sectionSchema<S extends z.ZodRawShape>(shape: S) {
  const known = Object.keys(shape)
  const unknownKey = (key: string, index: number): string => {
    const suggestion = index < MAX_SUGGESTIONS ? findNearest(key, known) : undefined
    return suggestion === undefined
      ? `unknown key, expected one of ${known.join(', ')}`
      : `unknown key, expected ${suggestion}`
  }
  const object = z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map(unknownKey).join('\n')
        : mismatch(`a mapping with ${known.join(', ')}`, issue.input),
  })
  return z.preprocess((given, ctx) => {
    if (given instanceof YamlScalar) {
      const message = mismatch(`a mapping with ${known.join(', ')}`, given)
      ctx.issues.push({ code: 'custom', message, input: undefined })
    }
    return given ?? {}
  }, object)
}

/** A mapping with arbitrary keys. Null or a missing node is an empty mapping. */
export function dictionarySchema<T>(value: Field<T>, expected: string): Field<ReadonlyMap<string, T>> {
  const record = z.record(z.string(), value, { error: (issue) => mismatch(expected, issue.input) })
  return z.preprocess((given) => given ?? {}, record).transform((entries) => new Map(Object.entries(entries)))
}

/**
 * A list of distinct entries. A missing node is an empty list, which is refused if `minLength` is above 0.
 */
export function listSchema<T>(item: Field<T>, expected: string, minLength = 0): Field<readonly T[]> {
  return z
    .preprocess((given) => given ?? [], z.array(item, { error: (issue) => mismatch(expected, issue.input) }))
    .superRefine((values, ctx) => {
      if (values.length < minLength) ctx.addIssue({ code: 'custom', message: mismatch(expected, undefined) })
      const places = new Map<T, number>()
      for (const [index, value] of values.entries()) {
        const first = places.get(value)
        if (first === undefined) places.set(value, index)
        else
          ctx.addIssue({
            code: 'custom',
            path: [index],
            message: `expected each entry once, this is entry ${first} again`,
          })
      }
    })
}

/** One entry, or a list of at least one distinct entry. `expected` describes the list. */
export function oneOrListSchema<T>(item: Field<T>, expected: string): Field<readonly T[]> {
  const several = listSchema(item, expected, 1)
  const one = item.transform((value): readonly T[] => [value])
  return z.unknown().transform((given, ctx): readonly T[] => {
    const { data, error } = (Array.isArray(given) ? several : one).safeParse(given)
    if (data) return data
    for (const { message, path } of error?.issues ?? [])
      ctx.issues.push({ code: 'custom', message, path, input: undefined })
    return z.NEVER
  })
}

function mismatch(expected: string, given: unknown): string {
  return given instanceof UnresolvedScalar ? ALREADY_REPORTED : `expected ${expected}, found ${kindOf(given)}`
}

/** What an error message says was found: the source of a value, without the values of variables. */
export function kindOf(given: unknown): string {
  if (given === undefined) return 'nothing'
  if (Array.isArray(given)) return 'a list'
  if (!(given instanceof YamlScalar)) return 'a mapping'
  const { source, value } = given
  const short = source.length > 60 ? `${source.slice(0, 60)}…` : source
  return typeof value === 'string' ? escapeInvisible(JSON.stringify(short)) : short
}

/** Accepts the additional notations of decimals in YAML: `.5`, `+1`, `1.`. */
function asDecimal(source: string): Decimal | undefined {
  return parseDecimal(
    source
      .trim()
      .replace(/^\+/, '')
      .replace(/^(-?)\./, '$10.')
      .replace(/\.(?=e|$)/i, ''),
  )
}

/**
 * Schemas for the fields of a record that gateway.yaml may declare. A field with a default may be omitted.
 */
type DeclaredShape<F extends Fields> = {
  [Name in FieldNamesWith<F, 'declared'>]: z.ZodType<ValueOf<F[Name]>>
}

/**
 * Schemas for those fields for which the type of the field does not determine a schema, such as lists of
 * channels. They are used only if the record has such a field.
 */
type Readers<F extends Fields> = {
  readonly [Name in FieldNamesWith<F, 'declared'> as F[Name]['type']['json'] extends 'any'
    ? Name
    : never]: Field<Exclude<ValueOf<F[Name]>, undefined>>
}

/** Schemas for the fields of a record that gateway.yaml may declare. */
export function schemasOfDeclaredFields<const F extends Fields>(
  fields: F,
  ...[readers = {} as Readers<F>]: keyof Readers<F> extends never ? [] : [Readers<F>]
): DeclaredShape<F> {
  const declared = Object.entries(fields).filter(([, field]) => field.declared)
  return Object.fromEntries(
    declared.map(([name, one]) => {
      const reader = (readers as Readonly<Record<string, Field<unknown>>>)[name]
      const field = reader ?? declaredField(one.type, one.declared)
      if (one.default !== undefined) return [name, field.default(one.default)]
      return [name, 'default' in one ? field.optional() : field]
    }),
  ) as DeclaredShape<F>
}

function declaredField(given: FieldType, expected?: RecordField['declared']): Field<unknown> {
  const type = withoutHttpBounds(given)
  const { json, items, bounds } = type
  if (json === 'boolean') return flagSchema
  if (bounds.enum) return oneOfSchema(bounds.enum as readonly (string | number)[])
  if (!items) return scalarOf(type, typeof expected === 'string' ? expected : type.expected)
  const entry = declaredField(items)
  return json === 'array'
    ? listSchema(entry, type.expected, bounds.minItems)
    : dictionarySchema(entry, type.expected)
}

/** An error that a field's schema found, with its path in the file. */
export interface Issue {
  readonly path: Path
  readonly message: string
}

/** The errors in a zod error: one for each unknown key. Errors that were reported elsewhere are left out. */
export function issuesOf(error: z.ZodError): Issue[] {
  return error.issues
    .flatMap((issue): Issue[] => {
      const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
      if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
      const messages = issue.message.split('\n')
      return issue.keys.map((key, index) => ({
        path: [...path, key],
        message: messages[index] ?? issue.message,
      }))
    })
    .filter(({ message }) => message !== ALREADY_REPORTED)
}
