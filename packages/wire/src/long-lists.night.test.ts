import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { upstreamOf } from '../../../test/samples/conversation.ts'
import { parseEvents } from './answer-forms.ts'
import { chatAnswerForms, chatCodec } from './chat/index.ts'
import type { Conversation } from './conversation.ts'
import { converseCodec } from './converse/index.ts'
import { geminiAnswerForms, geminiCodec } from './gemini/index.ts'
import { scanObject } from './json/json-scan.ts'
import { messagesCodec } from './messages/index.ts'
import { withSystemTextsInTurns } from './system-texts-in-turns.ts'

const list = (size: number, item: (index: number) => unknown): unknown[] =>
  Array.from({ length: size }, (_, index) => item(index))
const bytes = (value: object): Buffer => Buffer.from(JSON.stringify(value))
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const chunk = (delta: object): string => event({ choices: [{ index: 0, delta }] })
const chatRequest = (messages: unknown[]): Buffer => bytes({ model: 'm', messages })
const fromChat = (body: Buffer): Conversation => chatCodec.decodeRequest(scanObject(body), new Set())
const merge = (body: Buffer): unknown => chatAnswerForms.whole(parseEvents(body.toString()))

const FILE = {
  type: 'file',
  file: { filename: 'a.txt', file_data: 'data:text/plain;base64,YWJj' },
}

/** What is read or written, how long its list is, and the work. */
const LISTS: readonly (readonly [string, number, (size: number) => Buffer, (body: Buffer) => unknown])[] = [
  [
    'tool calls in the first event of a messages stream',
    200,
    (size) => {
      const call = { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } }
      const message = { id: 'm', content: list(size, () => call) }
      return Buffer.from(event({ type: 'message_start', message }))
    },
    (body) => messagesCodec.streamDecoder().push(body),
  ],
  [
    'function calls of a Gemini answer',
    1_500,
    (size) => {
      const parts = list(size, () => ({ functionCall: { name: 'f', args: { a: 1 } } }))
      return bytes({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    },
    (body) => geminiCodec.decodeReply(body),
  ],
  [
    'function calls of a chunk of Gemini',
    1_500,
    (size) => {
      const parts = list(size, () => ({ functionCall: { name: 'f', args: { a: 1 } } }))
      return Buffer.from(event({ candidates: [{ content: { parts } }] }))
    },
    (body) => geminiCodec.streamDecoder().push(body),
  ],
  [
    'tool calls of a chat answer whose arguments are objects',
    800,
    (size) => {
      const calls = list(size, (i) => ({ id: `c${i}`, function: { name: 'f', arguments: {} } }))
      return bytes({ choices: [{ index: 0, message: { tool_calls: calls }, finish_reason: 'tool_calls' }] })
    },
    (body) => chatCodec.decodeReply(body),
  ],
  [
    'documents of one name for Converse',
    600,
    (size) => chatRequest([{ role: 'user', content: list(size, () => FILE) }]),
    (body) => converseCodec.encodeRequest(fromChat(body), upstreamOf('us.amazon.nova-lite-v1:0'), new Set()),
  ],
  [
    'elements of one delta of a chat stream',
    1_500,
    (size) => Buffer.from(chunk({ tool_calls: list(size, (index) => ({ index })) })),
    merge,
  ],
  [
    'deltas of a chat stream, each with a new element',
    1_000,
    (size) => Buffer.from(list(size, (index) => chunk({ tool_calls: [{ index }] })).join('')),
    merge,
  ],
  [
    'chunks of a Gemini stream, each with a new part',
    1_000,
    (size) => {
      const parts = [{ functionCall: { name: 'f', args: {} } }]
      return Buffer.from(list(size, () => event({ candidates: [{ content: { parts } }] })).join(''))
    },
    (body) => geminiAnswerForms.whole(parseEvents(body.toString())),
  ],
  [
    'citations of a text that become those of Gemini',
    1_000,
    (size) => {
      const annotations = list(size, (i) => ({
        type: 'url_citation',
        url_citation: { url: `https://a.example/${i}`, title: 't', start_index: i, end_index: i + 1 },
      }))
      const message = { content: 'a'.repeat(size), annotations }
      return bytes({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
    },
    (body) => geminiCodec.encodeReply(chatCodec.decodeReply(body), { created: 1, id: 'a' }),
  ],
  [
    'tools that a chat request allows',
    3_000,
    (size) => {
      const tools = list(size, (i) => ({ type: 'function', function: { name: `f${i}` } }))
      const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } }
      return bytes({ model: 'm', messages: [{ role: 'user', content: 'a' }], tools, tool_choice })
    },
    fromChat,
  ],
  [
    'functions that a Gemini request allows',
    3_000,
    (size) => {
      const names = list(size, (i) => `f${i}`)
      const tools = [{ functionDeclarations: names.map((name) => ({ name })) }]
      const toolConfig = { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: names } }
      return bytes({ contents: [{ role: 'user', parts: [{ text: 'a' }] }], tools, toolConfig })
    },
    (body) => geminiCodec.decodeRequest(scanObject(body), new Set()),
  ],
]

test.each(LISTS)(
  'the time to convert a list is in proportion to its length: %s',
  { timeout: 60_000 },
  async (_, size, make, work) => {
    expect(await growthOf(size, make, work)).toBeLessThan(LINEAR_GROWTH)
  },
)

test('the time to move system texts into the turns is in proportion to their number', async () => {
  const conversation = (size: number): Conversation =>
    fromChat(chatRequest(list(size, (i) => ({ role: i % 2 ? 'system' : 'user', content: 'a' }))))
  expect(await growthOf(2_000, conversation, withSystemTextsInTurns)).toBeLessThan(LINEAR_GROWTH)
})
