import fc from 'fast-check'

/** A JSON schema, or `true` or `false`. */
export type Schema = boolean | { readonly [keyword: string]: unknown }

const NAMES = ['a', 'b', 'c', '10', '2']
const TYPES = ['string', 'integer', 'number', 'boolean', 'null', 'object', 'array']
const SCALARS = ['x', 'y', 1, 2.5, true, null]

/** Which parts of JSON Schema generated schemas may use. */
export interface SchemaParts {
  /** Keywords that some providers can only be told in words. */
  readonly constraints?: boolean
  /** References of definitions to themselves. */
  readonly recursion?: boolean
}

const scalars = fc.uniqueArray(fc.constantFrom(...SCALARS), { minLength: 1, maxLength: 3 })
const anyNames = fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 })

/** Keywords that restrict values of one type, by the type. */
const CONSTRAINTS = {
  string: fc.record(
    {
      minLength: fc.nat(2),
      maxLength: fc.integer({ min: 1, max: 5 }),
      pattern: fc.constantFrom('^x', '(?=x)x', String.raw`\bx`, '^[a-z]{1,3}$'),
      format: fc.constantFrom('date', 'uri', 'phone'),
    },
    { requiredKeys: [] },
  ),
  number: fc.record(
    {
      minimum: fc.integer({ max: 3 }),
      exclusiveMaximum: fc.integer({ min: 2 }),
      multipleOf: fc.constant(0.5),
    },
    { requiredKeys: [] },
  ),
  array: fc.record(
    { minItems: fc.nat(3), maxItems: fc.integer({ min: 1, max: 3 }), uniqueItems: fc.boolean() },
    { requiredKeys: [] },
  ),
  object: fc.record(
    { minProperties: fc.nat(1), maxProperties: fc.integer({ min: 1, max: 3 }) },
    { requiredKeys: [] },
  ),
} as const

/** Schemas of objects: nested, with unions, references, enumerations, nulls and the given parts. */
export function schemas({
  constraints = false,
  recursion = false,
}: SchemaParts = {}): fc.Arbitrary<Exclude<Schema, boolean>> {
  const limits = (type: keyof typeof CONSTRAINTS): fc.Arbitrary<object> =>
    constraints ? CONSTRAINTS[type] : fc.constant({})
  const about = fc.record({ description: fc.constantFrom('A text.', 'ü') }, { requiredKeys: [] })
  const { schema, object } = fc.letrec<{ schema: Schema; object: Exclude<Schema, boolean> }>((tie) => {
    const inner = tie('schema')
    const list = fc.array(inner, { minLength: 1, maxLength: 3 })
    const objectSchema = fc
      .tuple(
        fc.record(
          {
            properties: fc.dictionary(fc.constantFrom(...NAMES), inner, { maxKeys: 3 }),
            required: anyNames,
            additionalProperties: fc.oneof(fc.boolean(), inner),
          },
          { requiredKeys: [] },
        ),
        limits('object'),
        about,
      )
      .map((parts) => withPossibleNames({ type: 'object', ...Object.assign({}, ...parts) }))
    const references = recursion ? ['one', 'two', 'three'] : ['one', 'two']
    return {
      object: objectSchema,
      schema: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc
          .tuple(limits('string'), about)
          .map((parts) => ({ type: 'string', ...Object.assign({}, ...parts) })),
        fc
          .tuple(fc.constantFrom('integer', 'number'), limits('number'))
          .map(([type, limit]) => ({ type, ...limit })),
        fc.boolean(),
        fc.constant({}),
        about,
        scalars.map((values) => ({ enum: values })),
        fc.constantFrom(...SCALARS).map((value) => ({ const: value })),
        fc.uniqueArray(fc.constantFrom(...TYPES), { minLength: 1, maxLength: 3 }).map((type) => ({ type })),
        fc.tuple(fc.constantFrom(...references), about).map(([name, parts]) => ({
          $ref: `#/$defs/${name}`,
          ...parts,
        })),
        tie('object'),
        fc
          .tuple(
            inner.filter((items) => items !== false),
            limits('array'),
          )
          .map(([items, limit]) => ({ type: 'array', items, ...limit })),
        fc
          .tuple(fc.constantFrom('anyOf', 'allOf', ...(constraints ? ['oneOf'] : [])), list)
          .map(([keyword, all]) => ({
            [keyword]: all,
          })),
        fc
          .tuple(tie('object'), fc.array(tie('object'), { minLength: 1, maxLength: 2 }))
          .map(([base, anyOf]) => ({ ...base, anyOf })),
      ),
    }
  })
  // Definitions refer only to later ones, unless recursion is wanted.
  const leaf = fc.constantFrom<Schema>(
    { type: 'string' },
    { type: 'object', properties: { a: { type: 'number' } } },
  )
  const definitions = schema.filter((definition) => typeof definition === 'object')
  return fc.tuple(object, definitions, leaf).map(([root, definition, last]) => ({
    ...root,
    $defs: {
      one: recursion ? definition : withoutReferences(definition, 'two'),
      two: recursion ? { type: 'object', properties: { next: { $ref: '#/$defs/one' } } } : last,
      three: { type: 'array', items: { $ref: '#/$defs/three' } },
    },
  }))
}

