import { randomUUID } from 'node:crypto'
import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Behaviour, usageText } from './behaviour.ts'
import { type LiveResponse, open } from './client.ts'
import { channel, PLAIN_PRICE } from './configuration.ts'
import { geminiUsage, streamedGemini, wholeGemini } from './gemini-behaviour.ts'
import { json } from './media-fixture.ts'
import { jinaAnswer, scored } from './rerank-behaviour.ts'
import { streamedMessage, wholeMessage } from './messages-behaviour.ts'
import { responsesUsage, streamedResponse, wholeResponse } from './responses-behaviour.ts'
import type { Received, ScriptedUpstream } from './scripted-upstream.ts'
import type { ObservedCall, TrafficPlan } from './traffic.ts'

/** Tokens of every response and their cost; a moderation has a price per call. */
const INPUT = 3
const OUTPUT = 2
const COST = INPUT + 4 * OUTPUT
const EMBEDDED_COST = INPUT
const RANKED_COST = 7
const MODERATION_COST = 100
/** An upper bound of any hold, in quota units. */
const MAX_HOLD = 100_000
/** Milliseconds before each response or between its events, so that kills happen in the middle. */
const PACE_MS = 3

const TEXT = 'hello there'
/** Vectors that are larger than what the gateway buffers to be able to try another channel. */
const VECTORS = JSON.stringify({
  data: Array.from({ length: 24 }, (_, index) => ({
    index,
    embedding: Array.from({ length: 3_000 }, () => 0.123456789012345),
  })),
  usage: { prompt_tokens: INPUT, total_tokens: INPUT },
})

/** The models of the traffic and their prices. */
export const DIALECT_MODELS: Readonly<Record<string, object>> = {
  texts: { price: PLAIN_PRICE },
  claude: { price: PLAIN_PRICE },
  answers: { price: PLAIN_PRICE },
  gem: { price: PLAIN_PRICE },
  vectors: { price: PLAIN_PRICE },
  judge: { price: { request: 0.0002 } },
  ranker: { price: PLAIN_PRICE },
}

/** Channels of these models, one for each protocol, all leading to one lane of the upstream. */
export function dialectChannels(upstream: ScriptedUpstream, lane: string): Record<string, unknown>[] {
  const url = upstream.baseUrl(lane)
  return [
    channel('of-chat', url, { models: ['texts', 'vectors', 'judge'] }),
    channel('of-messages', url, { models: ['claude'], protocol: 'messages' }),
    channel('of-responses', url, { models: ['answers'], protocol: 'responses' }),
    channel('of-gemini', url, { models: ['gem'], protocol: 'gemini' }),
    channel('of-rerank', url, { models: ['ranker'], protocol: 'rerank' }),
  ]
}

/** Whether a request is for one of these models. */
export function isDialectCall({ path, text }: Pick<Received, 'path' | 'text'>): boolean {
  return (
    /^\/v1\/(?:completions|moderations|messages|responses|rerank|models)\b/.test(path) ||
    text.includes('"model":"vectors"')
  )
}

/** The upstream's response to a call. */
export function dialectBehaviour({ path, text }: Pick<Received, 'path' | 'text'>): Behaviour {
  const stream = text.includes('"stream":true') || path.includes(':streamGenerateContent')
  const behaviour = responseTo(path, stream)
  return behaviour.kind === 'stream'
    ? { ...behaviour, paceMs: PACE_MS }
    : { ...behaviour, after: sleep(PACE_MS) }
}

function responseTo(path: string, stream: boolean): Behaviour {
  if (path.startsWith('/v1/completions')) return stream ? streamedCompletion() : wholeCompletion()
  if (path.startsWith('/v1/moderations')) return json({ results: [{ flagged: false }] })
  if (path.startsWith('/v1/rerank')) return jinaAnswer(scored(0.1, 0.9), RANKED_COST)
  if (path.startsWith('/v1/embeddings')) return { kind: 'whole', body: VECTORS }
  if (path.startsWith('/v1/messages')) {
    const counts = { input_tokens: INPUT, output_tokens: OUTPUT }
    return (stream ? streamedMessage : wholeMessage)([{ text: TEXT }], { counts })
  }
  if (path.startsWith('/v1/responses'))
    return (stream ? streamedResponse : wholeResponse)({ text: TEXT, usage: responsesUsage(INPUT, OUTPUT) })
  if (path.includes('mbedContent'))
    return json({ embedding: { values: [0.5] }, usageMetadata: { promptTokenCount: INPUT } })
  return (stream ? streamedGemini : wholeGemini)({ text: TEXT, usage: geminiUsage(INPUT, OUTPUT) })
}

