import { expect, test } from 'vitest'
import { toToolSchema } from './tool-schema.ts'

const flat = (schema: object): unknown => JSON.parse(toToolSchema(JSON.stringify(schema)))
const a = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
const b = { type: 'object', properties: { b: { type: 'string' } } }

test.each([
  [
    'alternatives keep what is beside them',
    {
      type: 'object',
      description: 'D.',
      properties: { c: { type: 'null' } },
      required: ['c'],
      anyOf: [a, b],
    },
    {
      type: 'object',
      description: 'D.\n\nAt least one of these applies: (1) requires "a". (2) may have "b".',
      properties: { c: { type: 'null' }, a: { type: 'string' }, b: { type: 'string' } },
      required: ['c'],
    },
  ],
  [
    'allOf needs all that its schemas require',
    { allOf: [a, b] },
    { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['a'] },
  ],
  [
    'a reference at the top is followed',
    { $ref: '#/definitions/A', definitions: { A: a } },
    { ...a, definitions: { A: a } },
  ],
  [
    'a reference into an alternative leads to a definition',
    { anyOf: [a, { type: 'object', properties: { b: { $ref: '#/anyOf/0/properties/a' } } }] },
    {
      type: 'object',
      properties: { a: { type: 'string' }, b: { $ref: '#/$defs/part1' } },
      $defs: { part1: { type: 'string' } },
      description: 'At least one of these applies: (1) requires "a". (2) may have "b".',
    },
  ],
  [
    'alternatives that are no objects are only in words',
    { anyOf: [a, { type: 'string' }] },
    {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      description: 'At least one of these applies: (1) requires "a". (2) of type string.',
    },
  ],
  ['a reference to itself ends', { $ref: '#' }, { type: 'object', properties: {} }],
])("the top of a tool's schema: %s", (_name, schema, expected) => {
  expect(flat(schema)).toEqual(expected)
})

test.each(['{"type": "object", "properties":{"anyOf":{"type":"string" }}}', '{ }'])(
  "a tool's schema without a union at its top is unchanged: %s",
  (text) => {
    expect(toToolSchema(text)).toBe(text)
  },
)

test("a tool's schema stays small where alternatives and references multiply it", () => {
  const $defs: Record<string, object> = { d0: a }
  for (let n = 1; n <= 60; n++) {
    const part = (text: string): object => ({ allOf: [{ $ref: `#/$defs/d${n - 1}` }], description: text })
    $defs[`d${n}`] = { anyOf: [part('x'), part('y')] }
  }
  expect(toToolSchema(JSON.stringify({ $ref: '#/$defs/d60', $defs })).length).toBeLessThan(1_000_000)
})
