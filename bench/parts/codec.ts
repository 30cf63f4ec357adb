import process from 'node:process'
import { parseArgs } from 'node:util'
import { NO_USAGE } from '@sluice/wire/usage'
import { chatCodec } from '@sluice/wire/chat'
import type { Codec } from '@sluice/wire/codec'
import { geminiCodec } from '@sluice/wire/gemini'
import { messagesCodec } from '@sluice/wire/messages'
import { responsesCodec } from '@sluice/wire/responses'
import { ConvertingTap } from '../../src/call/dialects/converting-tap.ts'
import { randomFrom } from '../../test/fixtures/random.ts'

/**
 * Measures the cost of converting a stream: microseconds of CPU time per event from the bytes of one dialect
 * to those of the other, each event in a separate network chunk. `--check` fails if the median of a case
 * exceeds the limit, or if a delta of responses or a chunk of Gemini costs too many times as much as one from
 * chat to messages.
 */
const LIMIT_US = 4
const LIMIT_RATIO = 2
const EVENTS = 2_000
const ROUNDS = 40
const WARM_UP = 20

const { values: options } = parseArgs({
  options: { json: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})

interface Case {
  readonly name: string
  readonly from: Codec
  readonly to: Codec
  readonly chunks: readonly Buffer[]
}

const random = randomFrom(7)
const WORDS = [
  ' the',
  ' of',
  ' a',
  ' stream',
  ' that',
  ' is',
  ' converted',
  '\n',
  ' "quoted"',
  ' naïve',
  ' 詩',
  ',',
  ' 42',
]
const word = (): string => WORDS[Math.floor(random() * WORDS.length)] ?? ''
const words = (count: number): string[] => Array.from({ length: count }, word)

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-BvC1mU5d2pGJcTzW0x9QeRkN',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'gpt-4.1-2025-04-14',
    service_tier: 'default',
    system_fingerprint: 'fp_51e1070cf2',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    obfuscation: 'x'.repeat(Math.floor(random() * 12)),
  })}\n\n`
const event = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields }).slice(0, -1)}${' '.repeat(Math.floor(random() * 12))}}\n\n`

function chatStream(deltas: readonly object[]): string[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, 'stop'),
    'data: [DONE]\n\n',
  ]
}

function messagesStream(block: object, deltas: readonly object[]): string[] {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [],
    usage: { input_tokens: 9, output_tokens: 1 },
  }
  return [
    event('message_start', { message }),
    event('content_block_start', { index: 0, content_block: block }),
    ...deltas.map((delta) => event('content_block_delta', { index: 0, delta })),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: EVENTS } }),
    event('message_stop'),
  ]
}

/** A stream of one item, as its provider sends it: numbered events, deltas padded to hide their lengths. */
function responsesStream(item: object, type: string, place: object, deltas: readonly string[]): string[] {
  const response = { id: 'resp_1', object: 'response', status: 'in_progress', model: 'gpt-5', output: [] }
  let sequence = 0
  const numbered = (name: string, fields: object): string =>
    `event: ${name}\ndata: ${JSON.stringify({ type: name, sequence_number: sequence++, ...fields })}\n\n`
  const delta = (text: string): object => ({
    item_id: 'msg_68a1',
    output_index: 0,
    ...place,
    delta: text,
    logprobs: [],
    obfuscation: 'x'.repeat(Math.floor(random() * 12)),
  })
  const usage = { input_tokens: 9, output_tokens: EVENTS, total_tokens: 9 + EVENTS }
  return [
    numbered('response.created', { response }),
    numbered('response.in_progress', { response }),
    numbered('response.output_item.added', { output_index: 0, item }),
    ...deltas.map((text) => numbered(type, delta(text))),
    numbered('response.completed', { response: { ...response, status: 'completed', usage } }),
  ]
}

