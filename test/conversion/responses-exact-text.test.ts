import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jsonText, objectTexts, Raw } from '../generators/json.ts'
import { ALL_CODECS, IDENTITY, replyAs, requestAs } from './convert-through.ts'
import { lawRuns } from '../runner/tier.ts'

const OTHERS = ['chat', 'messages'] as const

/** A schema in which a parser would move or round something. */
const schemas = fc
  .tuple(objectTexts(), objectTexts())
  .map(([one, other]) => `{"properties": ${one},"type":"object","10":1,"2":${other}}`)
/** The same in the subset for structured output. */
const closedSchemas = fc
  .tuple(objectTexts(), objectTexts())
  .map(
    ([one, other]) =>
      `{"properties": {"10":{"default":${one},"type":"string"}},"type":"object","additionalProperties": false,"default":${other}}`,
  )
const asked = (fields: object): Buffer => Buffer.from(jsonText({ model: 'm', input: 'Hi', ...fields }))

const converted = (to: (typeof OTHERS)[number], fields: object): string =>
  requestAs('responses', to, asked(fields))

describe.each(OTHERS)('JSON that a conversion from responses to %s keeps exactly', (to) => {
  const name = { chat: 'parameters', messages: 'input_schema' }[to]

  test('schemas of tools keep their exact text, also in namespaces and in results of a tool search', () => {
    fc.assert(
      fc.property(schemas, (schema) => {
        const tool = { type: 'function', name: 'f', parameters: new Raw(schema), strict: false }
        for (const fields of [
          { tools: [tool] },
          { tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [tool] }] },
          { tools: [{ type: 'tool_search', execution: 'client', parameters: new Raw(schema) }] },
          {
            input: [
              { type: 'additional_tools', tools: [tool] },
              { role: 'user', content: 'Hi' },
            ],
          },
        ])
          expect(converted(to, fields)).toContain(`"${name}":${schema}`)
      }),
      { numRuns: lawRuns(200) },
    )
  })

  test('the schema of a structured answer keeps its exact text when a responses request is converted', () => {
    fc.assert(
      fc.property(closedSchemas, (schema) => {
        const text = { format: { type: 'json_schema', name: 'n', schema: new Raw(schema) } }
        expect(converted(to, { text })).toContain(`"schema":${schema}`)
      }),
      { numRuns: lawRuns(200) },
    )
  })

  test('inputs of tool calls in the history keep their exact text when a responses request is converted', () => {
    fc.assert(
      fc.property(objectTexts(), (input) => {
        const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: input }
        const output = { type: 'function_call_output', call_id: 'c', output: 'ok' }
        const search = {
          type: 'tool_search_call',
          call_id: 's',
          execution: 'client',
          arguments: new Raw(input),
        }
        const found = { type: 'tool_search_output', call_id: 's', execution: 'client', tools: [] }
        const expected = to === 'chat' ? `"arguments":${JSON.stringify(input)}` : `"input":${input}`
        expect(converted(to, { input: [call, output] })).toContain(expected)
        expect(converted(to, { input: [search, found] })).toContain(expected)
      }),
      { numRuns: lawRuns(200) },
    )
  })
})

describe('JSON in a response that a conversion keeps exactly', () => {
  test.each(OTHERS)(
    'inputs of tool calls keep their exact text when a response is converted from responses to %s',
    (to) => {
      fc.assert(
        fc.property(objectTexts(), (input) => {
          const expected = to === 'chat' ? `"arguments":${JSON.stringify(input)}` : `"input":${input}`
          for (const item of [
            { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: input },
            { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: new Raw(input) },
            { type: 'apply_patch_call', id: 'apc_1', call_id: 'c', operation: new Raw(input) },
          ]) {
            const response = Buffer.from(jsonText({ id: 'r', status: 'completed', output: [item] }))
            expect(replyAs('responses', to, response)).toContain(expected)
          }
        }),
        { numRuns: lawRuns(200) },
      )
    },
  )

  test("the arguments of a function that represented a shell tool become the shell's action with their exact text", () => {
    fc.assert(
      fc.property(objectTexts(), (other) => {
        const input = `{"commands":["ls"],"other":${other}}`
        const form = { type: 'shell', name: 'shell' } as const
        const tools = [{ name: 'shell', description: undefined, schema: undefined, strict: undefined, form }]
        const part = { kind: 'tool-call', id: 'c', name: 'shell', input } as const
        const reply = {
          id: 'x',
          model: 'm',
          parts: [part],
          stop: { reason: 'end' },
          usage: undefined,
        } as const
        const response = ALL_CODECS.responses.encodeReply(reply, IDENTITY, { tools }).toString()
        expect(response).toContain(`"action":${input.slice(0, -1)},`)
      }),
      { numRuns: lawRuns(200) },
    )
  })
})
