import fc from 'fast-check'
import { jsonText, names, objectTexts, Raw, texts } from './json.ts'

/** A part of a model's response, in the pieces in which a stream sends it. */
export type Segment =
  | {
      readonly kind: 'text'
      readonly pieces: readonly string[]
      /** Pages that the whole text cites. */
      readonly cited: readonly Page[]
      /** Whether the provider reports log probabilities of tokens, in dialects that have them. */
      readonly hasLogprobs: boolean
    }
  | { readonly kind: 'thinking'; readonly pieces: readonly string[]; readonly signature: string | undefined }
  | { readonly kind: 'tool'; readonly id: string; readonly name: string; readonly pieces: readonly string[] }

/** A page that a text cites. */
interface Page {
  readonly url: string
  readonly title: string
}

/** An answer, independent of the dialect. */
export interface Answer {
  readonly segments: readonly Segment[]
  readonly stop: 'end' | 'length' | 'tools' | 'refusal'
  /** Uncached prompt tokens, cached ones, those written to the cache, and generated ones. */
  readonly usage: {
    readonly input: number
    readonly read: number
    readonly written: number
    readonly output: number
  }
  /** Differences between providers: pings, comments, line ends, unknown frames. */
  readonly quirks: Quirks
}

interface Quirks {
  readonly lineEnd: '\n' | '\r\n'
  readonly noise: boolean
  readonly roleChunk: boolean
  readonly usageIn: 'own chunk' | 'finish chunk' | 'nowhere'
  readonly interleaves: boolean
  readonly hasDone: boolean
}

const inPieces = (text: string, sizes: readonly number[]): string[] => {
  const pieces: string[] = []
  let rest = Array.from(text)
  for (const size of sizes) {
    pieces.push(rest.slice(0, size).join(''))
    rest = rest.slice(size)
  }
  return [...pieces, rest.join('')]
}

const pieces = fc.array(texts(), { minLength: 1, maxLength: 4 })
const pages: fc.Arbitrary<Page[]> = fc.array(
  fc.record({ url: names().map((name) => `https://${name}.test/`), title: texts() }),
  { maxLength: 2 },
)
const tools: fc.Arbitrary<Segment> = fc
  .tuple(names(), names(), objectTexts(), fc.array(fc.nat(6), { maxLength: 4 }))
  .map(([id, name, input, sizes]) => ({
    kind: 'tool',
    id: `call_${id}`,
    name,
    pieces: inPieces(input, sizes),
  }))
const segments: fc.Arbitrary<Segment[]> = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc
          .tuple(pieces, pages, fc.boolean())
          .map(([all, cited, hasLogprobs]): Segment => ({ kind: 'text', pieces: all, cited, hasLogprobs })),
        fc
          .tuple(pieces, fc.option(names(), { nil: undefined }))
          .map(([all, signature]): Segment => ({ kind: 'thinking', pieces: all, signature })),
        tools,
      ),
      { maxLength: 5 },
    ),
  )
  .map(([all]) =>
    all.map((segment, i) => (segment.kind === 'tool' ? { ...segment, id: `${segment.id}_${i}` } : segment)),
  )

/** Answers of text, reasoning and tool calls, in any order. */
export function answers(): fc.Arbitrary<Answer> {
  return fc.record({
    segments,
    stop: fc.constantFrom('end', 'length', 'tools', 'refusal'),
    usage: fc.record({
      input: fc.nat(1_000_000),
      read: fc.nat(1_000_000),
      written: fc.nat(1_000_000),
      output: fc.nat(1_000_000),
    }),
    quirks: fc.record({
      lineEnd: fc.constantFrom('\n', '\r\n'),
      noise: fc.boolean(),
      roleChunk: fc.boolean(),
      usageIn: fc.constantFrom('own chunk', 'finish chunk', 'nowhere'),
      interleaves: fc.boolean(),
      hasDone: fc.boolean(),
    }),
  })
}

const CHAT_STOPS = { end: 'stop', length: 'length', tools: 'tool_calls', refusal: 'content_filter' } as const
const MESSAGES_STOPS = {
  end: 'end_turn',
  length: 'max_tokens',
  tools: 'tool_use',
  refusal: 'refusal',
} as const

