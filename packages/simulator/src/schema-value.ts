import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { type Random, pickOne } from './random.ts'
import { splitWords, topicOf } from './topic.ts'

/** Hints for the values of an object's fields, in addition to the user's message. */
export interface ValueHints {
  /** Returns the text for a field; undefined to use the topic of the message. */
  text(name: string, schema: Fields): string | undefined
  /** Whether an optional field is to be included. */
  mentions(name: string, schema: Fields): boolean
}

/**
 * What a value is made from: the user's message, random numbers, and the root schema, to which `$ref` refers.
 */
interface Source {
  readonly message: string
  readonly random: Random
  readonly root: Fields
  readonly hints: ValueHints
  /** Number of values that may still be created, because a schema may branch endlessly. */
  valuesLeft: number
}

// Maximum depth of a created value, because schemas may be recursive.
const MAX_DEPTH = 12
/** Depth of a value from which on only required fields of objects are created. */
const REQUIRED_ONLY_DEPTH = 2
const MAX_VALUES = 2000

const FORMATS = new Map([
  ['date', '2025-03-14'],
  ['date-time', '2025-03-14T09:26:53Z'],
  ['time', '09:26:53Z'],
  ['duration', 'PT15M'],
  ['email', 'someone@example.com'],
  ['hostname', 'example.com'],
  ['uri', 'https://example.com/'],
  ['uuid', '3f1c9a52-6d0e-4b7a-9c21-5e8d7f604b13'],
  ['ipv4', '192.0.2.7'],
  ['ipv6', '2001:db8::7'],
])

/**
 * Creates a value that satisfies a JSON schema and fits the message. Objects have their required fields and
 * those that the hints add; numbers and enumeration values are taken from the message. `pattern` is not
 * supported.
 */
export function valueMatchingSchema(
  schema: Fields,
  message: string,
  random: Random,
  hints: ValueHints,
): unknown {
  return build(schema, '', { message, random, root: schema, hints: hints, valuesLeft: MAX_VALUES }, 0)
}

function build(given: Fields, name: string, source: Source, depth: number): unknown {
  const schema = resolveSchema(given, source.root)
  source.valuesLeft--
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return enumerated(schema, source)
  switch (typeOf(schema)) {
    case 'object':
      return object(schema, source, depth)
    case 'array':
      return array(schema, name, source, depth)
    case 'integer':
      return numberMatchingSchema(schema, true, source.message, source.random)
    case 'number':
      return numberMatchingSchema(schema, false, source.message, source.random)
    case 'boolean':
      return typeof schema.default === 'boolean' ? schema.default : false
    case 'null':
      return null
    default:
      return text(schema, name, source)
  }
}

function typeOf(schema: Fields): string {
  const types = Array.isArray(schema.type) ? asList(schema.type) : [schema.type]
  const type = types.find((one) => one !== 'null') ?? types[0]
  if (asString(type) !== '') return asString(type)
  if (schema.properties !== undefined || schema.required !== undefined) return 'object'
  return schema.items === undefined ? 'string' : 'array'
}

function enumerated(schema: Fields, { message, random }: Source): unknown {
  const values = asList(schema.enum)
  const mentioned = new Set(splitWords(message).map((word) => word.toLowerCase()))
  const [first, ...rest] = values
  return (
    values.find((value) => mentioned.has(String(value).toLowerCase())) ??
    (values.includes(schema.default) ? schema.default : pickOne(random, [first, ...rest]))
  )
}

function object(schema: Fields, source: Source, depth: number): unknown {
  if (depth >= MAX_DEPTH || source.valuesLeft <= 0) return {}
  const members = asFields(schema.properties)
  const required = new Set(asList(schema.required).map(asString))
  const isChosen = (name: string): boolean =>
    required.has(name) ||
    (depth < REQUIRED_ONLY_DEPTH && source.hints.mentions(name, asFields(members[name])))
  const declared = Object.keys(members).filter(isChosen)
  const undeclared = [...required].filter((name) => !Object.hasOwn(members, name))
  const value = (name: string): unknown =>
    build(
      asFields(Object.hasOwn(members, name) ? members[name] : schema.additionalProperties),
      name,
      source,
      depth + 1,
    )
  return Object.fromEntries([...declared, ...undeclared].map((name) => [name, value(name)]))
}

function array(schema: Fields, name: string, source: Source, depth: number): unknown[] {
  const tuple = asList(schema.prefixItems).map(asFields)
  const min = Math.min(asNumber(schema.minItems) ?? itemsInWords(schema) ?? 0, MAX_VALUES)
  const max = asNumber(schema.maxItems) ?? Number.POSITIVE_INFINITY
  const wanted = depth < REQUIRED_ONLY_DEPTH ? Math.max(1, tuple.length) : tuple.length
  const length = source.valuesLeft <= 0 ? min : Math.min(Math.max(min, wanted), max)
  const items = Array.from({ length }, (_, at) =>
    build(tuple[at] ?? asFields(schema.items), name, source, depth + 1),
  )
  return schema.uniqueItems === true ? distinct(items, asFields(schema.items)) : items
}

/** The minimum number of items that a description states, as for providers whose schemas lack `minItems`. */
function itemsInWords({ description }: Fields): number | undefined {
  const stated = /at least (\d+) items/.exec(asString(description) ?? '')
  return stated ? Number(stated[1]) : undefined
}

