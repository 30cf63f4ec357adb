import { createHash } from 'node:crypto'
import { Agent } from 'node:http'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { MODEL } from '../conversion/fixture.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { retryWhileOverloaded, type Fixture } from '../fixtures/fixture.ts'
import { paceMs } from '../fixtures/pace.ts'
import type { Case } from './case.ts'

/** A path through the gateway. */
interface Route {
  readonly path: string
  readonly protocol: PairedProtocol
  readonly native: boolean
  /** Whether another path's code serves it, completely or partially. */
  readonly isSide: boolean
}

const PATHS = [
  ['/v1/chat/completions', 'chat', false],
  ['/v1/completions', 'chat', true],
  ['/v1/messages', 'messages', false],
  ['/v1/messages/count_tokens', 'messages', true],
] as const

const ROUTES: readonly Route[] = PATHS.flatMap(([path, protocol, isSide]) =>
  [true, false].map((native) => ({ path, protocol, native, isSide })),
)

const WORKERS = 8
const SIDE_SHARE = 4
const SLOW_MS = 1000
/** The time limit as a multiple of this machine's present pace. */
const SLOW_PACES = 50
const REFUSALS: readonly number[] = [400]
/** Internals that no response may show: stack traces, paths of this machine, addresses and keys. */
const INSIDE =
  /node_modules|node:internal|\n\s+at |\bat \w+[ .]\w* ?\(|\/src\/|\/tmp\/|\/home\/|127\.0\.0\.1|upstream-key-of|sk-ann\b/
const LONGEST_MESSAGE = 600

/** Lets both lanes answer any request. */
export function letAnswer(fixture: Fixture): void {
  const answers = (request: Received): Behaviour => {
    if (request.path.endsWith('/count_tokens')) return { kind: 'whole', body: '{"input_tokens":3}' }
    const blocks = [{ text: 'Hello there.' }]
    const isStream = (JSON.parse(request.text) as { stream?: unknown }).stream === true
    return isStream ? streamedMessage(blocks) : wholeMessage(blocks)
  }
  fixture.upstream.decide(MODEL.messages, answers)
  fixture.upstream.script(MODEL.chat)
}

/** One input on one path. */
interface Run {
  readonly each: Case
  readonly route: Route
}

/** Whether each case is sent both natively and converted over a path, or alternately. */
export type Ways = 'both' | 'in turn'

/** Sends each case over the paths of its dialects. Returns the faults of the responses. */
export async function replay(
  fixture: Fixture,
  cases: readonly Case[],
  ways: Ways = 'both',
): Promise<string[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: WORKERS })
  const runs = cases.flatMap((each, i) => routesOf(each, i, ways).map((route): Run => ({ each, route })))
  const slow: Run[] = []
  const faultsFound: string[] = []
  const lanes = { chat: new Lane(), messages: new Lane() }
  letAnswer(fixture)
  const take = async (run: Run, late: (ms: number) => void): Promise<void> => {
    const { each, route } = run
    const body = Buffer.from(each.body(modelOf(route), route.protocol) as string)
    const { answer, ms } = await ask(fixture, each, route, body, agent)
    const name = `${route.path} ${route.native ? '' : '(converted) '}${each.name}`
    // The pace is measured only when needed: measuring takes time itself.
    if (ms > SLOW_MS && ms > SLOW_PACES * Math.max(paceMs(), paceMs())) late(ms)
    if (typeof answer === 'string') faultsFound.push(`${name}: ${answer}`)
    else {
      faultsFound.push(...faults(each, route, answer).map((fault) => `${name}: ${fault}`))
      const lane = lanes[modelOf(route) === MODEL.chat ? 'chat' : 'messages']
      if (answer.status === 200 && !isLocal(route)) lane.answered(body, route.native && each.verbatim, name)
    }
  }
  const work = async (): Promise<void> => {
    for (let run = runs.pop(); run; run = runs.pop()) {
      const taken = run
      await take(taken, () => slow.push(taken))
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, work))
  // Repeats slow cases one by one, because on a busy machine any case may be slow once.
  for (const run of slow) {
    await take(run, () =>
      take(run, (ms) => faultsFound.push(`${run.each.name}: it took ${ms.toFixed(0)} ms`)),
    )
  }
  agent.destroy()
  for (const name of ['chat', 'messages'] as const)
    faultsFound.push(...lanes[name].compare(fixture.upstream.received(MODEL[name])))
  return faultsFound
}

