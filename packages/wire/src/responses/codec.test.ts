import { serverRulesOf } from '@sluice/wire/server-rules'
import { describe, expect, test } from 'vitest'
import { conversationOf, upstreamOf } from '../../../../test/samples/conversation.ts'
import type { Reply } from '../reply.ts'
import { scanObject } from '../json/json-scan.ts'
import { responsesCodec } from './index.ts'
import { CustomInputDecoder } from '../openai-tools.ts'
import { maxTokensOf } from './encode/request.ts'
import { foldReply } from '../../../../test/conversion/fold-reply.ts'

const USER = { role: 'user', parts: [{ kind: 'text', text: 'Hi' }] } as const

function folded(...events: readonly object[]): Reply | undefined {
  const decoder = responsesCodec.streamDecoder()
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return foldReply([...decoder.push(Buffer.from(text)), ...decoder.end()])
}

const completed = { type: 'response.completed', response: { id: 'r', model: 'm', output: [] } }

describe('a written responses request', () => {
  test.each([
    ['https://api.openai.com/v1', 16],
    ['https://eu.api.openai.com/v1', 16],
    ['https://mine.openai.azure.com/openai/v1', 16],
    ['https://mine.services.ai.azure.com/openai/v1', 16],
    ['http://127.0.0.1:8000/v1', 5],
    ['https://openrouter.ai/api/v1', 5],
  ])(
    'an encoded responses request has at least the tokens that the server accepts: %s, %i',
    (base_url, least) => {
      const upstream = { ...upstreamOf('m'), server: serverRulesOf({ base_url }, 'm') }
      const dropped = new Set<string>()
      const conversation = conversationOf({ turns: [USER], maxTokens: 5 })
      const body = responsesCodec.encodeRequest(conversation, upstream, dropped)
      expect(JSON.parse(body.toString())).toMatchObject({ max_output_tokens: least })
      expect([...dropped]).toEqual(least > 5 ? ['max_output_tokens'] : [])
      expect(maxTokensOf({ maxTokens: 5 }, upstream)).toBe(least)
      expect(maxTokensOf({ maxTokens: undefined }, upstream)).toBeUndefined()
    },
  )
})

describe('a parsed responses request', () => {
  test('a tool that a responses request offers twice is decoded once, with its last definition', () => {
    const tool = { type: 'function', name: 'f', parameters: { type: 'object' } }
    const again = { ...tool, description: 'Later.' }
    const input = [
      { type: 'additional_tools', tools: [again] },
      { role: 'user', content: 'Hi' },
    ]
    const bytes = Buffer.from(JSON.stringify({ model: 'm', input, tools: [tool] }))
    const { tools } = responsesCodec.decodeRequest(scanObject(bytes), new Set())
    expect(tools).toMatchObject([{ name: 'f', description: 'Later.' }])
  })
})

describe('an encoded response', () => {
  const responseTo = (request: string): string => {
    const asked = scanObject(Buffer.from(`{"model":"m","input":"Hi",${request}}`))
    const reply: Reply = { id: 'r', model: 'm', parts: [], stop: { reason: 'end' }, usage: undefined }
    const identity = { id: 'r', created: 1, now: () => 7 }
    const context = responsesCodec.decodeRequest(asked, new Set())
    return responsesCodec.encodeReply(reply, identity, context).toString()
  }

  test.each([
    ['"reasoning":{"effort":"low"}', '"reasoning":{"effort":"low","summary":null}'],
    ['"reasoning":{}', '"reasoning":{"effort":null,"summary":null}'],
    ['"text":{ "verbosity":"low" }', '"text":{ "verbosity":"low" ,"format":{"type":"text"}}'],
    [
      '"text":{"format":{"type":"json_schema","name":"n","schema":{"maximum":1.0}}}',
      '"text":{"format":{"type":"json_schema","name":"n","schema":{"maximum":1.0},"description":null,"strict":false}}',
    ],
    [
      '"tools":[{"type":"function","name":"f","parameters":{"2":1,"1":1},"strict":true},{"type":"custom","name":"c"}]',
      '"tools":[{"type":"function","name":"f","parameters":{"2":1,"1":1},"strict":true,"description":null},{"type":"custom","name":"c"}]',
    ],
  ])('an encoded response repeats %s with the members that the schema requires', (request, repeated) => {
    expect(responseTo(request)).toContain(`${repeated},`)
  })

  test('an encoded response that is complete states when, and penalties that are not sent', () => {
    expect(JSON.parse(responseTo('"presence_penalty":1'))).toMatchObject({
      created_at: 1,
      completed_at: 7,
      presence_penalty: 0,
      frequency_penalty: 0,
    })
  })
})

describe('a parsed responses stream', () => {
  test('a decoded responses stream has the text of its deltas, even if its completed items have another text', () => {
    const reply = folded(
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'One.' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'message', content: [{ type: 'output_text', text: 'Another text.' }] },
      },
      completed,
    )
    expect(reply?.parts).toEqual([{ kind: 'text', text: 'One.' }])
  })

  test('a decoded responses stream has a text once whose item begins with an empty one', () => {
    const content = ['', 'One.'].map((text) => ({ type: 'output_text', text }))
    const reply = folded(
      { type: 'response.output_text.delta', output_index: 0, content_index: 1, delta: 'One.' },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message', content } },
      completed,
    )
    expect(reply?.parts).toEqual([{ kind: 'text', text: 'One.' }])
  })

  test('a decoded responses stream has all calls of a server that writes their ids as the id of the item alone', () => {
    const calls = ['a', 'b'].map((name) => {
      return { type: 'function_call', id: `fc_${name}`, call_id: '', name, arguments: '{}' }
    })
    const done = calls.map((item, output_index) => ({
      type: 'response.output_item.done',
      output_index,
      item,
    }))
    const parts = calls.map(({ id, name }) => ({ kind: 'tool-call', id, name, input: '{}' }))
    expect(folded(...done, completed)).toMatchObject({ parts })
  })

  test('a decoded responses stream has the result of a call beside the call, whose id it has', () => {
    const items = ['shell_call', 'shell_call_output'].map((type) => {
      return { type, id: type, call_id: 'c', environment: { type: 'container_auto' } }
    })
    const done = items.map((item, output_index) => ({
      type: 'response.output_item.done',
      output_index,
      item,
    }))
    const parts = items.map((value) => ({ kind: 'opaque', value }))
    expect(folded(...done, completed)).toMatchObject({ parts })
  })

  test('a decoded responses stream has characters whole that were divided between two deltas', () => {
    const item = { type: 'custom_tool_call', call_id: 'c', name: 'sql', input: '' }
    const delta = (text: string): object => ({
      type: 'response.custom_tool_call_input.delta',
      output_index: 0,
      delta: text,
    })
    const reply = folded(
      { type: 'response.output_item.added', output_index: 0, item },
      delta('a\ud83d'),
      delta('\ude00b'),
      { type: 'response.output_item.done', output_index: 0, item: { ...item, input: 'a😀b' } },
      completed,
    )
    expect(reply?.parts).toEqual([{ kind: 'tool-call', id: 'c', name: 'sql', input: '{"input":"a😀b"}' }])
  })
})

describe('the input of a custom tool', () => {
  test('the streamed input of a custom tool has escape sequences whole that were divided between pieces', () => {
    const input = new CustomInputDecoder()
    const pieces = ['{"input":"a\\', 'n\\u00', 'fc\\ud83d', '\\ude00"}'].map((piece) => input.push(piece))
    expect(pieces).toEqual(['a', '\n', 'ü', '😀'])
    expect(input.end()).toBe('')
  })
})
