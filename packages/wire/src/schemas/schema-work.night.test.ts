import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../test/fixtures/pace.ts'
import { upstreamOf } from '../../../../test/samples/conversation.ts'
import { chatCodec } from '../chat/index.ts'
import { scanObject } from '../json/json-scan.ts'
import { messagesCodec } from '../messages/index.ts'
import { toClosedSchema } from './closed-schema.ts'
import { toGeminiSchema } from './gemini-schema.ts'
import { toMoonshotSchema } from './moonshot-schema.ts'
import { toToolSchema } from './tool-schema.ts'

const CONVERTERS = { tool: toToolSchema, closed: toClosedSchema, moonshot: toMoonshotSchema }

const list = <Item>(size: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: size }, (_, index) => item(index))
const named = (size: number, prefix: string, value: (index: number) => unknown): object =>
  Object.fromEntries(list(size, (index) => [`${prefix}${index}`, value(index)]))

/** Schemas of many parts, all of which apply. */
const PARTS: Record<string, (size: number) => readonly object[]> = {
  required: (size) => [
    { required: list(size, (i) => `a${i}`) },
    ...list(size / 2, (i) => ({ required: [`b${i}`] })),
  ],
  properties: (size) => [
    { properties: named(size, 'a', () => ({})) },
    ...list(size / 2, (i) => ({ properties: named(1, `b${i}`, () => ({})) })),
  ],
  'one property': (size) => list(size, (i) => ({ properties: { a: { required: [`a${i}`] } } })),
  items: (size) => list(size, (i) => ({ items: { required: [`a${i}`] } })),
  additionalProperties: (size) => list(size, (i) => ({ additionalProperties: { required: [`a${i}`] } })),
  'closed objects': (size) => [
    { required: list(size, (i) => `a${i}`), properties: named(size, 'a', () => ({})) },
    ...list(size / 2, (i) => ({ additionalProperties: false, title: `t${i}` })),
  ],
  enum: (size) => [{ enum: list(size, (i) => `a${i}`) }, ...list(size / 2, (i) => ({ enum: [`b${i}`] }))],
  'values that repeat': (size) => [
    { enum: list(size, () => 'a') },
    ...list(size / 2, (i) => ({ enum: ['a', `b${i}`] })),
  ],
  allOf: (size) => list(size, (i) => ({ allOf: [{ required: [`a${i}`] }] })),
}

test.each(Object.entries(CONVERTERS))(
  'the time to combine the parts of a schema is in proportion to their number: %s',
  { timeout: 60_000 },
  async (_, convert) => {
    const steep: string[] = []
    for (const [name, parts] of Object.entries(PARTS)) {
      const make = (size: number): string => JSON.stringify({ type: 'object', allOf: parts(size) })
      const growth = await growthOf(160, make, (text) => convert(text))
      if (growth >= LINEAR_GROWTH) steep.push(`${name}: ${growth}`)
    }
    expect(steep).toEqual([])
  },
)

test('the time to describe an alternative is in proportion to its properties', async () => {
  const make = (size: number): string =>
    JSON.stringify({
      anyOf: [{ required: list(size, (i) => `a${i}`), properties: named(size, 'b', () => ({})) }],
    })
  expect(await growthOf(2_000, make, (text) => toToolSchema(text))).toBeLessThan(LINEAR_GROWTH)
})

/** References to one definition with another member beside each, so that all are copies. */
const copies = (count: number, definition: object): object => ({
  type: 'object',
  properties: named(count, 'p', (i) => ({ $ref: '#/$defs/A', title: `t${i}` })),
  $defs: { A: definition },
})
const text = { type: 'string', description: 'a'.repeat(10_000) }
/** A schema within itself: each of its properties becomes a copy of it, which names the others. */
const recursive = (count: number): object => ({
  type: 'object',
  required: list(count, (i) => `p${i}`),
  properties: named(count, 'p', () => ({ $ref: '#' })),
})
/** A pointer to the definition `abcdefghijkl`, in one of many spellings. */
const spelled = (number: number): string =>
  Array.from('abcdefghijkl', (c, at) => ((number >> at) & 1 ? `%${c.charCodeAt(0).toString(16)}` : c)).join(
    '',
  )

test.each([
  ['copies of a long text', toClosedSchema, copies(1_000, text)],
  ['copies of a long list', toClosedSchema, copies(1_000, { required: list(2_000, (i) => `a${i}`) })],
  ['descriptions of a recursive schema, closed', toClosedSchema, recursive(3_000)],
  ['descriptions of a recursive schema, for Gemini', toGeminiSchema, recursive(3_000)],
  [
    'lists that each reference adds to',
    toToolSchema,
    {
      allOf: list(1_000, (i) => ({ $ref: '#/$defs/A', required: [`b${i}`] })),
      $defs: { A: { required: list(2_000, (i) => `a${i}`) } },
    },
  ],
  [
    'copies of what many pointers lead to',
    toMoonshotSchema,
    {
      type: 'object',
      properties: named(1_000, 'p', (i) => ({ $ref: `#/definitions/${spelled(i)}` })),
      definitions: { abcdefghijkl: text },
    },
  ],
] as const)('a schema that would become many times as long is refused: %s', (name, convert, schema) => {
  const given = JSON.stringify(schema)
  expect(given.length, name).toBeLessThan(200_000)
  expect(() => convert(given)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})

test('strict tools whose schemas would take more work than one request may are sent without being enforced', () => {
  const schema = copies(300, { type: 'string', description: 'a'.repeat(1_000) })
  const tools = list(20, (i) => ({
    type: 'function',
    function: { name: `f${i}`, parameters: schema, strict: true },
  }))
  const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], tools }
  const conversation = chatCodec.decodeRequest(scanObject(Buffer.from(JSON.stringify(body))), new Set())
  const dropped = new Set<string>()
  const sent = messagesCodec.encodeRequest(conversation, upstreamOf('claude-sonnet-4-5'), dropped)
  const strict = (JSON.parse(sent.toString()) as { tools: { strict?: boolean }[] }).tools.map(
    (tool) => tool.strict,
  )
  expect(strict).toEqual(tools.map(() => false))
})
