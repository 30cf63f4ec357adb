import { checkChatStream } from '../../conversion/grammar.ts'
import { replyAs, requestAs, streamAs } from '../../conversion/convert-through.ts'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { RepeatedPiece, Target } from '../target.ts'
import { LONG_REQUESTS, REQUESTS } from './samples.ts'
import { JSON_TOKENS, SSE_TOKENS } from './tokens.ts'

/** Models whose requests differ most. */
const MODELS = [
  'eu.amazon.nova-lite-v1:0',
  'us.meta.llama4-maverick-17b-instruct-v1:0',
  'mistral.mistral-large-2407-v1:0',
  'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
] as const

/** The API's refusal of a tool's name, which is sent as the client wrote it. */
const NAME_REFUSED = /\bname: wrong form$/

const frame = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
const delta = (contentBlockIndex: number, given: object): string =>
  frame('contentBlockDelta', { contentBlockIndex, delta: given, p: 'abc' })
const BEGIN = frame('messageStart', { role: 'assistant' })
const CALL = frame('contentBlockStart', {
  contentBlockIndex: 1,
  start: { toolUse: { toolUseId: 't', name: 'f' } },
})
const USAGE = {
  inputTokens: 9,
  outputTokens: 5,
  totalTokens: 17,
  cacheReadInputTokens: 3,
  cacheWriteInputTokens: 0,
}
const END =
  frame('messageStop', { stopReason: 'end_turn' }) +
  frame('metadata', { usage: USAGE, metrics: { latencyMs: 1 } })

const STREAMS = [
  BEGIN +
    delta(0, { reasoningContent: { text: 'hm' } }) +
    delta(0, { reasoningContent: { signature: 's' } }) +
    frame('contentBlockStop', { contentBlockIndex: 0 }) +
    CALL +
    delta(1, { toolUse: { input: '{"a":' } }) +
    delta(1, { toolUse: { input: '1}' } }) +
    frame('contentBlockStop', { contentBlockIndex: 1 }) +
    frame('messageStop', { stopReason: 'tool_use' }) +
    frame('metadata', { usage: USAGE }),
  BEGIN + delta(0, { text: 'Zoë 😀' }) + delta(0, { text: '' }) + END,
  BEGIN + delta(0, { reasoningContent: { redactedContent: 'cg==' } }) + delta(1, { citation: {} }) + END,
  BEGIN + delta(0, { text: 'a' }) + frame('error', { type: 'error', error: { type: 'e', message: 'm' } }),
]

const CONTENT = [
  { reasoningContent: { reasoningText: { text: 'hm', signature: 's' } } },
  { text: 'Zoë 😀' },
  { toolUse: { toolUseId: 't', name: 'f', input: { a: [1, 2.5] } } },
]
const reply = (content: string): string =>
  `{"output":{"message":{"role":"assistant","content":[${content}]}},"stopReason":"tool_use","usage":${JSON.stringify(USAGE)}}`

const REPEATED_STREAMS: readonly RepeatedPiece[] = [
  [BEGIN, delta(0, { text: 'a' }), END],
  [BEGIN + CALL, delta(1, { toolUse: { input: 'x' } }), END],
  [BEGIN, frame('contentBlockStop', { contentBlockIndex: 0 }), END],
  [BEGIN, CALL, END],
]

/** A request with documents of one name, which must be different at Bedrock. */
const DOCUMENTS: RepeatedPiece = [
  '{"model":"m","messages":[{"role":"user","content":[',
  '{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,YWJj"}},',
  '{"type":"text","text":"a"}]}]}',
]

/** Converters for upstreams of Bedrock's Converse API, whose frames are server-sent events by then. */
export const CONVERSE = {
  'converse-requests': {
    seeds: REQUESTS.chat,
    repeated: [...LONG_REQUESTS, DOCUMENTS],
    tokens: JSON_TOKENS,
    run(input, random) {
      const model = MODELS[Math.floor(random() * MODELS.length)] ?? MODELS[0]
      try {
        JSON.parse(requestAs('chat', 'converse', input, model))
      } catch (error) {
        // A request that the API refuses throws, except for names of tools, which are the client's.
        if (!(error instanceof Error && NAME_REFUSED.test(error.message))) throw error
      }
    },
  },
  'converse-streams': {
    seeds: STREAMS,
    repeated: REPEATED_STREAMS,
    tokens: [...SSE_TOKENS, BEGIN, CALL, END],
    run(input, random) {
      const { text, complete } = streamAs('converse', 'chat', choppedAtRandom(input, 40, random))
      checkChatStream(text, complete)
      invariant(streamAs('converse', 'chat', [input]).text === text, 'a cut changes nothing')
    },
  },
  'converse-replies': {
    seeds: [reply(CONTENT.map((block) => JSON.stringify(block)).join(',')), reply('{"text":"hello"}')],
    repeated: [
      [reply('').split(']')[0] ?? '', '{"text":"a"},', `{"text":"z"}${reply('').split('[')[1] ?? ''}`],
    ],
    tokens: JSON_TOKENS,
    run: (input) => void JSON.parse(replyAs('converse', 'chat', input)),
  },
} satisfies Readonly<Record<string, Target>>
