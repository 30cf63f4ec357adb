import { expect, test } from 'vitest'
import { toMoonshotSchema } from './moonshot-schema.ts'

const ANY = { type: ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] }

test.each<[string, object, object]>([
  [
    'a property without a type gets one',
    { properties: { a: {}, b: { items: {} }, c: { enum: ['x'] } } },
    {
      type: 'object',
      properties: { a: ANY, b: { type: 'array', items: ANY }, c: { type: 'string', enum: ['x'] } },
    },
  ],
  [
    'a constant is an enumeration',
    { type: 'object', properties: { a: { const: 3 } } },
    {
      type: 'object',
      properties: { a: { type: 'number', enum: [3] } },
    },
  ],
  [
    'what all parts demand stands in one schema',
    {
      type: 'object',
      properties: {
        p: {
          allOf: [
            { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
            { properties: { b: { type: 'number' } }, required: ['b'] },
          ],
        },
      },
    },
    {
      type: 'object',
      properties: {
        p: {
          type: 'object',
          properties: { a: { type: 'string' }, b: { type: 'number' } },
          required: ['a', 'b'],
        },
      },
    },
  ],
  [
    'null and lists as values have their types',
    { type: 'object', properties: { a: { const: null }, b: { enum: [[1], [2]] } } },
    {
      type: 'object',
      properties: { a: { type: 'null', enum: [null] }, b: { type: 'array', enum: [[1], [2]] } },
    },
  ],
  [
    'what references lead to gets a name that no other definition has',
    {
      type: 'object',
      $defs: { X: { type: 'string' }, part2: { type: 'null' } },
      definitions: { X: { type: 'number' }, 'y/z': { type: 'boolean' } },
      properties: {
        a: { $ref: '#/$defs/X' },
        b: { $ref: '#/definitions/X' },
        c: { $ref: '#/properties/e' },
        d: { $ref: '#/definitions/y~1z' },
        e: { type: 'integer' },
      },
    },
    {
      type: 'object',
      $defs: {
        X: { type: 'string' },
        part2: { type: 'null' },
        X_1: { type: 'number' },
        part2_2: { type: 'integer' },
        y_1z: { type: 'boolean' },
      },
      properties: {
        a: { $ref: '#/$defs/X' },
        b: { $ref: '#/$defs/X_1' },
        c: { $ref: '#/$defs/part2_2' },
        d: { $ref: '#/$defs/y_1z' },
        e: { type: 'integer' },
      },
    },
  ],
  [
    'the type stands in the branches of a union',
    {
      type: 'object',
      properties: { a: { type: 'string', anyOf: [{ pattern: 'x' }, { description: 'y' }], title: 't' } },
    },
    {
      type: 'object',
      properties: {
        a: {
          anyOf: [
            { type: 'string', pattern: 'x' },
            { description: 'y', type: 'string' },
          ],
          title: 't',
        },
      },
    },
  ],
  [
    'a union beside properties is said in words',
    {
      type: 'object',
      properties: {
        a: { type: 'object', properties: { b: { type: 'string' } }, oneOf: [{ required: ['b'] }] },
      },
    },
    {
      type: 'object',
      properties: {
        a: {
          type: 'object',
          properties: { b: { type: 'string' } },
          description: 'Constraints: anyOf: [{"required":["b"]}].',
        },
      },
    },
  ],
  [
    'types with members of their own become a union',
    {
      type: 'object',
      properties: {
        a: { type: ['array', 'null'], items: { type: 'string' }, default: null },
        b: { type: ['string', 'null'] },
      },
    },
    {
      type: 'object',
      properties: {
        a: {
          description: 'Constraints: default: null.',
          anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }],
        },
        b: { type: ['string', 'null'] },
      },
    },
  ],
  [
    'references lead to definitions, with a description beside them',
    {
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { $ref: '#/properties/a', description: 'd', type: 'string' },
        c: { $ref: '#/definitions/C', minLength: 2 },
      },
      definitions: { C: { type: 'string' } },
    },
    {
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { $ref: '#/$defs/part1', description: 'd' },
        c: { $ref: '#/$defs/C', description: 'Constraints: at least 2 characters.' },
      },
      $defs: { part1: { type: 'string' }, C: { type: 'string' } },
    },
  ],
  [
    'a required property is declared',
    { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b'] },
    {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
    },
  ],
])('in a schema for Moonshot %s', (_, given, expected) => {
  const converted = toMoonshotSchema(JSON.stringify(given))
  expect(JSON.parse(converted)).toEqual(expected)
  expect(toMoonshotSchema(converted)).toBe(converted)
})

test('a schema that Moonshot accepts keeps its bytes', () => {
  const text =
    '{"type": "object", "properties": {"n": {"type": "integer", "maximum": 12345678901234567890}, "d": {"$ref": "#/$defs/D"}}, "$defs": {"D": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}'
  expect(toMoonshotSchema(text)).toBe(text)
})
