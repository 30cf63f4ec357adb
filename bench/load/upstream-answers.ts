import { BLANK } from './stamp.ts'
import { BURST_EVENTS, type Wire } from './wire.ts'

/** Prepared bytes of the upstream's responses. */
export interface Answers {
  /** Head and body, 2 KB; the content begins with the time at which it was made. */
  readonly whole: Buffer
  /** The same with the limits of the provider in its head. */
  readonly stating: Buffer
  /** Head and first events of a stream. */
  readonly streamStart: Buffer
  /** Events that each carry a piece of content with a stamp, each in a separate chunk. */
  readonly pieces: readonly Buffer[]
  /** The end of a stream, in a last chunk. */
  readonly streamEnd: Buffer
  /** A whole stream in one chunk. */
  readonly burst: Buffer
}

/** How one dialect writes its responses. */
interface Language {
  whole(content: string): object
  readonly start: string
  piece(content: string): string
  readonly end: string
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, fields: object = {}): string => `event: ${type}\n${data({ type, ...fields })}`
const INPUT = 420
const OUTPUT = 440

const chatChunk = (choices: readonly object[], more: object = {}): string =>
  data({
    id: 'chatcmpl-BvC1mU5d2pGJcTzW0x9QeRkN',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'gpt-4.1-2025-04-14',
    service_tier: 'default',
    system_fingerprint: 'fp_51e1070cf2',
    choices,
    ...more,
  })
const choice = (delta: object, finish: string | null = null): object => ({
  index: 0,
  delta,
  logprobs: null,
  finish_reason: finish,
})
const chatUsage = { prompt_tokens: INPUT, completion_tokens: OUTPUT, total_tokens: INPUT + OUTPUT }

let sequence = 2
const responseOf = (status: string, output: readonly object[]): object => ({
  id: 'resp_68a1f0c2d4e881a19c0b7e5d3f2a4c6e',
  object: 'response',
  created_at: 1_760_000_000,
  status,
  model: 'gpt-4.1-2025-04-14',
  output,
  usage:
    status === 'completed'
      ? { input_tokens: INPUT, output_tokens: OUTPUT, total_tokens: INPUT + OUTPUT }
      : null,
})
const outputMessage = (content: readonly object[]): object => ({
  id: 'msg_68a1f0c2d4e881a19c0b7e5d3f2a4c6f',
  type: 'message',
  role: 'assistant',
  content,
})
const outputText = (text: string): object => ({ type: 'output_text', text, annotations: [] })

const geminiChunk = (text: string, ending: object = {}): object => ({
  candidates: [{ content: { parts: [{ text }], role: 'model' }, ...ending, index: 0 }],
  usageMetadata: {
    promptTokenCount: INPUT,
    candidatesTokenCount: OUTPUT,
    totalTokenCount: INPUT + OUTPUT,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: INPUT }],
  },
  modelVersion: 'gemini-2.5-flash',
  responseId: 'aKHwwtTogaGcC35dPypMbg',
})
const geminiEvent = (chunk: object): string => `data: ${JSON.stringify(chunk)}\r\n\r\n`

const LANGUAGES: Readonly<Record<Wire, Language>> = {
  chat: {
    whole: (content) => ({
      id: 'chatcmpl-BvC1mU5d2pGJcTzW0x9QeRkN',
      object: 'chat.completion',
      created: 1_760_000_000,
      model: 'gpt-4.1-2025-04-14',
      choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
      usage: chatUsage,
    }),
    start: chatChunk([choice({ role: 'assistant', content: '' })]),
    piece: (content) => chatChunk([choice({ content })]),
    end: chatChunk([choice({}, 'stop')]) + chatChunk([], { usage: chatUsage }) + 'data: [DONE]\n\n',
  },
  messages: {
    whole: (text) => ({
      id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-5-20250929',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: INPUT, output_tokens: OUTPUT },
    }),
    start:
      event('message_start', {
        message: {
          id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-5-20250929',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: INPUT, output_tokens: 1 },
        },
      }) + event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    piece: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    end:
      event('content_block_stop', { index: 0 }) +
      event('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: OUTPUT },
      }) +
      event('message_stop'),
  },
  responses: {
    whole: (text) => responseOf('completed', [outputMessage([outputText(text)])]),
    start:
      event('response.created', { sequence_number: 0, response: responseOf('in_progress', []) }) +
      event('response.output_item.added', { sequence_number: 1, output_index: 0, item: outputMessage([]) }),
    piece: (delta) =>
      event('response.output_text.delta', {
        sequence_number: sequence++,
        item_id: 'msg_68a1f0c2d4e881a19c0b7e5d3f2a4c6f',
        output_index: 0,
        content_index: 0,
        delta,
        logprobs: [],
      }),
    end: event('response.completed', {
      sequence_number: sequence,
      response: responseOf('completed', [outputMessage([outputText('All of it.')])]),
    }),
  },
  gemini: {
    whole: (text) => geminiChunk(text, { finishReason: 'STOP' }),
    start: '',
    piece: (text) => geminiEvent(geminiChunk(text)),
    end: geminiEvent(geminiChunk('', { finishReason: 'STOP' })),
  },
}

const WORDS =
  ' the of a stream that is read as it comes, "quoted" here\nand naïve there; 42 words or so, and 詩 too'
    .split(' ')
    .map((word) => ` ${word}`)
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n'
const LIMITS = [
  'x-ratelimit-limit-requests: 10000000\r\n',
  'x-ratelimit-limit-tokens: 150000000000\r\n',
  'x-ratelimit-remaining-requests: 9999999\r\n',
  'x-ratelimit-remaining-tokens: 149999994000\r\n',
  'x-ratelimit-reset-requests: 6ms\r\n',
  'x-ratelimit-reset-tokens: 2m59.56s\r\n',
].join('')
const LAST_CHUNK = '0\r\n\r\n'
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** Prepares every response of an upstream of this dialect. */
export function answersOf(wire: Wire): Answers {
  const language = LANGUAGES[wire]
  const body = JSON.stringify(
    language.whole(`${BLANK} ${'All work and no play makes Jack a dull boy. '.repeat(40)}`),
  )
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const pieces = Array.from({ length: BURST_EVENTS }, (_, index) =>
    language.piece(`${BLANK}${WORDS[index % WORDS.length]}`),
  )
  return {
    whole: Buffer.from(head + body),
    stating: Buffer.from(head.replace(/\r\n\r\n$/, `\r\n${LIMITS}\r\n`) + body),
    streamStart: Buffer.from(STREAM_HEAD + (language.start === '' ? '' : chunk(language.start))),
    pieces: pieces.map((piece) => Buffer.from(chunk(piece))),
    streamEnd: Buffer.from(chunk(language.end) + LAST_CHUNK),
    burst: Buffer.from(STREAM_HEAD + chunk(language.start + pieces.join('') + language.end) + LAST_CHUNK),
  }
}
