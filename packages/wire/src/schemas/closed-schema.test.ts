import { describe, expect, test } from 'vitest'
import { EnforcedSchemas, toClosedSchema } from './closed-schema.ts'

const close = (schema: object): unknown => JSON.parse(toClosedSchema(JSON.stringify(schema)))
const object = (properties: object, more: object = {}): object => ({
  type: 'object',
  properties,
  ...more,
  additionalProperties: false,
})

describe('a schema for structured output', () => {
  test.each([
    ['minimum', { type: 'number', minimum: 1.5 }, 'at least 1.5'],
    ['maximum', { type: 'number', maximum: 3 }, 'at most 3'],
    ['exclusiveMinimum', { type: 'number', exclusiveMinimum: 0 }, 'greater than 0'],
    ['multipleOf', { type: 'integer', multipleOf: 5 }, 'a multiple of 5'],
    ['minLength', { type: 'string', minLength: 2 }, 'at least 2 characters'],
    ['maxLength', { type: 'string', maxLength: 9 }, 'at most 9 characters'],
    ['minItems', { type: 'array', minItems: 2 }, 'at least 2 items'],
    ['maxItems', { type: 'array', maxItems: 4 }, 'at most 4 items'],
    ['pattern', { type: 'string', pattern: '(?=a)b' }, 'matches the regular expression (?=a)b'],
    ['format', { type: 'string', format: 'phone' }, 'in the format phone'],
    ['not', { type: 'string', not: { const: 'x' } }, 'not: {"const":"x"}'],
  ])('says in its description what %s demands, because the keyword is refused', (keyword, schema, words) => {
    const { [keyword]: _refused, ...rest } = schema as Record<string, unknown>
    expect(close(object({ a: schema }))).toEqual(
      object({ a: { ...rest, description: `Constraints: ${words}.` } }),
    )
  })

  test('adds the constraints to a description that is already there, with all digits', () => {
    const text =
      '{"type":"object","properties":{"10":{"type":"integer","maximum":9007199254740993,"description":"Count."},"2":{"const":1.0}},"additionalProperties":false}'
    expect(toClosedSchema(text)).toBe(
      '{"type":"object","properties":{"10":{"type":"integer","description":"Count.\\n\\nConstraints: at most 9007199254740993."},"2":{"const":1.0}},"additionalProperties":false}',
    )
  })

  test.each([
    { type: 'array', minItems: 1, items: { type: 'string', pattern: String.raw`^[a-z]+\d{2,4}$` } },
    { type: 'string', format: 'date-time', default: 'x', title: 't' },
    { anyOf: [{ type: 'null' }, { $ref: '#/$defs/d' }] },
    { allOf: [{ type: 'string' }, { enum: ['a', 1, true, null] }] },
  ])('is unchanged if the provider accepts it: %j', (schema) => {
    const text = JSON.stringify(object({ a: schema }, { $defs: { d: { type: 'string' } } }), undefined, 2)
    expect(toClosedSchema(text)).toBe(text)
  })

  test('gives every property that a part does not name the schema of the other properties of that part', () => {
    const text = { type: 'string' }
    const parts = [
      { properties: { a: text, b: text, c: text } },
      { properties: { c: text }, additionalProperties: { enum: ['x', 'y'] } },
      { properties: { a: text, c: text }, additionalProperties: { maxLength: 3 } },
    ]
    const { properties } = close({ type: 'object', allOf: parts }) as { properties: Record<string, object> }
    const said = Object.entries(properties).map(([name, schema]) => [name, JSON.stringify(schema)])
    expect(
      said.map(([name, schema]) => [name, schema?.includes('"x","y"'), schema?.includes('at most 3')]),
    ).toEqual([
      ['a', true, false],
      ['b', true, true],
      ['c', false, false],
    ])
  })

  test('closes every object, also in lists, alternatives and definitions', () => {
    const open = { type: 'object', properties: { x: { type: 'string' } } }
    const closed = object({ x: { type: 'string' } })
    expect(
      close({
        ...open,
        properties: {
          a: { type: 'array', items: open },
          b: { anyOf: [open, { type: 'null' }] },
          c: { $ref: '#/$defs/d' },
        },
        $defs: { d: open },
      }),
    ).toEqual(
      object(
        {
          a: { type: 'array', items: closed },
          b: { anyOf: [closed, { type: 'null' }] },
          c: { $ref: '#/$defs/d' },
        },
        { $defs: { d: closed } },
      ),
    )
  })

  test('has a copy without its recursive properties in place of a recursive reference', () => {
    const node = {
      type: 'object',
      properties: { v: { type: 'string' }, next: { $ref: '#/$defs/node' } },
      required: ['v', 'next'],
    }
    expect(
      close({ type: 'object', properties: { first: { $ref: '#/$defs/node' } }, $defs: { node } }),
    ).toEqual(
      object(
        { first: { $ref: '#/$defs/node' } },
        {
          $defs: {
            node: object(
              {
                v: { type: 'string' },
                next: object(
                  { v: { type: 'string' } },
                  {
                    required: ['v'],
                    description: 'Constraints: recursive: like #/$defs/node, without "next".',
                  },
                ),
              },
              { required: ['v', 'next'] },
            ),
          },
        },
      ),
    )
  })

  test('has one object in place of allOf, and of a reference with other members', () => {
    const $defs = { d: object({ x: { type: 'string' } }, { required: ['x'], description: 'D.' }) }
    expect(
      close({
        type: 'object',
        properties: {
          a: {
            allOf: [
              { type: 'object', properties: { y: { type: 'string' } } },
              { type: 'object', required: ['y'] },
            ],
          },
          b: { $ref: '#/$defs/d', description: 'B.' },
        },
        $defs,
      }),
    ).toEqual(
      object(
        {
          a: object({ y: { type: 'string' } }, { required: ['y'] }),
          b: object({ x: { type: 'string' } }, { required: ['x'], description: 'D.\n\nB.' }),
        },
        { $defs },
      ),
    )
  })

  test('stays small where references multiply it, and ends where they are endless', () => {
    const $defs: Record<string, object> = { d0: { type: 'string' } }
    for (let n = 1; n <= 40; n++) {
      const ref = { $ref: `#/$defs/d${n - 1}`, description: 'd' }
      $defs[`d${n}`] = { type: 'object', properties: { a: ref, b: ref } }
    }
    const wide = toClosedSchema(
      JSON.stringify({ type: 'object', properties: { a: { $ref: '#/$defs/d40' } }, $defs }),
    )
    expect(wide.length).toBeLessThan(5_000_000)
    const chain = Object.fromEntries(
      Array.from({ length: 20_000 }, (_one, n) => [`c${n}`, { $ref: `#/$defs/c${n + 1}`, title: 't' }]),
    )
    const long = toClosedSchema(
      JSON.stringify({ type: 'object', properties: { a: { $ref: '#/$defs/c0' } }, $defs: chain }),
    )
    expect(long.length).toBeLessThan(5_000_000)
  })
})

test('a request has at most 20 strict tools, 24 optional properties and 16 unions enforced', () => {
  const text = (properties: object): string => JSON.stringify(object(properties))
  const tools = new EnforcedSchemas()
  expect(Array.from({ length: 21 }, () => tools.takesTool(text({})))).toEqual([
    ...Array(20).fill(true),
    false,
  ])
  const optional = new EnforcedSchemas()
  const five = text({ a: {}, b: {}, c: {}, d: {}, e: {} })
  expect(Array.from({ length: 5 }, () => optional.takesFormat(five))).toEqual([true, true, true, true, false])
  const unions = new EnforcedSchemas()
  const union = JSON.stringify(object({ a: { type: ['string', 'null'] } }, { required: ['a'] }))
  expect(Array.from({ length: 17 }, () => unions.takesFormat(union)).indexOf(false)).toBe(16)
})
