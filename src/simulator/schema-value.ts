import { type Fields, fields, list, number, string } from './fields.ts'
import { oneOf, type Random } from './random.ts'
import { topicOf, words } from './topic.ts'

/** What a value is made from: the user's message, a source of chance, and the whole schema for `$ref`. */
interface Source {
  readonly message: string
  readonly random: Random
  readonly root: Fields
}

// Schemas may contain themselves.
const DEEPEST = 5

const FORMATS = new Map([
  ['date', '2025-03-14'],
  ['date-time', '2025-03-14T09:26:53Z'],
  ['time', '09:26:53Z'],
  ['email', 'someone@example.com'],
  ['uri', 'https://example.com/'],
  ['uuid', '3f1c9a52-6d0e-4b7a-9c21-5e8d7f604b13'],
  ['ipv4', '192.0.2.7'],
])

/**
 * A value that fits a JSON schema and looks as if it had been read out of the message: objects with their required
 * members and those that the message seems to speak of, numbers and enumeration values that occur in it.
 */
export function valueFor(schema: Fields, message: string, random: Random): unknown {
  return build(schema, '', { message, random, root: schema }, 0)
}

function build(given: Fields, name: string, source: Source, depth: number): unknown {
  const schema = resolved(given, source.root)
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return enumerated(schema.enum, source)
  switch (typeOf(schema)) {
    case 'object':
      return object(schema, source, depth)
    case 'array':
      return array(schema, name, source, depth)
    case 'integer':
    case 'number':
      return numeric(schema, source)
    case 'boolean':
      return source.random() < 0.5
    case 'null':
      return null
    default:
      return text(schema, name, source)
  }
}

/** Follows `$ref` within the document, and takes the first of several alternatives. */
function resolved(schema: Fields, root: Fields): Fields {
  let found = schema
  for (let step = 0; step < DEEPEST; step++) {
    const path = string(found.$ref)
    const [choice] = list(found.anyOf ?? found.oneOf)
    if (path.startsWith('#')) {
      let target: unknown = root
      for (const part of path.split('/').slice(1)) target = fields(target)[part]
      found = fields(target)
    } else if (choice !== undefined) found = fields(choice)
    else if (Array.isArray(found.allOf)) {
      const { allOf, ...rest } = found
      found = Object.assign({}, ...list(allOf).map(fields), rest) as Fields
    } else return found
  }
  return {}
}

function typeOf(schema: Fields): string {
  const types = Array.isArray(schema.type) ? list(schema.type) : [schema.type]
  const type = types.find((one) => one !== 'null') ?? types[0]
  return string(type) || (schema.properties === undefined ? 'string' : 'object')
}

function enumerated(values: readonly unknown[], { message, random }: Source): unknown {
  const said = new Set(words(message).map((word) => word.toLowerCase()))
  const [first, ...rest] = values
  return values.find((value) => said.has(String(value).toLowerCase())) ?? oneOf(random, [first, ...rest])
}

function object(schema: Fields, source: Source, depth: number): unknown {
  const required = new Set(list(schema.required))
  const chosen = Object.entries(fields(schema.properties)).filter(
    ([name]) => required.has(name) || (depth < 2 && source.random() < 0.4),
  )
  if (depth >= DEEPEST) return {}
  return Object.fromEntries(
    chosen.map(([name, member]) => [name, build(fields(member), name, source, depth + 1)]),
  )
}

function array(schema: Fields, name: string, source: Source, depth: number): unknown[] {
  const least = number(schema.minItems) ?? 0
  const most = number(schema.maxItems) ?? Math.max(least, 2)
  const length =
    depth >= DEEPEST
      ? 0
      : Math.min(Math.max(least, 1 + Math.floor(source.random() * 2)), most, depth < 2 ? 20 : 3)
  return Array.from({ length }, () => build(fields(schema.items), name, source, depth + 1))
}

function numeric(schema: Fields, { message, random }: Source): number {
  const whole = typeOf(schema) === 'integer'
  const least = number(schema.minimum) ?? (number(schema.exclusiveMinimum) ?? 0) + (whole ? 1 : 0.5)
  const most = Math.max(least, number(schema.maximum) ?? (number(schema.exclusiveMaximum) ?? least + 20) - 1)
  const fits = (value: number) => value >= least && value <= most && (!whole || Number.isInteger(value))
  const said = (message.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number).find(fits)
  if (said !== undefined) return said
  const drawn = least + random() * (most - least)
  return whole ? Math.floor(Math.max(Math.ceil(least), drawn)) : Math.round(drawn * 10) / 10
}

/** Words that stand for something are written with a capital, or else the topic is the best guess. */
function text(schema: Fields, name: string, { message }: Source): string {
  const format = FORMATS.get(string(schema.format))
  if (format) return format
  const [, ...afterFirst] = words(message)
  const proper = afterFirst.filter((word) => /^\p{Lu}\p{L}+/u.test(word)).join(' ')
  const guess = proper || topicOf(message) || name || 'example'
  const least = number(schema.minLength) ?? 0
  return guess.padEnd(least, '.').slice(0, Math.max(least, number(schema.maxLength) ?? 120))
}
