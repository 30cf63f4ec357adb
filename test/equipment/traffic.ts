import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Observation } from './auditor.ts'
import { type Behaviour, usageText } from './behaviour.ts'
import { type LiveResponse, open } from './client.ts'
import { priced } from './configuration.ts'
import type { Sent } from './deliveries.ts'
import { DIALECT_MODELS, dialectBehaviour, isDialectCall, oneDialectCall } from './dialect-traffic.ts'
import { isMediaPath, MEDIA_MODELS, mediaBehaviour, oneMediaCall } from './media-traffic.ts'
import type { ScriptedUpstream } from './scripted-upstream.ts'

/** A client's record of one call of the traffic. */
export interface ObservedCall extends Observation {
  /** The gateway's URL, and the key. */
  readonly url: string
  readonly key: string
  /** The number of words of the response that reached the client; each is one output token. */
  readonly words: number
  readonly sentMs: number
  readonly endedMs: number
  /** The error code of a refusal, and its `retry-after`. */
  readonly code: unknown
  readonly retryAfter: string | undefined
}

/** The clients and their targets. */
export interface TrafficPlan {
  /** The URLs of the gateways, and the number of clients of each. */
  readonly urls: readonly string[]
  readonly clientsEach: number
  /** Keys without `sk-`; each call uses one of them. */
  readonly keys: readonly string[]
  readonly random: () => number
  /** Minimum milliseconds between two words of a stream; 0 by default. */
  readonly minPaceMs?: number
  /** The records of the calls; the array grows. */
  readonly observations: ObservedCall[]
  /** Whether some calls are for the other endpoints; their models need channels. */
  readonly hasAllEndpoints?: boolean
  /** Whether the channel of the model speaks another protocol than chat. */
  readonly isConverted?: boolean
  /**
   * Whether the model only answers conversations, because its provider has its own protocol for embeddings.
   */
  readonly lacksEmbeddings?: boolean
  /** Called with each stream that has begun, before its client continues to read. */
  readonly onStream?: (live: LiveResponse) => Promise<void>
}

/** Clients that call in every way, each one call after the other. */
export interface Traffic {
  /** Settles when the last call has ended. */
  stop(): Promise<void>
}

/**
 * Maximum output tokens of a call, which the upstream respects, so that no response costs more than its hold.
 */
const MAXIMUM = 60
/** An upper bound of any hold: the output, and far more than the prompt. */
const MAX_HOLD = 4 * MAXIMUM + 1000

/** Milliseconds before a client that was not served tries again. */
const RETRY_DELAY_MS = 20

/** The maximum number of words after which an aborting client leaves. */
const MAX_WORDS_BEFORE_LEAVING = 30
/** The share of calls for images and audio, and the share in other dialects. */
const MEDIA_SHARE = 0.25
const DIALECT_SHARE = 0.25
/** The model that clients call. */
export const TRAFFIC_MODEL = 'm'
/** One token of output. */
const WORD = ' w'
/** The part of a frame that contains content. */
export const CONTENT = `"content":"${WORD}"`

/**
 * Makes a lane of the upstream answer as each call specifies. Returns the models with the prices that clients
 * compute with.
 */
export function serveTraffic(upstream: ScriptedUpstream): Record<string, unknown> {
  upstream.decide(TRAFFIC_MODEL, (request) => {
    if (isMediaPath(request.path)) return mediaBehaviour(request)
    return isDialectCall(request) ? dialectBehaviour(request) : behaviourOf(orderIn(request.text))
  })
  return { ...priced([TRAFFIC_MODEL]), ...MEDIA_MODELS, ...DIALECT_MODELS }
}

/** Starts the clients. */
export function startTraffic(plan: TrafficPlan): Traffic {
  const { urls, clientsEach, observations } = plan
  const over = new AbortController()
  const client = async (url: string): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (!over.signal.aborted) {
      const seen = await callFor(plan)(url, plan, agent)
      observations.push(seen)
      if (seen.status === 0 || seen.status === 503) await sleep(RETRY_DELAY_MS)
    }
    agent.destroy()
  }
  const clients = urls.flatMap((url) => Array.from({ length: clientsEach }, () => client(url)))
  return {
    async stop() {
      over.abort()
      await Promise.all(clients)
    },
  }
}

function callFor({ hasAllEndpoints, random }: TrafficPlan): typeof oneCall {
  const share = hasAllEndpoints === true ? random() : 1
  if (share < MEDIA_SHARE) return oneMediaCall
  return share < MEDIA_SHARE + DIALECT_SHARE ? oneDialectCall : oneCall
}

