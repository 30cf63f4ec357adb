import { NO_USAGE } from '@sluice/wire/usage'
import type { AttemptEntry } from '../../src/domain/call-detail.ts'
import { causeOfStatus, type FailureCause } from '../../src/domain/failure-cause.ts'
import type { SettledCall } from '../../src/domain/records/usage.ts'
import { FAILING_CHANNEL, MODELS, type WorldKey, type WorldModel, type WorldUser } from './world-catalogue.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Days before now over which calls are spread. */
export const WORLD_DAYS = 90
/** Hours for which the failing channel has failed. */
const OUTAGE_HOURS = 30

/** A source of numbers from 0 (included) to 1 (excluded). */
export type Random = () => number

/** A key that exists now. */
export interface MadeKey {
  readonly id: number
  readonly user: WorldUser
  readonly userId: number
  readonly key: WorldKey
  readonly weight: number
}

/** A call without its price and its accounts. */
export type PlannedCall = Pick<
  SettledCall,
  | 'usage'
  | 'reason'
  | 'delivered'
  | 'cause'
  | 'error_status'
  | 'error'
  | 'duration_ms'
  | 'first_byte_ms'
  | 'stream'
  | 'channel'
  | 'attempts'
  | 'session'
  | 'cache_break'
  | 'cache_verdict'
> & { readonly tier: string }

/**
 * Start times of calls in ascending order: more by day than by night and at weekends, and more each week.
 */
export function startTimes(calls: number, nowMs: number, random: Random): number[] {
  const hours = WORLD_DAYS * 24
  const first = nowMs - WORLD_DAYS * DAY_MS
  let total = 0
  const until: number[] = []
  for (let hour = 0; hour < hours; hour += 1) {
    const date = new Date(first + hour * HOUR_MS)
    const isWeekend = date.getUTCDay() % 6 === 0
    const byDay = 0.25 + Math.exp(-(((date.getUTCHours() - 12.5) / 4.2) ** 2))
    total += byDay * (isWeekend ? 0.3 : 1) * (0.6 + (0.9 * hour) / hours) * (0.8 + 0.4 * random())
    until.push(total)
  }
  const times: number[] = []
  for (let n = 0, hour = 0; n < calls; n += 1) {
    const at = ((n + random()) / calls) * total
    while ((until.at(hour) ?? total) < at) hour += 1
    const before = hour === 0 ? 0 : (until.at(hour - 1) ?? 0)
    const after = until.at(hour) ?? total
    times.push(first + Math.floor((hour + (at - before) / (after - before)) * HOUR_MS))
  }
  return times
}

/** Chooses by weight. */
export function pick<Item extends { readonly weight: number }>(items: readonly Item[], random: Random): Item {
  let at = random() * items.reduce((sum, { weight }) => sum + weight, 0)
  return items.find(({ weight }) => (at -= weight) < 0) ?? items.at(-1)!
}

/** The models among `names`, or all of them. */
export function modelsOf(names: readonly string[] | undefined): readonly WorldModel[] {
  return names ? MODELS.filter(({ name }) => names.includes(name)) : MODELS
}

/** A number around `mean`, sometimes many times as large. */
function around(mean: number, random: Random): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.max(1, Math.round(mean * Math.exp(0.8 * normal - 0.32)))
}

interface Fault {
  readonly weight: number
  readonly status: number | null
  readonly attempt: string
  readonly type: string
  readonly code: string
  readonly words: string
}

/** Errors of providers. */
const FAULTS: readonly Fault[] = [
  {
    weight: 5,
    status: 429,
    attempt: 'status 429',
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    words: 'Rate limit reached for this organization on tokens per min. Please try again in 1.2s.',
  },
  {
    weight: 4,
    status: 503,
    attempt: 'status 503',
    type: 'api_error',
    code: 'overloaded',
    words: 'The server is overloaded, please try again later.',
  },
  {
    weight: 3,
    status: 400,
    attempt: 'status 400',
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    words: "This model's maximum context length is 128000 tokens.",
  },
  {
    weight: 2,
    status: null,
    attempt: 'first byte time-out',
    type: 'api_error',
    code: 'upstream_error',
    words: '',
  },
  {
    weight: 1,
    status: 404,
    attempt: 'status 404',
    type: 'invalid_request_error',
    code: 'model_not_found',
    words: 'The requested model does not exist.',
  },
  {
    weight: 1,
    status: 401,
    attempt: 'status 401',
    type: 'authentication_error',
    code: 'invalid_api_key',
    words: 'Incorrect API key provided.',
  },
]

