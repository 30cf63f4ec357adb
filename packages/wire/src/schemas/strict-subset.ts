import { asRecord, parseRecord } from '../json/record.ts'

/** Limits of schemas that OpenAI enforces. */
const MAX_PROPERTIES = 5000
const MAX_LEVELS = 10
const MAX_NAMES_LENGTH = 120_000
const MAX_ENUM_VALUES = 1000
/** An enumeration with more values than this may have at most `MAX_LONG_ENUM` characters. */
const LONG_ENUM = 250
const MAX_LONG_ENUM = 15_000

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
])

/** Members that any enforced schema may have. */
const KEYWORDS: ReadonlySet<string> = new Set([
  'type',
  'description',
  'title',
  'enum',
  'const',
  'anyOf',
  '$ref',
  '$defs',
  'definitions',
  '$schema',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'minItems',
  'maxItems',
  'pattern',
  'format',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
])
const REFERENCE = /^#(?:\/(?:\$defs|definitions)\/([^/]+))?$/

/** The counts of one schema, which have limits. */
interface Counts {
  properties: number
  names: number
  values: number
}

/**
 * Whether a schema is in the subset that OpenAI accepts with `strict: true`: an object at the top, closed
 * objects that require all their properties, and only certain keywords. Source:
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas.
 */
export function isStrictSchema(text: string): boolean {
  const root = parseRecord(text)
  if (root?.['type'] !== 'object' || Object.hasOwn(root, 'anyOf')) return false
  const counts: Counts = { properties: 0, names: 0, values: 0 }
  return (
    isStrict(root, root, 1, counts) &&
    counts.properties <= MAX_PROPERTIES &&
    counts.names <= MAX_NAMES_LENGTH &&
    counts.values <= MAX_ENUM_VALUES
  )
}

function isStrict(value: unknown, root: object, level: number, counts: Counts): boolean {
  const schema = asRecord(value)
  if (!schema || level > MAX_LEVELS) return false
  const reference = schema['$ref']
  if (reference !== undefined) return Object.keys(schema).length === 1 && leadsTo(root, reference)
  if (!Object.keys(schema).every((name) => KEYWORDS.has(name))) return false
  const { type, anyOf, items } = schema
  if (type === undefined && anyOf === undefined) return false
  const types: readonly unknown[] = Array.isArray(type) ? type : [type]
  return (
    areStrictDefinitions(schema, root, counts) &&
    hasStrictText(schema) &&
    hasStrictValues(schema, counts) &&
    (!types.includes('object') && schema['properties'] === undefined
      ? true
      : isStrictObject(schema, root, level, counts)) &&
    (!types.includes('array') && items === undefined ? true : isStrict(items, root, level + 1, counts)) &&
    (anyOf === undefined ||
      (Array.isArray(anyOf) && anyOf.length > 0 && anyOf.every((one) => isStrict(one, root, level, counts))))
  )
}

function leadsTo(root: object, reference: unknown): boolean {
  const found = typeof reference === 'string' ? REFERENCE.exec(reference) : null
  if (!found) return false
  const [, name] = found
  if (name === undefined) return true
  const { $defs, definitions } = root as Record<string, unknown>
  return [$defs, definitions].some((holder) => Object.hasOwn(asRecord(holder) ?? {}, name))
}

function areStrictDefinitions(schema: Record<string, unknown>, root: object, counts: Counts): boolean {
  return ['$defs', 'definitions'].every((name) => {
    if (schema[name] === undefined) return true
    const holder = asRecord(schema[name])
    if (!holder) return false
    for (const key of Object.keys(holder)) counts.names += key.length
    return Object.values(holder).every((one) => isStrict(one, root, 1, counts))
  })
}

function hasStrictText({ format, pattern }: Record<string, unknown>): boolean {
  return (
    (format === undefined || FORMATS.has(format)) &&
    (pattern === undefined || (typeof pattern === 'string' && !/\(\?(?:[=!]|<[=!])/.test(pattern)))
  )
}

function hasStrictValues(schema: Record<string, unknown>, counts: Counts): boolean {
  const { enum: values, const: constant } = schema
  if (constant !== undefined) counts.names += lengthOf(constant)
  if (values === undefined) return true
  if (!Array.isArray(values)) return false
  let length = 0
  for (const value of values) length += lengthOf(value)
  counts.names += length
  counts.values += values.length
  return values.length <= LONG_ENUM || length <= MAX_LONG_ENUM
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}

function isStrictObject(
  schema: Record<string, unknown>,
  root: object,
  level: number,
  counts: Counts,
): boolean {
  const properties = asRecord(schema['properties'])
  if (!properties || schema['additionalProperties'] !== false) return false
  const names = Object.keys(properties)
  const required = schema['required'] ?? []
  if (!Array.isArray(required) || new Set(required).size !== names.length) return false
  const listed: ReadonlySet<unknown> = new Set(required)
  if (!names.every((name) => listed.has(name))) return false
  counts.properties += names.length
  for (const name of names) counts.names += name.length
  return Object.values(properties).every((one) => isStrict(one, root, level + 1, counts))
}