/** The answer as a stream of a chat upstream, frame by frame. */
export function chatFrames({ segments, stop, usage, quirks }: Answer): string[] {
  const chunk = (delta: unknown, finish: string | null = null, more = {}, logprobs?: unknown): unknown => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gpt-1',
    choices: delta === undefined ? [] : [{ index: 0, delta, logprobs, finish_reason: finish }],
    ...more,
  })
  const reported = { usage: chatUsage(usage) }
  const chunks = [
    ...(quirks.roleChunk ? [chunk({ role: 'assistant', content: '' })] : []),
    ...deltasOf(segments, quirks.interleaves).map(({ delta, logprobs }) => chunk(delta, null, {}, logprobs)),
    chunk({}, CHAT_STOPS[stop], quirks.usageIn === 'finish chunk' ? reported : {}),
    ...(quirks.usageIn === 'own chunk' ? [chunk(undefined, null, reported)] : []),
  ]
  const end = quirks.lineEnd.repeat(2)
  const noise = quirks.noise ? [`: waiting${end}`] : []
  return [
    ...noise,
    ...chunks.flatMap((value) => [`data: ${JSON.stringify(value)}${end}`, ...noise]),
    ...(quirks.hasDone ? [`data: [DONE]${end}`] : []),
  ]
}

/** Deltas in order; those of interleaved calls alternate piece by piece. */
function deltasOf(
  all: readonly Segment[],
  interleaves: boolean,
): { readonly delta: unknown; readonly logprobs?: unknown }[] {
  const deltas: { readonly delta: unknown; readonly logprobs?: unknown }[] = []
  let length = 0
  const calls: unknown[][] = []
  let number = 0
  const flush = (): void => {
    const longest = Math.max(0, ...calls.map((call) => call.length))
    if (interleaves) {
      for (let i = 0; i < longest; i++)
        for (const call of calls) if (i < call.length) deltas.push({ delta: call[i] })
    } else deltas.push(...calls.flat().map((delta) => ({ delta })))
    calls.length = 0
  }
  for (const segment of all) {
    if (segment.kind === 'tool') {
      calls.push(callDeltas(segment, number++))
      continue
    }
    flush()
    if (segment.kind === 'thinking') {
      deltas.push(...segment.pieces.map((piece) => ({ delta: { reasoning_content: piece } })))
      continue
    }
    for (const piece of segment.pieces)
      deltas.push({
        delta: { content: piece },
        ...(segment.hasLogprobs && piece !== '' && { logprobs: { content: [token(piece)], refusal: null } }),
      })
    const annotations = annotationsOf(segment, length)
    if (annotations.length > 0) deltas.push({ delta: { annotations } })
    length += Array.from(segment.pieces.join('')).length
  }
  flush()
  return deltas
}

function callDeltas({ id, name, pieces: all }: Extract<Segment, { kind: 'tool' }>, index: number): unknown[] {
  const [first = '', ...more] = all
  return [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: first } }] },
    ...more.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]
}

/** A token as chat and responses providers report it. */
function token(text: string): object {
  const bytes = [...Buffer.from(text)]
  return { token: text, logprob: -1.5, bytes, top_logprobs: [{ token: '?', logprob: -2.25, bytes: [63] }] }
}

/** The citations of a text that begins at position `base` of the content. */
function annotationsOf({ pieces: all, cited }: Extract<Segment, { kind: 'text' }>, base: number): object[] {
  const { length } = Array.from(all.join(''))
  if (length === 0) return []
  return cited.map((page) => ({
    type: 'url_citation',
    url_citation: { ...page, start_index: base, end_index: base + length },
  }))
}

