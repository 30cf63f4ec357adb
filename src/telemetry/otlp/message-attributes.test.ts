import { expect, test } from 'vitest'
import type { CallKind } from '../../domain/endpoints.ts'
import { messageAttributesOf } from './message-attributes.ts'

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

/** A request and an answer of each protocol in which arguments are a text, with a call that has these arguments. */
const CALLS: Partial<Record<CallKind, (text: string) => readonly [request: object, answer: object]>> = {
  chat: (text) => {
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: text } }],
    }
    return [
      { model: 'm', messages: [{ role: 'user', content: 'x' }, message] },
      { id: 'x', model: 'm', choices: [{ index: 0, finish_reason: 'tool_calls', message }] },
    ]
  },
  responses: (text) => {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: text }
    return [
      { model: 'm', input: [item, { type: 'function_call_output', call_id: 'call_1', output: 'x' }] },
      { id: 'x', object: 'response', status: 'completed', model: 'm', output: [item] },
    ]
  },
}

const bytes = (body: object): Buffer => Buffer.from(JSON.stringify(body))
/** The arguments of every call in what is exported. */
function exported(kind: CallKind, text: string): unknown[] {
  const [request, answer] = CALLS[kind]?.(text) ?? [{}, {}]
  const said = messageAttributesOf(kind, { request: bytes(request), answer: bytes(answer) }, ['tool_call'])
  const found: unknown[] = []
  JSON.stringify(said, (name, value: unknown) => {
    if (name !== 'arguments') return value
    found.push(value)
    return null
  })
  return found
}

test.each(['chat', 'responses'] as const)(
  'arguments of tools that are nested deeply are exported to telemetry as the text that they are: %s',
  (kind) => {
    for (const levels of [25, 5_000, 100_000])
      expect(exported(kind, nested(levels))).toEqual([nested(levels), nested(levels)])
    const parsed: unknown = JSON.parse(nested(24))
    expect(exported(kind, nested(24))).toEqual([parsed, parsed])
    const text = '['.repeat(99)
    expect(exported(kind, `{"text":"${text}"}`)).toEqual([{ text }, { text }])
  },
)

test('a streamed answer and a schema that are nested deeply are exported to telemetry as texts', () => {
  const deep = nested(100_000)
  const delta = { type: 'input_json_delta', partial_json: deep }
  const events = [
    { type: 'message_start', message: { id: 'x', model: 'm', role: 'assistant', content: [], usage: {} } },
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'tool_use', id: 'a', name: 'f', input: {} },
    },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]
  const answer = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const input_schema: object = JSON.parse(`${'{"items":'.repeat(100)}{}${'}'.repeat(100)}`)
  const request = { model: 'm', max_tokens: 9, messages: [], tools: [{ name: 'f', input_schema }] }
  expect(
    messageAttributesOf('messages', { request: bytes(request), answer: Buffer.from(answer) }, ['tool_call']),
  ).toMatchObject({
    'gen_ai.tool.definitions': [{ name: 'f', parameters: JSON.stringify(input_schema) }],
    'gen_ai.output.messages': [{ parts: [{ type: 'tool_call', arguments: deep }] }],
  })
})
