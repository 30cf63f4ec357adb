import { type ModelOutput, generateOutput, type StopCause } from './model-output.ts'
import { type CacheBlock, type CacheUse, useBlockCache } from './block-cache.ts'
import { CacheDiagnostics } from './cache-diagnostics.ts'
import { minimumCachedTokens } from './cache-rules.ts'
import { type Fields, asFields, asList } from './fields.ts'
import type { Prompt } from './prompt.ts'
import { messagesPrompt } from './messages-request.ts'
import type { PromptCache } from './prompt-cache.ts'
import { seededRandom } from './random.ts'
import type { Refusal, RefusalKind } from './refusal.ts'
import { requestedCacheWrites, messagesServiceTier } from './service-tier.ts'
import { estimateTokens } from './tokens.ts'
import {
  bearerToken,
  type Frame,
  bodyOfPost,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'

const STOP_REASON: Record<StopCause, string> = {
  done: 'end_turn',
  stop_text: 'stop_sequence',
  length: 'max_tokens',
  tools: 'tool_use',
}

/** Number of blocks, back from and including a breakpoint, at which a cached prefix may end. */
const LOOKBACK = 20

/** The members of a message that has not ended. */
const NOT_STOPPED = { container: null, stop_reason: null, stop_sequence: null, stop_details: null }

/** The caches of a provider, and the account that makes the call. */
export interface CallCaches {
  readonly cache: PromptCache
  readonly diagnostics: CacheDiagnostics
  readonly account: string
}

/**
 * A content block: the complete one, how it starts in a stream, and its deltas with their number of tokens.
 */
interface Block {
  readonly complete: unknown
  readonly start: unknown
  readonly deltas: readonly { readonly delta: unknown; readonly tokens: number }[]
}

/** Creates a simulated provider of the messages protocol. */
export function messagesUpstream(models: readonly string[], cache: PromptCache): Upstream {
  const diagnostics = new CacheDiagnostics()
  return {
    faults: 'messages',
    bodyIfServed: bodyOfPost('/messages'),
    models,
    keyOf: (headers) => String(headers['x-api-key'] ?? '') || bearerToken(headers),
    reply: (body, model, stamp, { account }) =>
      messagesReply(body, model, stamp, { cache, diagnostics, account }),
    refuse,
  }
}

export function messagesReply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  caches: CallCaches,
): Reply {
  const { prompt, cached } = messagesPrompt(body, model)
  const output = generateOutput(prompt)
  const used = useCacheBreakpoints(caches, body, model, cached)
  const input = {
    ...withWrites(body, inputUsage(prompt, used)),
    ...messagesServiceTier(body),
  }
  const details = output.thinking.length > 0 ? { thinking_tokens: output.thinking.length } : null
  const total = { ...input, output_tokens: output.tokens, output_tokens_details: details }
  const content = blocks(output, prompt.transcript, stamp)
  const ending = {
    ...NOT_STOPPED,
    stop_reason: STOP_REASON[output.stopCause],
    stop_sequence: output.stopText,
  }
  const id = stamp.id('msg_')
  const { transcript } = prompt
  const messages = asList(body.messages).map(asFields)
  const { account, diagnostics: diagnosed } = caches
  const diagnostics = diagnosed.ofMessages(id, {
    account,
    model,
    body,
    messages,
    transcript,
    read: used.read,
  })
  const message = {
    id,
    type: 'message',
    role: 'assistant',
    model,
    ...('diagnostics' in body && { diagnostics }),
  }
  if (body.stream === true) {
    const started = { ...message, content: [], ...NOT_STOPPED }
    const frames = [
      event('message_start', {
        message: { ...started, usage: { ...total, output_tokens: 1, output_tokens_details: null } },
      }),
      ...content.flatMap(blockFrames),
      event('message_delta', { delta: ending, usage: total }),
      event('message_stop', {}),
    ]
    return { kind: 'stream', frames }
  }
  const completeBlocks = content.map((block) => block.complete)
  return {
    kind: 'whole',
    body: { ...message, content: completeBlocks, ...ending, usage: total },
    tokens: output.tokens,
  }
}

/** Reads and writes the cache at the breakpoints of a request. */
export function useCacheBreakpoints(
  { cache, account }: Omit<CallCaches, 'diagnostics'>,
  body: Fields,
  model: string,
  blocks: readonly CacheBlock[],
): CacheUse {
  const scope = `${account}\n${model}\n${body.speed === 'fast' ? 'fast' : ''}`
  return useBlockCache(cache, blocks, { scope, minimum: minimumCachedTokens(model), lookback: LOOKBACK })
}

/** Computes the usage. `input_tokens` does not include tokens read from or written to the cache. */
function inputUsage({ transcript }: Prompt, { read, writes }: CacheUse) {
  const { '5m': short = 0, '1h': long = 0 } = writes
  return {
    input_tokens: estimateTokens(transcript.length) - read - short - long,
    cache_creation_input_tokens: short + long,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
  }
}

type InputUsage = ReturnType<typeof inputUsage>

/** Adds the tokens that a `simulate(…)` directive in the request declares as written to the cache. */
function withWrites(body: Fields, usage: InputUsage): InputUsage {
  const { '5m': short, '1h': long } = requestedCacheWrites(body, usage.input_tokens)
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

function blocks({ thinking, text, calls }: ModelOutput, transcript: string, stamp: ReplyTimeAndIds): Block[] {
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
    complete: { type: 'text', text: pieces.join(''), citations: null },
    start: { type: 'text', text: '', citations: null },
    deltas: pieces.map((text) => ({ delta: { type: 'text_delta', text }, tokens: 1 })),
  }
}

function toolBlock(id: string, name: string, pieces: readonly string[]): Block {
  const caller = { type: 'direct' }
  return {
    complete: { type: 'tool_use', id, name, input: inputObject(pieces.join('')), caller },
    start: { type: 'tool_use', id, name, input: {}, caller },
    deltas: pieces.map((partial_json) => ({ delta: { type: 'input_json_delta', partial_json }, tokens: 1 })),
  }
}

/** Parses a call's input; if it is cut off, returns an empty object. */
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

/** Creates an opaque signature; equal thinking gets an equal one. */
function signature(seed: string): string {
  const random = seededRandom(seed)
  return Buffer.from(Array.from({ length: 96 }, () => Math.floor(random() * 256))).toString('base64')
}

const ERROR_TYPE: Partial<Record<RefusalKind, string>> = {
  missing_key: 'authentication_error',
  unknown_model: 'not_found_error',
  unknown_path: 'not_found_error',
  unknown_object: 'not_found_error',
  too_large: 'request_too_large',
}

function refuse({ kind, message }: Refusal, stamp: ReplyTimeAndIds): unknown {
  const text = kind === 'unknown_model' ? `model: ${message}` : message
  return {
    type: 'error',
    error: { type: ERROR_TYPE[kind] ?? 'invalid_request_error', message: text },
    request_id: stamp.id('req_'),
  }
}
