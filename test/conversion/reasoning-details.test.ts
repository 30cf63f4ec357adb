import { describe, expect, test } from 'vitest'
import type { Json } from '../fidelity/facts.ts'
import { replyAs, requestAs, streamAs } from './convert-through.ts'

type From = 'responses' | 'converse'

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const frame = (type: string, value: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`

const call = (id: string): Json => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name: 'f',
  arguments: '{}',
})
const reasoning = (text: string, encrypted: string): Json => ({
  type: 'reasoning',
  id: 'rs',
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  encrypted_content: encrypted,
})
const ITEMS = [reasoning('Let me 👋.', 'ENC1'), call('a'), reasoning('', 'ENC2'), call('b')]
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output: ITEMS,
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
}

const BLOCKS = [
  { reasoningContent: { reasoningText: { text: 'One.', signature: 'SIG1' } } },
  { reasoningContent: { redactedContent: 'UkVEQUNURUQ=' } },
  { toolUse: { toolUseId: 'a', name: 'f', input: {} } },
  { reasoningContent: { reasoningText: { text: 'Two.', signature: 'SIG2' } } },
  { toolUse: { toolUseId: 'b', name: 'f', input: {} } },
]
const CONVERSE = {
  output: { message: { role: 'assistant', content: BLOCKS } },
  stopReason: 'tool_use',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
}

/** The response that a chat client gets for a whole response. */
function whole(from: From): Json {
  const reply = replyAs(from, 'chat', json(from === 'responses' ? RESPONSE : CONVERSE))
  return (JSON.parse(reply) as Json)['choices'][0].message as Json
}

const RESPONSE_STREAM = [
  frame('response.created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }),
  ...ITEMS.flatMap((item, output_index) => [
    frame('response.output_item.added', {
      output_index,
      item: { ...item, encrypted_content: undefined, summary: [] },
    }),
    frame('response.output_item.done', { output_index, item }),
  ]),
  frame('response.completed', { response: RESPONSE }),
].join('')

/** The same response, assembled from a stream. */
function streamed(): Json {
  const { text, complete } = streamAs('responses', 'chat', [Buffer.from(RESPONSE_STREAM)])
  expect(complete).toBe(true)
  const deltas = [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(
    ([, data = '']) => (JSON.parse(data) as Json)['choices'].map((choice: Json) => choice['delta']) as Json[],
  )
  const calls: Json[] = []
  for (const { tool_calls: [piece] = [] } of deltas) {
    if (piece?.id)
      calls.push({ id: piece.id, type: 'function', function: { ...piece.function, arguments: '' } })
    const last = calls.at(-1)
    if (piece && last) last['function'].arguments += piece.function.arguments
  }
  return {
    role: 'assistant',
    reasoning_content: deltas.map(({ reasoning_content = '' }) => reasoning_content).join(''),
    reasoning_details: deltas.flatMap(({ reasoning_details = [] }) => reasoning_details),
    tool_calls: calls,
  }
}

/** The client's next request, as the provider receives it. */
function next(to: From, message: Json): Json {
  const results = ['a', 'b'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'done' }))
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  const model = to === 'converse' ? 'anthropic.claude-sonnet-4-5' : 'gpt-5'
  const body = {
    model,
    messages: [{ role: 'user', content: 'hi' }, message, ...results],
    tools,
    max_tokens: 50,
  }
  return (JSON.parse(requestAs('chat', to, json(body))) as Json)['request'] as Json
}

/** A request in which a client sends back a reply that called a tool. */
function withHistory(client: 'messages' | 'responses' | 'gemini', reply: Json): Json {
  const asked = { role: 'user', content: 'hi' }
  switch (client) {
    case 'messages':
      return {
        model: 'm',
        max_tokens: 50,
        messages: [asked, { role: 'assistant', content: reply['content'] }],
      }
    case 'responses':
      return {
        model: 'm',
        input: [asked, ...reply['output'], { type: 'function_call_output', call_id: 'a', output: 'done' }],
      }
    case 'gemini':
      return { contents: [{ role: 'user', parts: [{ text: 'hi' }] }, reply['candidates'][0].content] }
  }
}

describe('encrypted reasoning', () => {
  test.each([
    ['whole', () => whole('responses')],
    ['streamed', streamed],
  ])(
    'encrypted reasoning of responses reaches chat clients, whose next request returns it at its original positions (%s)',
    (_, message) => {
      const said = message()
      expect(said['reasoning_content']).toBe('Let me 👋.')
      expect(said['reasoning_details']).toMatchObject([
        { type: 'reasoning.encrypted', index: 0 },
        { type: 'reasoning.encrypted', index: 1 },
      ])
      const items = next('responses', said)['input'].slice(1, 5)
      expect(items).toMatchObject([
        { type: 'reasoning', summary: [{ text: 'Let me 👋.' }], encrypted_content: 'ENC1' },
        { call_id: 'a' },
        { type: 'reasoning', summary: [], encrypted_content: 'ENC2' },
        { call_id: 'b' },
      ])
    },
  )

  test('encrypted reasoning of Converse reaches chat clients, and their next request returns it at its original positions', () => {
    const message = whole('converse')
    expect(message['reasoning_content']).toBe('One.Two.')
    expect(next('converse', message)['messages'][1].content).toEqual(BLOCKS)
  })

  test('encrypted reasoning of Converse is left out of a request where the client has removed the text of the reasoning', () => {
    const { reasoning_content: _, ...message } = whole('converse')
    const blocks = next('converse', message)['messages'][1].content as Json[]
    expect(JSON.stringify(blocks)).not.toContain('SIG')
    expect(blocks[0]).toEqual(BLOCKS[1])
  })

  test('encrypted reasoning of a responses provider is not sent to a Converse provider', () => {
    expect(JSON.stringify(next('converse', whole('responses')))).not.toContain('ENC1')
  })

  test.each(['messages', 'responses', 'gemini'] as const)(
    'a call that a chat upstream has signed keeps its signature with a client of %s, for Gemini models alone',
    (client) => {
      const google = { thought_signature: 'R0NTSUc=' }
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
      const message = { content: null, tool_calls: [{ ...call, extra_content: { google } }] }
      const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
      const reply = JSON.parse(replyAs('chat', client, json({ id: 'c1', model: 'm', choices }))) as Json
      const sentTo = (model: string): string =>
        requestAs(client, 'chat', json(withHistory(client, reply)), model)
      expect(sentTo('gemini-3-pro-preview')).toContain(
        '"extra_content":{"google":{"thought_signature":"R0NTSUc="}}',
      )
      expect(sentTo('gpt-4.1')).not.toContain('R0NTSUc=')
    },
  )

  test.each(['messages', 'responses', 'gemini'] as const)(
    'reasoning that a chat upstream has encrypted is not sent to a client of %s, whose next call may go to another server',
    (client) => {
      const reasoning_details = [{ type: 'reasoning.encrypted', data: 'ENC', index: 0 }]
      const [signed, plain] = [{ reasoning_details }, {}].map((details) => {
        const message = { content: 'Hello', ...details }
        const choices = [{ index: 0, message, finish_reason: 'stop' }]
        return replyAs('chat', client, json({ id: 'c1', model: 'm', choices }))
      })
      expect(signed).toBe(plain)
    },
  )

  test('encrypted reasoning that another gateway wrote is left out of a converted request and reported as dropped', () => {
    const message = {
      role: 'assistant',
      content: 'x',
      reasoning_details: [{ type: 'reasoning.text', text: 'y' }],
    }
    const body = {
      model: 'gpt-5',
      messages: [{ role: 'user', content: 'hi' }, message, { role: 'user', content: 'go' }],
    }
    expect((JSON.parse(requestAs('chat', 'responses', json(body))) as Json)['dropped']).toContain('unknown')
  })
})
