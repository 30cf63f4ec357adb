import { type ModelOutput, generate, type StopCause } from './model-output.ts'
import type { Fields } from './fields.ts'
import { type CacheMark, messagesPrompt } from './messages-request.ts'
import type { PromptCache } from './prompt-cache.ts'
import { seededBy } from './random.ts'
import type { Refusal, RefusalKind } from './refusal.ts'
import { cacheWrites, messagesService } from './service-tier.ts'
import { tokensOf } from './tokens.ts'
import { bearer, type Frame, postTo, type Reply, type ReplyStamp, type Upstream } from './upstream.ts'

const STOP_REASON: Record<StopCause, string> = {
  done: 'end_turn',
  stop_text: 'stop_sequence',
  length: 'max_tokens',
  tools: 'tool_use',
}

// Size in tokens from which a prefix is cached.
const MIN_CACHED_TOKENS = 1024

/** Content block: complete, as it starts in a stream, and its deltas with their tokens. */
interface Block {
  readonly complete: unknown
  readonly start: unknown
  readonly deltas: readonly { readonly delta: unknown; readonly tokens: number }[]
}

/** Creates a simulated provider of the messages protocol. */
export function messagesUpstream(models: readonly string[], cache: PromptCache): Upstream {
  return {
    bodyIfServed: postTo('/messages'),
    models,
    keyOf: (headers) => String(headers['x-api-key'] ?? '') || bearer(headers),
    reply: (body, model, stamp) => messagesReply(body, model, stamp, cache),
    refuse,
  }
}

/** Replies to a request of messages. */
export function messagesReply(body: Fields, model: string, stamp: ReplyStamp, cache: PromptCache): Reply {
  const { prompt, mark } = messagesPrompt(body, model)
  const output = generate(prompt)
  const input = {
    ...withWrites(body, inputUsage(prompt.model, prompt.transcript, mark, cache)),
    ...messagesService(body),
  }
  const content = blocks(output, prompt.transcript, stamp)
  const ending = { stop_reason: STOP_REASON[output.stopCause], stop_sequence: output.stopText }
  const message = { id: stamp.id('msg_'), type: 'message', role: 'assistant', model }
  if (body.stream === true) {
    const started = { ...message, content: [], stop_reason: null, stop_sequence: null }
    const frames = [
      event('message_start', { message: { ...started, usage: { ...input, output_tokens: 1 } } }),
      ...content.flatMap(blockFrames),
      event('message_delta', { delta: ending, usage: { ...input, output_tokens: output.tokens } }),
      event('message_stop', {}),
    ]
    return { kind: 'stream', frames }
  }
  const completeBlocks = content.map((block) => block.complete)
  const usage = { ...input, output_tokens: output.tokens }
  return {
    kind: 'whole',
    body: { ...message, content: completeBlocks, ...ending, usage },
    tokens: output.tokens,
  }
}

/** Computes usage; `input_tokens` excludes cache reads and writes. */
function inputUsage(model: string, transcript: string, mark: CacheMark | undefined, cache: PromptCache) {
  const all = tokensOf(transcript.length)
  const marked = mark ? Math.min(tokensOf(mark.characters), all) : 0
  const cacheable = marked < MIN_CACHED_TOKENS ? 0 : marked
  const known = cacheable === 0 ? 0 : tokensOf(cache.remember(model, transcript.slice(0, mark?.characters)))
  const written = cacheable - known
  return {
    input_tokens: all - cacheable,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: known,
    cache_creation: {
      ephemeral_5m_input_tokens: mark?.ttl === '1h' ? 0 : written,
      ephemeral_1h_input_tokens: mark?.ttl === '1h' ? written : 0,
    },
  }
}

type InputUsage = ReturnType<typeof inputUsage>

/** Adds what the request makes the provider write to its cache. */
function withWrites(body: Fields, usage: InputUsage): InputUsage {
  const { '5m': short, '1h': long } = cacheWrites(body, usage.input_tokens)
  const { ephemeral_5m_input_tokens: before5m, ephemeral_1h_input_tokens: before1h } = usage.cache_creation
  return {
    ...usage,
    input_tokens: usage.input_tokens - short - long,
    cache_creation_input_tokens: usage.cache_creation_input_tokens + short + long,
    cache_creation: {
      ephemeral_5m_input_tokens: before5m + short,
      ephemeral_1h_input_tokens: before1h + long,
    },
  }
}

function blocks({ thinking, text, calls }: ModelOutput, transcript: string, stamp: ReplyStamp): Block[] {
  return [
    ...(thinking.length > 0 ? [thinkingBlock(thinking, signature(transcript))] : []),
    ...(text.length > 0 ? [textBlock(text)] : []),
    ...calls.map(({ tool, input }) => toolBlock(stamp.id('toolu_'), tool.name, input)),
  ]
}

function thinkingBlock(pieces: readonly string[], signed: string): Block {
  return {
    complete: { type: 'thinking', thinking: pieces.join(''), signature: signed },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...pieces.map((thinking) => ({ delta: { type: 'thinking_delta', thinking }, tokens: 1 })),
      { delta: { type: 'signature_delta', signature: signed }, tokens: 0 },
    ],
  }
}

function textBlock(pieces: readonly string[]): Block {
  return {
    complete: { type: 'text', text: pieces.join('') },
    start: { type: 'text', text: '' },
    deltas: pieces.map((text) => ({ delta: { type: 'text_delta', text }, tokens: 1 })),
  }
}

function toolBlock(id: string, name: string, pieces: readonly string[]): Block {
  return {
    complete: { type: 'tool_use', id, name, input: inputObject(pieces.join('')) },
    start: { type: 'tool_use', id, name, input: {} },
    deltas: pieces.map((partial_json) => ({ delta: { type: 'input_json_delta', partial_json }, tokens: 1 })),
  }
}

/** Parses a call's input; a truncated one becomes an empty object. */
function inputObject(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

function blockFrames({ start, deltas }: Block, index: number): Frame[] {
  return [
    event('content_block_start', { index, content_block: start }),
    ...(index === 0 ? [event('ping', {})] : []),
    ...deltas.map(({ delta, tokens }) => event('content_block_delta', { index, delta }, tokens)),
    event('content_block_stop', { index }),
  ]
}

function event(type: string, data: object, tokens = 0): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`, tokens }
}

/** Generates an opaque signature, equal for equal thinking. */
function signature(seed: string): string {
  const random = seededBy(seed)
  return Buffer.from(Array.from({ length: 96 }, () => Math.floor(random() * 256))).toString('base64')
}

const ERROR_TYPE: Partial<Record<RefusalKind, string>> = {
  missing_key: 'authentication_error',
  unknown_model: 'not_found_error',
  unknown_path: 'not_found_error',
  too_large: 'request_too_large',
}

function refuse({ kind, message }: Refusal, stamp: ReplyStamp): unknown {
  const text = kind === 'unknown_model' ? `model: ${message}` : message
  return {
    type: 'error',
    error: { type: ERROR_TYPE[kind] ?? 'invalid_request_error', message: text },
    request_id: stamp.id('req_'),
  }
}