/** The requests that an upstream must have received, judging by the responses. */
class Lane {
  #answers = 0
  readonly #verbatim: { readonly digest: string; readonly name: string }[] = []

  answered(body: Buffer, verbatim: boolean | undefined, name: string): void {
    this.#answers++
    if (verbatim) this.#verbatim.push({ digest: digestOf(body), name })
  }

  compare(received: readonly Received[]): string[] {
    const digests = new Set(received.map(({ body }) => digestOf(body)))
    const changed = this.#verbatim.filter(({ digest }) => !digests.has(digest))
    return [
      ...(received.length === this.#answers
        ? []
        : [`${this.#answers} answers, and ${received.length} requests upstream`]),
      ...changed.map(({ name }) => `${name}: the upstream got other bytes`),
    ]
  }
}

// Legacy completions are read like chat, and counting reads little, so that both get a sample of each family.
function routesOf({ protocols }: Case, place: number, ways: Ways): Route[] {
  return ROUTES.filter(({ protocol, isSide, native }) => {
    if (!protocols.includes(protocol) || (isSide && place % SIDE_SHARE !== 0)) return false
    const turn = isSide ? place / SIDE_SHARE : place
    return ways === 'both' || native === (turn % 2 === 0)
  })
}

function modelOf({ protocol, native }: Route): string {
  return native === (protocol === 'chat') ? MODEL.chat : MODEL.messages
}

/** Answered by the gateway itself, without any upstream. */
function isLocal({ path, native }: Route): boolean {
  return path.endsWith('/count_tokens') && !native
}

async function ask(
  fixture: Fixture,
  each: Case,
  { path }: Route,
  body: Buffer,
  agent: Agent,
): Promise<{ answer: FullResponse | string; ms: number }> {
  const options = { key: 'ann', path, agent, ...(each.headers && { headers: each.headers }) }
  const wire = each.wire?.(body) ?? body
  let ms = 0
  const once = async (): Promise<FullResponse> => {
    const began = performance.now()
    const answer = await call(fixture.gateway.url, wire, options)
    ms = performance.now() - began
    return answer
  }
  return { answer: await retryWhileOverloaded(once).catch((error: unknown) => String(error)), ms }
}

function faults(each: Case, route: Route, answer: FullResponse): string[] {
  const { status, text } = answer
  const faults: string[] = []
  if (INSIDE.test(text)) faults.push(`shows its inside: ${text.slice(0, 300)}`)
  const mayRefuse = each.statuses ?? REFUSALS
  const [accepts, refuses] = permitted(each, route)
  if (status === 200) {
    if (!accepts) faults.push('was accepted')
    return faults
  }
  if (!refuses || !mayRefuse.includes(status)) faults.push(`${status} ${text.slice(0, 300)}`)
  const wrong = wrongEnvelope(route, answer)
  if (wrong) faults.push(`${wrong}: ${text.slice(0, 300)}`)
  return faults
}

/**
 * Whether the case may be accepted, and whether it may be refused. Counting reads less of a request than
 * answering does.
 */
function permitted({ outcome }: Case, { path }: Route): [boolean, boolean] {
  const counts = path.endsWith('/count_tokens')
  switch (outcome) {
    case 'unreadable':
      return [false, true]
    case 'refused':
      return [counts, true]
    case 'forwarded':
      return [true, false]
    case 'either':
      return [true, true]
  }
}

function wrongEnvelope({ protocol }: Route, answer: FullResponse): string | undefined {
  let body: Record<string, unknown>
  try {
    body = JSON.parse(answer.text)
  } catch {
    return 'no JSON'
  }
  const error = (body['error'] ?? {}) as Record<string, unknown>
  const { type, message, code } = error
  if (typeof message !== 'string' || typeof type !== 'string') return 'no envelope'
  if (!message.endsWith(`(request id: ${String(answer.headers['x-request-id'])})`)) return 'without its id'
  if (message.length > LONGEST_MESSAGE) return `a message of ${message.length} characters`
  const known =
    protocol === 'messages'
      ? type === 'gateway_error' &&
        body['type'] === 'error' &&
        body['request_id'] === answer.headers['request-id']
      : typeof code === 'string'
  return known ? undefined : 'another envelope'
}

function digestOf(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('base64')
}