/** Makes the items of a list different: enumeration values in turn, numbers and texts with a counter. */
function distinct(items: readonly unknown[], { enum: values }: Fields): unknown[] {
  if (new Set(items.map((item) => JSON.stringify(item))).size === items.length) return [...items]
  return items.map((item, at) => {
    if (values !== undefined) return asList(values)[at]
    if (typeof item === 'number') return item + at
    return typeof item === 'string' && at > 0 ? `${item} ${at + 1}` : item
  })
}

/** Chooses a text: the hint, capitalized words, or the topic. */
function text(schema: Fields, name: string, { message, hints }: Source): string {
  const format = FORMATS.get(asString(schema.format))
  const found = hints.text(name, schema)
  if (format !== undefined)
    return asString(schema.format) === 'uri' && found && /^https?:\/\/\S+$/.test(found) ? found : format
  const min = asNumber(schema.minLength) ?? 0
  const guess = found ?? properWords(message) ?? topicOf(message) ?? (name || 'example')
  return guess.padEnd(min, '.').slice(0, Math.max(min, asNumber(schema.maxLength) ?? guess.length))
}

function properWords(message: string): string | undefined {
  const [, ...afterFirst] = splitWords(message.slice(0, 2000))
  const proper = afterFirst.filter((word) => /^\p{Lu}\p{L}+/u.test(word)).join(' ')
  return proper.slice(0, 120) || undefined
}

// Number of candidates from which a number is chosen if the message mentions none.
const RANGE = 20

/**
 * Chooses a number within the bounds of a schema: one that the message mentions, else the default, else a
 * small one.
 */
function numberMatchingSchema(schema: Fields, isInteger: boolean, message: string, random: Random): number {
  const min = Math.max(bound(schema.minimum, -Infinity), bound(schema.exclusiveMinimum, -Infinity))
  const max = Math.min(bound(schema.maximum, Infinity), bound(schema.exclusiveMaximum, Infinity))
  const multiple = asNumber(schema.multipleOf)
  const fits = (value: number): boolean =>
    value >= min &&
    value <= max &&
    value !== schema.exclusiveMinimum &&
    value !== schema.exclusiveMaximum &&
    (!isInteger || Number.isInteger(value)) &&
    (multiple === undefined || Math.abs(value / multiple - Math.round(value / multiple)) < 1e-9)
  const mentioned = (message.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number).find(fits)
  if (mentioned !== undefined) return mentioned
  const fallback = asNumber(schema.default)
  if (fallback !== undefined && fits(fallback)) return fallback
  const unit = multiple ?? (isInteger ? 1 : 0.1)
  const first = Math.round(Math.min(Math.max(unit, min), max) / unit)
  const around = (step: number): number[] =>
    Array.from({ length: RANGE }, (_, at) => rounded((first + step * at) * unit)).filter(fits)
  const [upwards, downwards] = [around(1), around(-1)]
  const candidates = upwards.length > 0 ? upwards : downwards
  // If no multiple of the schema's `multipleOf` is within the bounds, a number between the bounds is
  // returned.
  return candidates[Math.floor(random() * candidates.length)] ?? (min + max) / 2
}

function bound(value: unknown, none: number): number {
  return asNumber(value) ?? none
}

/** Removes the rounding errors of binary fractions. */
function rounded(value: number): number {
  return Number(value.toPrecision(12))
}

const MAX_STEPS = 16

/**
 * Resolves references and alternatives of a schema: follows `$ref` within the document, takes the first
 * alternative that is not null, and merges the fields beside them and in `allOf`.
 */
function resolveSchema(schema: Fields, root: Fields): Fields {
  let found = schema
  for (let step = 0; step < MAX_STEPS; step++) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = found
    if (asString($ref).startsWith('#'))
      found = merged(target(asString($ref), root), { ...rest, ...defined({ anyOf, oneOf, allOf }) })
    else if (asList(allOf).length > 0)
      found = [...asList(allOf).map(asFields), defined({ anyOf, oneOf })].reduce(merged, rest)
    else if (asList(anyOf ?? oneOf).length > 0)
      found = merged(rest, alternative(asList(anyOf ?? oneOf).map(asFields), root))
    else return found
  }
  return {}
}

function alternative(all: readonly Fields[], root: Fields): Fields {
  const isNull = ({ type, const: constant }: Fields): boolean => type === 'null' || constant === null
  const followed = all.map((one) =>
    asString(one.$ref).startsWith('#') ? target(asString(one.$ref), root) : one,
  )
  return followed.find((one) => !isNull(one)) ?? followed[0] ?? {}
}

function target(path: string, root: Fields): Fields {
  let found: unknown = root
  for (const part of path.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Array.isArray(found) ? asList(found)[Number(name)] : asFields(found)[name]
  }
  return asFields(found)
}

/** Merges two schemas: the result has the fields of both, and requires those that either requires. */
function merged(one: Fields, other: Fields): Fields {
  const properties = { ...asFields(one.properties), ...asFields(other.properties) }
  const required = [...asList(one.required), ...asList(other.required)]
  const all = [...asList(one.allOf), ...asList(other.allOf)]
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
    ...(all.length > 0 && { allOf: all }),
  }
}

function defined(members: Fields): Fields {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