/** The answer as a whole chat reply. */
export function chatReply({ segments, stop, usage, quirks }: Answer): string {
  const joined = (kind: Segment['kind']): string =>
    segments.map((segment) => (segment.kind === kind ? segment.pieces.join('') : '')).join('')
  let length = 0
  const annotations = segments.flatMap((segment) => {
    if (segment.kind !== 'text') return []
    const base = length
    length += Array.from(segment.pieces.join('')).length
    return annotationsOf(segment, base)
  })
  const tokens = segments.flatMap((segment) =>
    segment.kind === 'text' && segment.hasLogprobs
      ? segment.pieces.filter((piece) => piece !== '').map(token)
      : [],
  )
  const calls = segments.flatMap((segment) =>
    segment.kind === 'tool'
      ? [
          {
            id: segment.id,
            type: 'function',
            function: { name: segment.name, arguments: segment.pieces.join('') },
          },
        ]
      : [],
  )
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-1',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: joined('text'),
          reasoning_content: joined('thinking'),
          annotations,
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: { content: tokens, refusal: null },
        finish_reason: CHAT_STOPS[stop],
      },
    ],
    ...(quirks.usageIn !== 'nowhere' && { usage: chatUsage(usage) }),
  })
}

/** The answer as a stream of a messages upstream, frame by frame. */
export function messagesFrames({ segments, stop, usage, quirks }: Answer): string[] {
  const { lineEnd } = quirks
  const event = (type: string, fields: object = {}): string =>
    `event: ${type}${lineEnd}data: ${JSON.stringify({ type, ...fields })}${lineEnd.repeat(2)}`
  const noise = quirks.noise ? [event('ping'), event('hologram', { x: 1 })] : []
  const { output, ...prompt } = usage
  const atStart = { ...messagesUsage({ ...prompt, output: 1 }) }
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-1', content: [] }
  return [
    event('message_start', { message: { ...head, stop_reason: null, stop_sequence: null, usage: atStart } }),
    ...segments.flatMap((segment, index) => [
      event('content_block_start', { index, content_block: blockStart(segment) }),
      ...noise,
      ...blockDeltas(segment).map((delta) => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', {
      delta: { stop_reason: MESSAGES_STOPS[stop], stop_sequence: null },
      usage: { output_tokens: output },
    }),
    ...noise,
    event('message_stop'),
  ]
}

function blockStart(segment: Segment): unknown {
  switch (segment.kind) {
    case 'text':
      return { type: 'text', text: '' }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'tool':
      return { type: 'tool_use', id: segment.id, name: segment.name, input: {} }
  }
}

function blockDeltas(segment: Segment): unknown[] {
  switch (segment.kind) {
    case 'text':
      return [
        ...segment.pieces.map((text) => ({ type: 'text_delta', text })),
        ...citationsOf(segment).map((citation) => ({ type: 'citations_delta', citation })),
      ]
    case 'thinking':
      return [
        ...segment.pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
        ...(segment.signature === undefined
          ? []
          : [{ type: 'signature_delta', signature: segment.signature }]),
      ]
    case 'tool':
      return segment.pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }))
  }
}

function citationsOf({ pieces: all, cited }: Extract<Segment, { kind: 'text' }>): object[] {
  if (all.join('') === '') return []
  const more = { type: 'web_search_result_location', cited_text: 'x', encrypted_index: 'y' }
  return cited.map((page) => ({ ...more, ...page }))
}

/** The answer as a whole messages reply. */
export function messagesReply({ segments, stop, usage }: Answer): string {
  return jsonText({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-1',
    content: segments.map((segment) => {
      const all = segment.pieces.join('')
      switch (segment.kind) {
        case 'text':
          return { type: 'text', text: all, citations: citationsOf(segment) }
        case 'thinking':
          return { type: 'thinking', thinking: all, signature: segment.signature ?? '' }
        case 'tool':
          return { type: 'tool_use', id: segment.id, name: segment.name, input: new Raw(all) }
      }
    }),
    stop_reason: MESSAGES_STOPS[stop],
    stop_sequence: null,
    usage: messagesUsage(usage),
  })
}

function chatUsage({ input, read, written, output }: Answer['usage']): object {
  const prompt = input + read + written
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: read, cached_creation_tokens: written },
  }
}

function messagesUsage({ input, read, written, output }: Answer['usage']): object {
  return {
    input_tokens: input,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens: output,
  }
}
