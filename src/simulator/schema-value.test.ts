import { expect, test } from 'vitest'
import { seededBy } from './random.ts'
import { type Reading, valueFor } from './schema-value.ts'

const PLAIN: Reading = { text: () => undefined, speaksOf: () => false }

/** Values for the schema by a hundred seeds. */
function values(schema: Record<string, unknown>, message = 'Plan a trip to Lisbon for 4 people'): unknown[] {
  return Array.from({ length: 100 }, (_, seed) => valueFor(schema, message, seededBy(String(seed)), PLAIN))
}

test('an object has its required members', () => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' }, note: { type: 'string' } },
    required: ['city'],
  }
  expect(values(schema)).toSatisfy((all: { city?: string }[]) => all.every(({ city }) => city === 'Lisbon'))
})

test('numbers keep their bounds, and are taken from the message where they fit', () => {
  expect(new Set(values({ type: 'integer', minimum: 1, maximum: 9 }))).toEqual(new Set([4]))
  expect(values({ type: 'integer', minimum: 10, maximum: 12 })).toSatisfy((all: number[]) =>
    all.every((value) => Number.isInteger(value) && value >= 10 && value <= 12),
  )
})

test('an enumeration value that the message names is chosen', () => {
  expect(new Set(values({ enum: ['train', 'trip', 'car'] }))).toEqual(new Set(['trip']))
  expect(values({ enum: ['red', 'green'] })).toSatisfy((all: string[]) =>
    all.every((one) => /^(red|green)$/.test(one)),
  )
})

test('arrays keep their lengths', () => {
  const schema = { type: 'array', minItems: 3, maxItems: 3, items: { type: 'boolean' } }
  expect(values(schema)).toSatisfy((all: boolean[][]) => all.every(({ length }) => length === 3))
})

test('strings keep their lengths and formats', () => {
  expect(valueFor({ type: 'string', maxLength: 3 }, 'about Lisbon', seededBy(''), PLAIN)).toBe('Lis')
  expect(valueFor({ type: 'string', format: 'date' }, '', seededBy(''), PLAIN)).toMatch(/^\d{4}-\d\d-\d\d$/)
})

test('references are followed, and a schema that contains itself comes to an end', () => {
  const schema = {
    type: 'object',
    properties: { child: { $ref: '#' }, place: { $ref: '#/$defs/place' } },
    required: ['child', 'place'],
    $defs: { place: { anyOf: [{ const: 'here' }, { type: 'null' }] } },
  }
  expect(valueFor(schema, '', seededBy(''), PLAIN)).toMatchObject({ place: 'here', child: { place: 'here' } })
})