const textStream = (): Buffer[] =>
  bytes(
    responsesStream(
      { id: 'msg_68a1', type: 'message', role: 'assistant', content: [] },
      'response.output_text.delta',
      { content_index: 0 },
      words(EVENTS),
    ),
  )
const thoughtStream = (): Buffer[] =>
  bytes(
    responsesStream(
      { id: 'rs_68a1', type: 'reasoning', summary: [] },
      'response.reasoning_summary_text.delta',
      { summary_index: 0 },
      words(EVENTS),
    ),
  )
const argumentStream = (): Buffer[] =>
  bytes(
    responsesStream(
      { id: 'fc_68a1', type: 'function_call', call_id: 'call_1', name: 'write', arguments: '' },
      'response.function_call_arguments.delta',
      {},
      words(EVENTS),
    ),
  )

/** A stream of parts as its provider sends them: each chunk contains the usage so far. */
function geminiStream(parts: readonly object[]): Buffer[] {
  const frame = (part: object, tokens: number, finishReason?: string): string =>
    `data: ${JSON.stringify({
      candidates: [
        { content: { parts: [part], role: 'model' }, ...(finishReason && { finishReason }), index: 0 },
      ],
      usageMetadata: {
        promptTokenCount: 9,
        candidatesTokenCount: tokens,
        totalTokenCount: 9 + tokens,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }],
      },
      modelVersion: 'gemini-2.5-flash',
      responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
    })}\r\n\r\n`
  return bytes([...parts.map((part, i) => frame(part, i + 1)), frame({ text: '' }, parts.length, 'STOP')])
}

const toolStart = { index: 0, id: 'call_1', type: 'function', function: { name: 'write', arguments: '' } }
const bytes = (frames: readonly string[]): Buffer[] => frames.map((frame) => Buffer.from(frame))

const CASES: readonly Case[] = [
  {
    name: 'chat to messages, text',
    from: chatCodec,
    to: messagesCodec,
    chunks: bytes(chatStream(words(EVENTS).map((content) => ({ content })))),
  },
  {
    name: 'chat to messages, thoughts',
    from: chatCodec,
    to: messagesCodec,
    chunks: bytes(chatStream(words(EVENTS).map((text) => ({ content: null, reasoning_content: text })))),
  },
  {
    name: 'chat to messages, arguments',
    from: chatCodec,
    to: messagesCodec,
    chunks: bytes(
      chatStream([
        { tool_calls: [toolStart] },
        ...words(EVENTS).map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      ]),
    ),
  },
  {
    name: 'chat to messages, frames of which each is another',
    from: chatCodec,
    to: messagesCodec,
    chunks: bytes(
      chatStream(words(EVENTS).map((content) => ({ content }))).map((frame, i) =>
        frame.replace('"created":1760000000', `"created":${1_760_000_000 + i}`),
      ),
    ),
  },
  {
    name: 'messages to chat, text',
    from: messagesCodec,
    to: chatCodec,
    chunks: bytes(
      messagesStream(
        { type: 'text', text: '' },
        words(EVENTS).map((text) => ({ type: 'text_delta', text })),
      ),
    ),
  },
  {
    name: 'messages to chat, thoughts',
    from: messagesCodec,
    to: chatCodec,
    chunks: bytes(
      messagesStream(
        { type: 'thinking', thinking: '', signature: '' },
        words(EVENTS).map((thinking) => ({ type: 'thinking_delta', thinking })),
      ),
    ),
  },
  {
    name: 'messages to chat, arguments',
    from: messagesCodec,
    to: chatCodec,
    chunks: bytes(
      messagesStream(
        { type: 'tool_use', id: 'toolu_1', name: 'write', input: {} },
        words(EVENTS).map((text) => ({ type: 'input_json_delta', partial_json: text })),
      ),
    ),
  },
  {
    name: 'chat to responses, text',
    from: chatCodec,
    to: responsesCodec,
    chunks: bytes(chatStream(words(EVENTS).map((content) => ({ content })))),
  },
  {
    name: 'chat to responses, arguments',
    from: chatCodec,
    to: responsesCodec,
    chunks: bytes(
      chatStream([
        { tool_calls: [toolStart] },
        ...words(EVENTS).map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      ]),
    ),
  },
  {
    name: 'messages to responses, text',
    from: messagesCodec,
    to: responsesCodec,
    chunks: bytes(
      messagesStream(
        { type: 'text', text: '' },
        words(EVENTS).map((text) => ({ type: 'text_delta', text })),
      ),
    ),
  },
  {
    name: 'chat to gemini, text',
    from: chatCodec,
    to: geminiCodec,
    chunks: bytes(chatStream(words(EVENTS).map((content) => ({ content })))),
  },
  {
    name: 'messages to gemini, text',
    from: messagesCodec,
    to: geminiCodec,
    chunks: bytes(
      messagesStream(
        { type: 'text', text: '' },
        words(EVENTS).map((text) => ({ type: 'text_delta', text })),
      ),
    ),
  },
  ...(
    [
      ['chat', chatCodec],
      ['messages', messagesCodec],
      ['responses', responsesCodec],
    ] as const
  ).flatMap(([name, to]) => [
    {
      name: `gemini to ${name}, text`,
      from: geminiCodec,
      to,
      chunks: geminiStream(words(EVENTS).map((text) => ({ text }))),
    },
    {
      name: `gemini to ${name}, thoughts`,
      from: geminiCodec,
      to,
      chunks: geminiStream(words(EVENTS).map((text) => ({ text, thought: true }))),
    },
  ]),
  ...(
    [
      ['chat', chatCodec],
      ['messages', messagesCodec],
    ] as const
  ).flatMap(([name, to]) => [
    { name: `responses to ${name}, text`, from: responsesCodec, to, chunks: textStream() },
    { name: `responses to ${name}, thoughts`, from: responsesCodec, to, chunks: thoughtStream() },
    { name: `responses to ${name}, arguments`, from: responsesCodec, to, chunks: argumentStream() },
  ]),
]