const UNREACHABLE: Fault = {
  weight: 0,
  status: null,
  attempt: 'ECONNREFUSED',
  type: 'api_error',
  code: 'upstream_error',
  words: '',
}

/** Errors after which another channel is tried. */
const RETRIED = FAULTS.filter(({ status }) => status === 429 || status === 503)

/** Decides how a call of a model goes: what it uses, how long it takes, and whether it fails. */
export function planCall(model: WorldModel, startedMs: number, nowMs: number, random: Random): PlannedCall {
  const isOut = nowMs - startedMs < OUTAGE_HOURS * HOUR_MS && model.channels.includes(FAILING_CHANNEL)
  const chance = random()
  if (isOut || chance < 0.018) return failedCall(model, isOut ? UNREACHABLE : pick(FAULTS, random), random)
  const [first, second] = model.channels
  const isRescued = second !== undefined && random() < 0.05
  const prompt = around(model.prompt, random)
  const cacheRead = random() < 0.7 ? Math.floor(prompt * Math.min(0.95, model.cached * 2 * random())) : 0
  const isCut = chance < 0.021
  const hasLeft = !isCut && chance < 0.031
  const output =
    model.output === 0 ? 0 : Math.ceil(around(model.output, random) * (isCut || hasLeft ? 0.3 : 1))
  const lost = isRescued ? 180 + Math.floor(random() * 900) : 0
  const firstMs = lost + (model.firstMs === 0 ? 90 : around(model.firstMs, random))
  const durationMs = firstMs + Math.round((output / 100) * model.tokenMs * (0.7 + 0.6 * random()))
  const stream = model.output > 0 && random() < 0.75
  const used = {
    input: prompt - cacheRead,
    cacheRead,
    output,
    reasoning: Math.floor(output * model.reasoning),
  }
  const fault = pick(RETRIED, random)
  const attempts = isRescued
    ? [attempt(first, 0, lost, fault), { ...attempt(second, lost, durationMs - lost), status: 200 }]
    : undefined
  return {
    usage: { ...NO_USAGE, ...used },
    tier: (random() < 0.2 && model.tiers?.at(Math.floor(random() * model.tiers.length))) || 'standard',
    reason: isCut ? 'cut' : hasLeft ? 'client_gone' : chance < 0.04 ? 'estimated' : 'complete',
    delivered: true,
    ...(isCut && {
      cause: 'provider_broken' as const,
      error_status: null,
      error: storedError({ type: 'api_error', code: 'upstream_error', words: '' }),
    }),
    duration_ms: durationMs,
    first_byte_ms: stream ? firstMs : durationMs,
    stream,
    channel: isRescued ? second : first,
    attempts: attempts && JSON.stringify(attempts),
  }
}

function failedCall({ channels, output }: WorldModel, fault: Fault, random: Random): PlannedCall {
  const durationMs = fault.attempt.includes('time-out') ? 120_000 : 20 + Math.floor(random() * 600)
  const cause: FailureCause =
    fault.status !== null
      ? causeOfStatus(fault.status)
      : fault === UNREACHABLE
        ? 'provider_unreachable'
        : 'provider_timeout'
  return {
    usage: NO_USAGE,
    tier: '',
    reason: 'failed',
    delivered: false,
    cause,
    error_status: fault.status ?? 500,
    error: storedError(fault),
    duration_ms: durationMs,
    first_byte_ms: null,
    stream: output > 0 && random() < 0.75,
    channel: channels[0],
    attempts: JSON.stringify([attempt(channels[0], 0, durationMs, fault)]),
  }
}

function attempt(channel: string, startedMs: number, durationMs: number, fault?: Fault): AttemptEntry {
  return {
    channel,
    key_index: 0,
    started_ms: startedMs,
    duration_ms: durationMs,
    status: fault?.status ?? null,
    cause: fault?.attempt ?? null,
    ...(fault && fault.words !== '' && { message: fault.words }),
  }
}

function storedError({ type, code, words }: Pick<Fault, 'type' | 'code' | 'words'>): string {
  return JSON.stringify({ type, code, message: words || 'no upstream could answer this request' })
}

/** A UUIDv7 of this time. */
export function callId(atMs: number, random: Random): string {
  const hex = (digits: number): string =>
    Math.floor(random() * 16 ** digits)
      .toString(16)
      .padStart(digits, '0')
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`
}
