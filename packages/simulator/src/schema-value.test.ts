import { Ajv } from 'ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from './random.ts'
import { type ValueHints, valueMatchingSchema } from './schema-value.ts'
import { lawRuns } from '../../../test/runner/tier.ts'

const PLAIN: ValueHints = { text: () => undefined, mentions: () => false }
const WHOLE: ValueHints = { text: () => undefined, mentions: () => true }

/** Values for the schema with a hundred seeds. */
function values(schema: Record<string, unknown>, message = 'Plan a trip to Lisbon for 4 people'): unknown[] {
  return Array.from({ length: 100 }, (_, seed) =>
    valueMatchingSchema(schema, message, seededRandom(String(seed)), PLAIN),
  )
}

test('an object generated for a schema has its required members, and its optional ones only if the caller of the generator asks', () => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' }, note: { type: 'string' } },
    required: ['city'],
  }
  expect(new Set(values(schema).map((one) => JSON.stringify(one)))).toEqual(new Set(['{"city":"Lisbon"}']))
  expect(valueMatchingSchema(schema, 'about Lisbon', seededRandom(''), WHOLE)).toEqual({
    city: 'Lisbon',
    note: 'Lisbon',
  })
})

test('a generated number is within the bounds of its schema, and is a number of the message if one of them fits', () => {
  expect(new Set(values({ type: 'integer', minimum: 1, maximum: 9 }))).toEqual(new Set([4]))
  expect(values({ type: 'integer', minimum: 10, maximum: 12 })).toSatisfy((all: number[]) =>
    all.every((value) => Number.isInteger(value) && value >= 10 && value <= 12),
  )
})

test("a generated number is the schema's default if the message mentions no number, or else a small number", () => {
  expect(valueMatchingSchema({ type: 'number', default: 30 }, 'Hello', seededRandom(''), PLAIN)).toBe(30)
  const wide = { type: 'integer', minimum: -9007199254740991, exclusiveMinimum: 0, maximum: 9007199254740991 }
  expect(values(wide, 'Hello')).toSatisfy((all: number[]) => all.every((value) => value >= 1 && value <= 20))
})

test('a generated enumeration value is the one that the message names', () => {
  expect(new Set(values({ enum: ['train', 'trip', 'car'] }))).toEqual(new Set(['trip']))
  expect(values({ enum: ['red', 'green'] })).toSatisfy((all: string[]) =>
    all.every((one) => /^(red|green)$/.test(one)),
  )
})

test('a value is generated for a schema with references, even if they are recursive', () => {
  const schema = {
    type: 'object',
    properties: { child: { $ref: '#' }, place: { $ref: '#/$defs/place' } },
    required: ['child', 'place'],
    $defs: { place: { anyOf: [{ const: 'here' }, { type: 'null' }] } },
  }
  expect(valueMatchingSchema(schema, '', seededRandom(''), PLAIN)).toMatchObject({
    place: 'here',
    child: { place: 'here' },
  })
})

test('a value generated for an endlessly recursive schema is limited in size', () => {
  const children = { type: 'array', items: { $ref: '#' }, minItems: 4 }
  const schema = { type: 'object', properties: { children }, required: ['children'] }
  expect(JSON.stringify(valueMatchingSchema(schema, '', seededRandom(''), WHOLE)).length).toBeLessThan(
    100_000,
  )
})

describe('generated values', () => {
  const ajv = new Ajv({ strict: false })

  test.each<[string, Record<string, unknown>]>([
    ['exclusive bounds', { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 5 }],
    ['bounds below zero', { type: 'integer', minimum: -9, maximum: -7 }],
    ['a narrow range', { type: 'number', minimum: 0.31, maximum: 0.33 }],
    ['multiples', { type: 'integer', multipleOf: 25, minimum: 30 }],
    ['several types', { type: ['null', 'integer'], minimum: 2 }],
    ['lengths of texts', { type: 'string', minLength: 300, maxLength: 301 }],
    ['a short text', { type: 'string', maxLength: 3 }],
    ['lengths of arrays', { type: 'array', items: { type: 'boolean' }, minItems: 3, maxItems: 3 }],
    ['an empty array', { type: 'array', items: { type: 'string' }, maxItems: 0 }],
    [
      'items without repetition',
      { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 3, uniqueItems: true },
    ],
    ['a tuple', { type: 'array', items: { type: 'string' }, minItems: 2, uniqueItems: true }],
    [
      'alternatives beside members',
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'integer' } },
        anyOf: [{ required: ['b'] }, { required: ['a'] }],
      },
    ],
    [
      'parts',
      {
        allOf: [
          { properties: { a: { type: 'integer' } }, required: ['a'] },
          { properties: { b: { type: 'boolean' } }, required: ['b'] },
        ],
        type: 'object',
      },
    ],
    [
      'members that are not declared',
      { type: 'object', required: ['x'], additionalProperties: { type: 'integer' } },
    ],
    [
      'nothing more than is declared',
      { type: 'object', properties: { a: { const: 7 } }, required: ['a'], additionalProperties: false },
    ],
    ['no type', { properties: { list: { items: { type: 'integer' } } }, required: ['list'] }],
  ])('a generated value satisfies the schema: %s', (_, schema) => {
    const check = ajv.compile(schema)
    for (const reading of [PLAIN, WHOLE]) {
      const made = valueMatchingSchema(
        schema,
        'Plan a trip to Lisbon for 4 people',
        seededRandom('x'),
        reading,
      )
      expect(check(made), JSON.stringify(made)).toBe(true)
    }
  })

  const leaf = fc.oneof(
    fc.record({ type: fc.constant('integer'), minimum: fc.integer({ min: -50, max: 50 }) }),
    fc.record({ type: fc.constant('integer'), maximum: fc.integer({ min: -50, max: 50 }) }),
    fc.record({ type: fc.constant('number'), exclusiveMinimum: fc.integer({ min: -5, max: 5 }) }),
    fc.record({ type: fc.constant('string'), minLength: fc.nat(30) }),
    fc.record({ type: fc.constant('string'), maxLength: fc.nat(30) }),
    fc.record({ enum: fc.uniqueArray(fc.string(), { minLength: 1 }) }),
    fc.constantFrom({ type: 'boolean' }, { type: 'null' }, { type: ['string', 'null'] }),
  )
  const { schema: anySchema } = fc.letrec((tie) => ({
    schema: fc.oneof({ maxDepth: 3 }, leaf, tie('object'), tie('array'), tie('choice')),
    object: fc
      .dictionary(fc.stringMatching(/^[a-z_]{1,8}$/), tie('schema'), { maxKeys: 4 })
      .chain((properties) =>
        fc
          .subarray(Object.keys(properties))
          .map((required) => ({ type: 'object', properties, required, additionalProperties: false })),
      ),
    array: fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
    choice: fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
  }))

  test('a generated value satisfies any schema of the common keywords', () => {
    fc.assert(
      fc.property(anySchema, fc.string(), fc.boolean(), (schema, message, whole) => {
        const asked = schema as Record<string, unknown>
        const made = valueMatchingSchema(asked, message, seededRandom(message), whole ? WHOLE : PLAIN)
        expect(ajv.validate(asked, made), JSON.stringify({ asked, made })).toBe(true)
      }),
      { numRuns: lawRuns(200) },
    )
  })
})