const completion = { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'x' }

const choice = (text: string, reason: string | null): object => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason: reason,
})

function wholeCompletion(): Behaviour {
  const usage = JSON.parse(usageText(INPUT, OUTPUT)) as object
  return json({ ...completion, choices: [choice(TEXT, 'stop')], usage })
}

function streamedCompletion(): Behaviour {
  const usage = JSON.parse(usageText(INPUT, OUTPUT)) as object
  const chunks = [
    { choices: [choice('hello', null)] },
    { choices: [choice(' there', 'stop')] },
    { choices: [], usage },
  ]
  const frames = chunks.map((chunk) => `data: ${JSON.stringify({ ...completion, ...chunk })}\n\n`)
  return { kind: 'stream', frames: [...frames, 'data: [DONE]\n\n'], ending: 'no done' }
}

/** One call, its cost where the client sees it complete, and the marker of a stream's end. */
interface DialectOrder {
  readonly path: string
  readonly body: object
  readonly cost: number
  readonly end?: string
}

const MESSAGES = [{ role: 'user', content: 'hi' }]
const CONTENTS = [{ role: 'user', parts: [{ text: 'hi' }] }]
const MAXIMUM = { max_tokens: 20 }

const ORDERS: readonly ((stream: boolean) => DialectOrder)[] = [
  (stream) => ({
    path: '/v1/completions',
    body: { model: 'texts', prompt: 'hi', stream, ...MAXIMUM },
    cost: COST,
    end: '[DONE]',
  }),
  (stream) => ({
    path: '/v1/completions',
    body: { model: 'claude', prompt: 'hi', stream, ...MAXIMUM },
    cost: COST,
    end: '[DONE]',
  }),
  (stream) => ({
    path: '/v1/messages',
    body: { model: 'claude', messages: MESSAGES, stream, ...MAXIMUM },
    cost: COST,
    end: 'message_stop',
  }),
  (stream) => ({
    path: '/v1/responses',
    body: { model: 'answers', input: 'hi', stream, max_output_tokens: 20 },
    cost: COST,
    end: 'event: response.completed',
  }),
  (stream) => ({
    path: `/v1beta/models/gem:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: CONTENTS, generationConfig: { maxOutputTokens: 20 } },
    cost: COST,
    end: '"finishReason":"STOP"',
  }),
  () => ({ path: '/v1beta/models/gem:embedContent', body: { content: CONTENTS[0] }, cost: EMBEDDED_COST }),
  () => ({ path: '/v1/embeddings', body: { model: 'vectors', input: 'hi' }, cost: EMBEDDED_COST }),
  () => ({
    path: '/v1/rerank',
    body: { model: 'ranker', query: 'which?', documents: ['zero', 'one'] },
    cost: RANKED_COST,
  }),
  () => ({ path: '/v1/moderations', body: { model: 'judge', input: 'hi' }, cost: MODERATION_COST }),
]

/** Makes a call in one of the dialects. */
export async function oneDialectCall(
  url: string,
  { keys, random }: Pick<TrafficPlan, 'keys' | 'random'>,
  agent: Agent,
): Promise<ObservedCall> {
  const key = keys[Math.floor(random() * keys.length)] ?? ''
  const stream = random() < 0.5
  const order = ORDERS[Math.floor(random() * ORDERS.length)] as (typeof ORDERS)[number]
  const { path, body, cost, end } = order(stream)
  const sent = { call: randomUUID(), url, key, sentMs: performance.now(), words: 0, seenCost: 0 }
  let live: LiveResponse
  try {
    live = await open(url, body, { path, key, agent })
  } catch {
    const nothing = { id: undefined, status: 0, sawContent: false, complete: false, quota: 0 }
    return { ...sent, ...nothing, endedMs: performance.now(), code: undefined, retryAfter: undefined }
  }
  const answer = await live.end()
  const id = answer.headers['x-request-id']
  const isStream = end !== undefined && stream
  const complete = !answer.broken && (answer.status !== 200 || !isStream || answer.text.includes(end))
  return {
    ...sent,
    id: typeof id === 'string' ? id : undefined,
    status: answer.status,
    sawContent: answer.status === 200 && /hello|flagged|0\.\d/.test(answer.text),
    complete,
    quota: complete ? cost : MAX_HOLD,
    endedMs: performance.now(),
    code: answer.status >= 400 && !answer.broken ? answer.json().error.code : undefined,
    retryAfter: answer.headers['retry-after'],
  }
}