/**
 * Converts a whole stream. Returns the number of bytes written, so that the compiler cannot drop the
 * work as dead code.
 */
function convert({ from, to, chunks }: Case): number {
  const encoder = to.streamEncoder({ created: 1_760_000_000, id: 'id' }, { includeUsage: true })
  const tap = new ConvertingTap(from.streamDecoder(), encoder, { model: 'model', promptTokens: () => 1 })
  let written = 0
  for (const one of chunks) written += tap.push(one).forward?.length ?? 0
  tap.end()
  return written + tap.finalBytes(NO_USAGE).length
}

/** Microseconds of CPU time per event of one conversion. */
function measure(one: Case): number {
  const before = process.cpuUsage()
  const written = convert(one)
  const { user, system } = process.cpuUsage(before)
  if (written < EVENTS) throw new Error(`${one.name}: only ${written} characters were written`)
  return (user + system) / EVENTS
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

for (let i = 0; i < WARM_UP; i++) for (const one of CASES) convert(one)
// Each round measures all cases, so that a temporary slowdown of the machine affects all of them.
const rounds = Array.from({ length: ROUNDS }, () => CASES.map(measure))
const results = CASES.map(({ name }, i) => ({
  name,
  microseconds: median(rounds.map((round) => round[i] as number)),
}))
if (options.json)
  console.log(JSON.stringify({ unit: 'µs of CPU an event', limit: LIMIT_US, results }, null, 2))
else
  for (const { name, microseconds } of results)
    console.log(`${microseconds.toFixed(2)} µs an event (limit ${LIMIT_US}): ${name}`)
const yardstick = results[0]?.microseconds ?? 0
const isSlow = ({ name, microseconds }: (typeof results)[number]): boolean =>
  microseconds > LIMIT_US || (/responses|gemini/.test(name) && microseconds > LIMIT_RATIO * yardstick)
process.exitCode = options.check && results.some(isSlow) ? 1 : 0