/** The upstream's work so far, without forgotten calls. */
export function sentBy(upstream: ScriptedUpstream): Sent[] {
  const counted = upstream
    .received(TRAFFIC_MODEL)
    .filter((request) => !isMediaPath(request.path) && !isDialectCall(request))
  return counted.map(({ text, eventsSent, completed }) => {
    const { call, stream, prompt, completion } = orderIn(text)
    return { call, cost: costOf(prompt, completed ? completion : stream ? eventsSent : 0) }
  })
}

async function oneCall(url: string, plan: TrafficPlan, agent: Agent): Promise<ObservedCall> {
  const { keys, random, onStream: witness, minPaceMs = 0 } = plan
  const stream = random() < 0.5
  const embeds = !stream && random() < 0.3 && !plan.lacksEmbeddings
  const abort = random() < 0.1
  const call = randomUUID()
  const order: Order = {
    call,
    stream,
    prompt: 1 + Math.floor(random() * 5),
    // A client that leaves in the middle needs a long response.
    completion: embeds ? 0 : abort ? MAXIMUM : 1 + Math.floor(random() * MAXIMUM),
    embeds,
    paceMs: Math.max(minPaceMs, abort || random() < 0.3 ? 3 : 0),
  }
  const key = keys[Math.floor(random() * keys.length)] ?? ''
  const text = JSON.stringify(order)
  // A channel of messages forwards the stop sequence, but not the user.
  const common = { model: TRAFFIC_MODEL, user: text, ...(plan.isConverted && !embeds && { stop: [text] }) }
  const request = embeds
    ? { ...common, input: 'hi' }
    : { ...common, messages: [{ role: 'user', content: 'hi' }], max_tokens: MAXIMUM, stream }
  const path = embeds ? '/v1/embeddings' : '/v1/chat/completions'
  const sentMs = performance.now()
  const sent = { call, url, key, sentMs }
  let live: LiveResponse
  try {
    live = await open(url, request, { key, agent, path })
  } catch {
    const nothing = {
      id: undefined,
      status: 0,
      sawContent: false,
      complete: false,
      quota: 0,
      words: 0,
      seenCost: 0,
    }
    return { ...sent, ...nothing, endedMs: performance.now(), code: undefined, retryAfter: undefined }
  }
  if (stream && live.status === 200) {
    await witness?.(live)
    if (abort) {
      await untilWords(live, 1 + Math.floor(random() * MAX_WORDS_BEFORE_LEAVING))
      live.abort()
    }
  }
  const answer = await live.end()
  const id = answer.headers['x-request-id']
  const complete = stream && answer.status === 200 ? answer.text.includes('data: [DONE]') : !answer.broken
  const words = wordsIn(answer.text)
  return {
    ...sent,
    id: typeof id === 'string' ? id : undefined,
    status: answer.status,
    sawContent: answer.status === 200 && /"content":"[^"]|"embedding":\[/.test(answer.text),
    words,
    seenCost: costOf(order.prompt, words),
    complete,
    // A call whose response arrived partially may cost any count by the gateway, but never more than its
    // hold.
    quota: complete ? costOf(order.prompt, order.completion) : MAX_HOLD,
    endedMs: performance.now(),
    code: answer.status >= 400 && !answer.broken ? answer.json().error.code : undefined,
    retryAfter: answer.headers['retry-after'],
  }
}

// Waits until the response has this number of words, or has ended.
async function untilWords(live: LiveResponse, count: number): Promise<void> {
  const end = { isHere: false }
  const note = (): void => void (end.isHere = true)
  live.until('data: [DONE]').then(note, note)
  while (!end.isHere && wordsIn(live.text()) < count) await sleep(2)
}

function wordsIn(text: string): number {
  return text.split(CONTENT).length - 1
}

/** Instructions to the upstream, in the call's `user` field. */
interface Order {
  readonly call: string
  readonly stream: boolean
  /** Whether this is a call for an embedding, which has no output. */
  readonly embeds: boolean
  readonly prompt: number
  readonly completion: number
  readonly paceMs: number
}

function orderIn(body: string): Order {
  return JSON.parse(JSON.parse(body).user as string) as Order
}

function costOf(prompt: number, completion: number): number {
  return prompt + 4 * completion
}

function behaviourOf({ stream, embeds, prompt, completion, paceMs }: Order): Behaviour {
  const usage = usageText(prompt, completion)
  if (embeds) {
    const body = `{"data":[{"index":0,"embedding":[0.5]}],"usage":${usage}}`
    return { kind: 'whole', body, after: sleep(paceMs * 5) }
  }
  return stream
    ? { kind: 'stream', events: completion, paceMs, usage, word: WORD }
    : { kind: 'whole', usage, after: sleep(paceMs * 5) }
}
