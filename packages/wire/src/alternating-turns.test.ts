import { describe, expect, test } from 'vitest'
import { conversationOf, upstreamOf } from '../../../test/samples/conversation.ts'
import type { Conversation, Part, Turn } from './conversation.ts'
import { converseCodec } from './converse/index.ts'
import { messagesCodec } from './messages/index.ts'

const user: Turn = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts })
const text = (words: string): Part => ({ kind: 'text', text: words })
const foreign: Part = { kind: 'opaque', protocol: 'gemini', value: {} }
const outputFormat: Conversation['outputFormat'] = {
  kind: 'json-schema',
  schema: '{"type":"object","properties":{}}',
  name: undefined,
  description: undefined,
  strict: true,
}

describe.each([
  ['messages', messagesCodec],
  ['converse', converseCodec],
] as const)('turns in %s', (protocol, codec) => {
  const own: Part = { kind: 'opaque', protocol, value: { type: 'own' } }
  const thought: Part = { kind: 'thinking', text: 'hm', proof: { protocol, value: 's' } }

  function sent(fields: Partial<Conversation>, model: string) {
    const dropped = new Set<string>()
    const upstream = upstreamOf(model)
    const conversation = conversationOf(fields)
    const { messages, ...body } = JSON.parse(codec.encodeRequest(conversation, upstream, dropped).toString())
    const answerTool = codec.answerTool(conversation, upstream.capabilities)
    return { messages, body, dropped, answerTool }
  }

  test.each([
    ['a blank turn that is left out', [assistant(text('Hello')), assistant(text(' '))]],
    ['a turn of foreign parts that is left out', [assistant(text('Hello')), assistant(foreign)]],
    ['a foreign part that is left out', [assistant(text('Hello'), foreign)]],
    ['only thoughts', [assistant(thought)]],
  ])(
    "a conversation whose last sent turn is the assistant's, with %s, ends with one of the user for Claude from 4.6 on",
    (_, turns) => {
      const { messages, dropped } = sent({ turns: [user, ...turns] }, 'claude-opus-4-8')
      expect(messages).toHaveLength(3)
      expect(messages.at(-1)).toMatchObject({ role: 'user', content: [{ text: '...' }] })
      expect(dropped).toContain('messages.prefill')
    },
  )

  test("a turn that ends with a provider's own block stays the last one", () => {
    const { messages, dropped } = sent(
      { turns: [user, assistant(text('Hello'), own, foreign)] },
      'claude-opus-4-8',
    )
    expect(messages.at(-1).role).toBe('assistant')
    expect(dropped).not.toContain('messages.prefill')
  })

  test('white space at the end of the last sent turn is removed', () => {
    const { messages } = sent(
      { turns: [user, assistant(text('Hello ')), assistant(text(' '))] },
      'claude-3-opus',
    )
    expect(messages.at(-1).content[0].text).toBe('Hello')
  })

  test('a blank last turn keeps neither a schema nor the tool in its place from a model', () => {
    const turns = [user, assistant(text(' '))]
    const { answerTool, body } = sent({ turns, outputFormat }, 'claude-3-opus')
    expect(answerTool).toBeDefined()
    expect(JSON.stringify(body)).toContain(`"name":"${answerTool}"`)
  })

  test('a system text after the last turn is a turn of the user, so that the answer tool is recognized', () => {
    const system = [{ kind: 'text', text: 'Brief.', at: { turn: 2, part: 0 } }] as const
    const turns = [user, assistant(text('Hello'))]
    const { answerTool, body } = sent({ turns, system, outputFormat }, 'claude-3-opus')
    expect(answerTool).toBeDefined()
    expect(JSON.stringify(body)).toContain(`"name":"${answerTool}"`)
  })
})