/** Requires only properties that the object may have. */
function withPossibleNames(schema: Exclude<Schema, boolean>): Exclude<Schema, boolean> {
  const { properties = {}, required, additionalProperties } = schema
  if (!Array.isArray(required)) return schema
  const given = properties as Record<string, unknown>
  const isPossible = (name: string): boolean => (given[name] ?? additionalProperties) !== false
  return { ...schema, required: required.filter(isPossible) }
}

/** Points all references to one definition, which has none. */
function withoutReferences(schema: Schema, name: string): Schema {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === '$ref' ? `#/$defs/${name}` : value)),
  ) as Schema
}

/** Schemas in Google's form, with what they mean in JSON Schema. */
export const googleSchemas: fc.Arbitrary<{ readonly google: object; readonly meant: object }> = fc.letrec<{
  schema: { google: object; meant: object }
}>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(fc.constantFrom('STRING', 'INTEGER', 'NUMBER', 'BOOLEAN'), fc.boolean())
      .map(([type, nullable]) => ({
        google: { type, nullable },
        meant: { type: nullable ? [type.toLowerCase(), 'null'] : type.toLowerCase() },
      })),
    fc.boolean().map((nullable) => ({
      google: { type: 'STRING', format: 'enum', enum: ['x', 'STRING'], nullable },
      meant: {
        type: nullable ? ['string', 'null'] : 'string',
        enum: ['x', 'STRING', ...(nullable ? [null] : [])],
      },
    })),
    fc.tuple(fc.nat(9), fc.boolean()).map(([count, isText]) => ({
      google: { type: 'STRING', minLength: isText ? String(count) : count },
      meant: { type: 'string', minLength: count },
    })),
    fc.tuple(tie('schema'), fc.nat(3)).map(([items, count]) => ({
      google: { type: 'ARRAY', items: items.google, maxItems: String(count) },
      meant: { type: 'array', items: items.meant, maxItems: count },
    })),
    fc
      .tuple(fc.array(tie('schema'), { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([all, nullable]) => ({
        google: { anyOf: all.map(({ google }) => google), nullable },
        meant: { anyOf: [...all.map(({ meant }) => meant), ...(nullable ? [{ type: 'null' }] : [])] },
      })),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom('type', 'enum', 'STRING'), tie('schema'), { maxKeys: 3 }),
        anyNames,
      )
      .map(([properties, required]) => ({
        google: { type: 'OBJECT', properties: mapValues(properties, ({ google }) => google), required },
        meant: { type: 'object', properties: mapValues(properties, ({ meant }) => meant), required },
      })),
  ),
})).schema

function mapValues<Given, Result>(
  fields: Record<string, Given>,
  change: (value: Given) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(value)]))
}

/** A value that a schema allows, as far as its structure says; `random` returns numbers from 0 to below 1. */
export function valueFor(schema: unknown, root: unknown, random: () => number, depth = 0): unknown {
  const pick = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value
  if (typeof schema !== 'object' || schema === null) return pick(SCALARS)
  const { $ref, const: constant, anyOf, allOf, ...fields } = schema as Record<string, unknown>
  if (typeof $ref === 'string') {
    const [, , name = ''] = $ref.split('/')
    return depth > 12 ? null : valueFor(definitionOf(root, name), root, random, depth + 1)
  }
  if (constant !== undefined) return constant
  if (Array.isArray(fields['enum'])) return pick(fields['enum'])
  if (Array.isArray(anyOf)) return valueFor(pick(anyOf), root, random, depth + 1)
  if (Array.isArray(allOf)) return valueFor(allOf[0], root, random, depth + 1)
  const type = Array.isArray(fields['type']) ? pick(fields['type']) : fields['type']
  switch (type) {
    case 'string':
      return pick(['', 'x', 'y', 'xyz', 'a longer text'])
    case 'integer':
      return pick([-7, 0, 1, 2, 3])
    case 'number':
      return pick([-1.25, 0, 0.5, 1, 2.5])
    case 'boolean':
      return pick([true, false])
    case 'null':
      return null
    case 'array':
      return Array.from({ length: Math.floor(random() * 3) }, () =>
        valueFor(fields['items'], root, random, depth + 1),
      )
    case 'object': {
      const properties = Object.entries(fields['properties'] ?? {})
      const required = new Set((fields['required'] ?? []) as string[])
      const given = properties.filter(([name]) => required.has(name) || (depth < 4 && random() < 0.6))
      return Object.fromEntries(given.map(([name, one]) => [name, valueFor(one, root, random, depth + 1)]))
    }
    default:
      return pick(SCALARS)
  }
}

function definitionOf(root: unknown, name: string): unknown {
  const { $defs = {} } = root as { $defs?: Record<string, unknown> }
  return $defs[name]
}
