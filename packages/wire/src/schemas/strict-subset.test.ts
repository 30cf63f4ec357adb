import { expect, test } from 'vitest'
import { isStrictSchema } from './strict-subset.ts'

const strict = (properties: Record<string, unknown>, more: object = {}): string =>
  JSON.stringify({
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
    ...more,
  })
const text = { type: 'string' }
let deep: object = text
for (let level = 0; level < 10; level++) deep = { type: 'array', items: deep }

test.each([
  strict({}),
  strict({
    a: { type: ['string', 'null'], pattern: '^x', format: 'date', description: 'd' },
    'b c': { type: 'null' },
  }),
  strict(
    { a: { anyOf: [text, { $ref: '#' }, { $ref: '#/$defs/d' }] } },
    { $defs: { d: { type: 'number', minimum: 1 } } },
  ),
  strict({ a: { type: 'array', items: text, minItems: 2, maxItems: 3 } }),
])("a schema in OpenAI's subset is sent with strict: true: %s", (schema) => {
  expect(isStrictSchema(schema)).toBe(true)
})

test.each([
  ['an optional property', strict({ a: text }, { required: [] })],
  ['an open object', strict({}, { additionalProperties: true })],
  ['a required name without a property', strict({ a: text }, { required: ['a', 'b'] })],
  ['a union at the top', strict({}, { anyOf: [{ type: 'object' }] })],
  ['no object at the top', JSON.stringify(text)],
  ['an open object inside', strict({ a: { type: 'object', properties: {} } })],
  ['allOf', strict({ a: { allOf: [text] } })],
  ['oneOf', strict({ a: { oneOf: [text] } })],
  ['a schema without a type', strict({ a: { enum: ['x'] } })],
  ['a list without items', strict({ a: { type: 'array' } })],
  ['another format', strict({ a: { type: 'string', format: 'uri' } })],
  ['look-around', strict({ a: { type: 'string', pattern: '(?!a)' } })],
  ['members beside a reference', strict({ a: { $ref: '#', description: 'd' } })],
  ['a reference that leads nowhere', strict({ a: { $ref: '#/$defs/x' } })],
  ['more than ten levels', strict({ a: deep })],
  [
    'more than 1,000 values',
    strict({ a: { type: 'integer', enum: Array.from({ length: 1001 }, (_one, n) => n) } }),
  ],
  [
    'more than 5,000 properties',
    strict(Object.fromEntries(Array.from({ length: 5001 }, (_one, n) => [`p${n}`, text]))),
  ],
  ['names of more than 120,000 characters', strict({ ['x'.repeat(120_001)]: text })],
  [
    'a long enumeration of many values',
    strict({ a: { type: 'string', enum: Array.from({ length: 251 }, (_one, n) => `${n}`.padStart(60)) } }),
  ],
])("a schema outside of OpenAI's subset is sent with strict: false: %s", (_why, schema) => {
  expect(isStrictSchema(schema)).toBe(false)
})
