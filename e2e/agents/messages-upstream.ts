import {
  bearerToken,
  type Frame,
  bodyOfPost,
  Refusal,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from '@sluice/simulator'
import { type Fields, asFields, asList, asString } from '@sluice/simulator/fields'
import { nextTurn, pieces, type ModelInput, tokensOf } from './model.ts'
import { type ReturnedSignatures, signed } from './signatures.ts'

/** Models that accept system messages between turns. */
const TAKING_SYSTEM_TURNS = new Set(['claude-opus-5'])

/** Models that think before they call, and refuse a returned step with calls that lacks its thought. */
const ALWAYS_THINKING = new Set(['claude-opus-4-5'])

/** A content block and its deltas. */
interface Block {
  readonly whole: Fields
  readonly start: Fields
  readonly deltas: readonly Fields[]
}

/** The model behind the messages dialect, as strict about the order of blocks as the provider is. */
export function messagesUpstream(models: readonly string[], returned: ReturnedSignatures): Upstream {
  return {
    bodyIfServed: bodyOfPost('/messages'),
    models,
    keyOf: (headers) => asString(headers['x-api-key']) || bearerToken(headers),
    reply: (body, model, stamp) => reply(body, model, stamp, returned),
    refuse: ({ message }, stamp) => ({
      type: 'error',
      error: { type: 'invalid_request_error', message },
      request_id: stamp.id('req_'),
    }),
  }
}

function reply(body: Fields, model: string, stamp: ReplyTimeAndIds, returned: ReturnedSignatures): Reply {
  const { thinking, text, calls } = nextTurn(modelInput(body, model, returned))
  const thinks = thinking !== '' && ['enabled', 'adaptive'].includes(asString(asFields(body.thinking).type))
  if (calls.length > 0 && !thinks && ALWAYS_THINKING.has(model))
    throw new Refusal('malformed', 'expected a request for thoughts')
  const blocks = [
    ...(thinks ? [thinkingBlock(thinking)] : []),
    textBlock(text),
    ...calls.map(({ name, input }) => toolBlock(stamp.id('toolu_'), name, input)),
  ]
  const prompt = tokensOf(JSON.stringify(body))
  const cached = Math.floor(prompt / 2)
  const input = {
    input_tokens: prompt - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    service_tier: 'standard',
  }
  const output = tokensOf(thinking + text + JSON.stringify(calls))
  const head = { id: stamp.id('msg_'), type: 'message', role: 'assistant', model }
  const ending = { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null }
  if (body.stream !== true) {
    const content = blocks.map(({ whole }) => whole)
    const usage = { ...input, output_tokens: output }
    return { kind: 'whole', body: { ...head, content, ...ending, usage }, tokens: 0 }
  }
  const started = { ...head, content: [], stop_reason: null, stop_sequence: null }
  const frames = [
    event('message_start', { message: { ...started, usage: { ...input, output_tokens: 1 } } }),
    event('ping', {}),
    ...blocks.flatMap(({ start, deltas }, index) => [
      event('content_block_start', { index, content_block: start }),
      ...deltas.map((delta) => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', { delta: ending, usage: { ...input, output_tokens: output } }),
    event('message_stop', {}),
  ]
  return { kind: 'stream', frames }
}

function event(type: string, data: Fields): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`, tokens: 1 }
}

function thinkingBlock(thinking: string): Block {
  return {
    whole: { type: 'thinking', thinking, signature: signed(thinking) },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...pieces(thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature: signed(thinking) },
    ],
  }
}

function textBlock(text: string): Block {
  return {
    whole: { type: 'text', text },
    start: { type: 'text', text: '' },
    deltas: pieces(text).map((piece) => ({ type: 'text_delta', text: piece })),
  }
}

function toolBlock(id: string, name: string, input: string): Block {
  return {
    whole: { type: 'tool_use', id, name, input: JSON.parse(input) },
    start: { type: 'tool_use', id, name, input: {} },
    deltas: ['', ...pieces(input)].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
  }
}

function modelInput(body: Fields, model: string, returned: ReturnedSignatures): ModelInput {
  if (typeof body.max_tokens !== 'number') throw new Refusal('malformed', 'max_tokens: Field required')
  const turns = asList(body.messages)
    .map((message) => asFields(message))
    .filter(({ role }) => role !== 'system' || !TAKING_SYSTEM_TURNS.has(model))
    .map(({ role, content }) => ({ role: asString(role), blocks: blocksOf(content) }))
  requireOrder(turns, asFields(body.thinking).type === 'enabled' || ALWAYS_THINKING.has(model), returned)
  const heard = turns.filter(({ role }) => role === 'user').flatMap(({ blocks }) => blocks)
  return {
    user: heard.map(({ text }) => asString(text)).join('\n'),
    results: heard.filter(({ type }) => type === 'tool_result').map(({ content }) => textOf(content)),
    tools: asList(body.tools)
      .map(asFields)
      .map(({ name, input_schema }) => ({ name: asString(name), schema: asFields(input_schema) })),
  }
}

// Requires that a turn with tool calls is followed by a turn that begins with all their results; with
// thinking on, that an assistant turn begins with a thinking block; and that thinking blocks have their
// original signatures.
function requireOrder(
  turns: readonly { role: string; blocks: readonly Fields[] }[],
  thinks: boolean,
  returned: ReturnedSignatures,
): void {
  for (const [at, { role, blocks }] of turns.entries()) {
    if (role !== 'user' && role !== 'assistant') throw new Refusal('malformed', `unexpected role ${role}`)
    const before = turns[at - 1]?.role === 'assistant' ? (turns[at - 1]?.blocks ?? []) : []
    const called = before.filter(({ type }) => type === 'tool_use').map(({ id }) => asString(id))
    const results = blocks.filter(({ type }) => type === 'tool_result')
    const answered = blocks.slice(0, results.length).map(({ tool_use_id: id }) => asString(id))
    if (called.toSorted().join() !== answered.toSorted().join()) {
      throw new Refusal('malformed', `messages.${at}: the results of all tool_use blocks must come first`)
    }
    const calls = blocks.some(({ type }) => type === 'tool_use')
    if (thinks && calls && blocks[0]?.type !== 'thinking') {
      throw new Refusal(
        'malformed',
        `messages.${at}: expected thinking, but found ${asString(blocks[0]?.type)}`,
      )
    }
    for (const { type, thinking, signature } of blocks)
      if (type === 'thinking') returned.require(asString(thinking), signature, `messages.${at}`)
    if (blocks.some(({ type, text }) => type === 'text' && asString(text) === '')) {
      throw new Refusal('malformed', `messages.${at}: text content blocks must be non-empty`)
    }
  }
}

function blocksOf(content: unknown): Fields[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content).map(asFields)
}

function textOf(content: unknown): string {
  return blocksOf(content)
    .map(({ text }) => asString(text))
    .join('\n')
}
