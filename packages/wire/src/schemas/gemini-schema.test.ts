import { expect, test } from 'vitest'
import { toGeminiSchema } from './gemini-schema.ts'

test('members beside a reference move around it, because Gemini allows none', () => {
  const schema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/d', description: 'A.' } },
    $defs: { d: { type: 'string' } },
  }
  expect(JSON.parse(toGeminiSchema(JSON.stringify(schema)))).toMatchObject({
    properties: { a: { description: 'A.', anyOf: [{ $ref: '#/$defs/d' }] } },
  })
})

test.each([
  ['kept within an optional property', [], { $ref: '#/$defs/node' }],
  [
    'a copy without it within a required property',
    ['next'],
    {
      type: 'object',
      properties: {},
      required: [],
      description: 'Constraints: recursive: like #/$defs/node, without "next".',
    },
  ],
])('a recursive reference is %s', (_what, required, next) => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required }
  const schema = { type: 'object', properties: { first: { $ref: '#/$defs/node' } }, $defs: { node } }
  expect(JSON.parse(toGeminiSchema(JSON.stringify(schema))).$defs.node.properties.next).toEqual(next)
})
