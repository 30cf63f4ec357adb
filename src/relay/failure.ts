import type { Channel } from '../domain/channel.ts'
import { GatewayError } from '../errors.ts'
import { passedOnError } from '../protocols/messages/index.ts'
import { readUpstreamError, statusOfError, type UpstreamErrorText } from '../protocols/upstream-error.ts'
import { redact } from '../upstreams/redact.ts'
import { forwardedRetryAfter, retryAfterMs } from '../upstreams/retry-after.ts'

/**
 * Where a call may go after an attempt that delivered nothing; `same-again` where a kept connection turned
 * out dead.
 */
export type NextStep = 'same-again' | 'next-key' | 'next-channel' | 'nowhere'

/** The longest message of an upstream's that is passed on. */
const MAX_MESSAGE_LENGTH = 4096

/** An attempt that delivered nothing. */
export interface Failure {
  readonly next: NextStep
  /**
   * The part to leave alone for a while: the key was refused or is at its limit, the channel does not have
   * the model, or is out of order.
   */
  readonly blames: 'key' | 'model' | 'channel' | 'nobody'
  /** For how long the upstream asks for it, in milliseconds. */
  readonly cooldownMs: number | undefined
  /**
   * What the caller is to be told, if this is the last word: an upstream's refusal, or a reason of our own.
   */
  readonly refusal: UpstreamRefusal | GatewayError | undefined
  /** The cause in a few words, without anybody's text: a label of the metrics. */
  readonly cause: string
  /** The status of the upstream's answer, if one came. */
  readonly status?: number
  /**
   * The upstream's own message for the log, without our keys and its address; it may repeat what it was sent.
   */
  readonly upstreamMessage?: string | undefined
  /** It is an answer like any other: nobody is to be warned of it. */
  readonly isExpected?: boolean
}

/** An upstream's refusal, passed on with its own status and message. `docs/api.md: Errors`. */
export class UpstreamRefusal extends Error {
  readonly status: number
  readonly type: string
  /** The type is the upstream's own, not that of the status. */
  readonly hasOwnType: boolean
  readonly code: string
  /** As the upstream sent it. */
  readonly retryAfter: string | undefined
  /**
   * The body as it came, but for what had to be redacted, where it is an envelope that callers of messages
   * know.
   */
  readonly envelope: Buffer | undefined

  constructor(
    status: number,
    type: string,
    hasOwnType: boolean,
    code: string,
    message: string,
    retryAfter: string | undefined,
    envelope?: Buffer,
  ) {
    super(message)
    this.name = 'UpstreamRefusal'
    this.status = status
    this.type = type
    this.hasOwnType = hasOwnType
    this.code = code
    this.retryAfter = retryAfter
    this.envelope = envelope
  }
}

interface StatusRule {
  readonly next: NextStep
  readonly blames: Failure['blames'] | 'key at its limit'
  /**
   * The type under which the status is passed on where the upstream names none; without one it is not passed
   * on.
   */
  readonly type?: string
  /** The code, where the upstream names none. */
  readonly code?: string
}

/** What an upstream's status means for the call. Any other is taken for a channel that is out of order. */
const STATUSES = new Map<number, StatusRule>([
  [400, { next: 'nowhere', blames: 'nobody', type: 'invalid_request_error', code: 'bad_request' }],
  [401, { next: 'next-key', blames: 'key' }],
  [403, { next: 'next-key', blames: 'key' }],
  [404, { next: 'next-channel', blames: 'model', type: 'invalid_request_error', code: 'not_found' }],
  [407, { next: 'next-key', blames: 'key' }],
  [409, { next: 'nowhere', blames: 'nobody', type: 'invalid_request_error', code: 'conflict' }],
  [413, { next: 'nowhere', blames: 'nobody', type: 'request_too_large', code: 'request_too_large' }],
  [422, { next: 'nowhere', blames: 'nobody', type: 'invalid_request_error', code: 'unprocessable_entity' }],
  [
    429,
    { next: 'next-key', blames: 'key at its limit', type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  ],
  [500, { next: 'next-channel', blames: 'channel', type: 'api_error', code: 'server_error' }],
  [503, { next: 'next-channel', blames: 'channel', type: 'api_error', code: 'service_unavailable' }],
  [529, { next: 'next-channel', blames: 'channel', type: 'overloaded_error', code: 'overloaded' }],
])

const UNLISTED: StatusRule = { next: 'next-channel', blames: 'channel' }

/** What an answer with another status than success means. */
export function failureOfStatus(
  channel: Channel,
  status: number,
  body: Buffer,
  retryAfter: string | undefined,
): Failure {
  const rule = STATUSES.get(status) ?? UNLISTED
  const restMs = retryAfterMs(retryAfter, Date.now())
  const told = readUpstreamError(body)
  return {
    next: rule.next,
    blames: blamed(rule, restMs),
    cooldownMs: restMs,
    refusal: rule.type === undefined ? undefined : refusalOf(channel, status, rule, body, told, retryAfter),
    cause: `status ${status}`,
    status,
    upstreamMessage: messageOf(channel, told),
  }
}

// A limit that does not say when it is over is no reason to do without a key.
function blamed({ blames }: StatusRule, restMs: number | undefined): Failure['blames'] {
  if (blames !== 'key at its limit') return blames
  return restMs === undefined ? 'nobody' : 'key'
}

function refusalOf(
  channel: Channel,
  status: number,
  { type = '', code = '' }: StatusRule,
  body: Buffer,
  told: UpstreamErrorText,
  retryAfter: string | undefined,
): UpstreamRefusal {
  const ownType = typeOf(told)
  const message = redact(told.message ?? `the upstream answered ${status}`, channel)
  return new UpstreamRefusal(
    status,
    redact(ownType ?? type, channel),
    ownType !== undefined,
    redact(told.code ?? code, channel),
    message.slice(0, MAX_MESSAGE_LENGTH),
    forwardedRetryAfter(retryAfter),
    channel.protocol === 'messages' ? passedOnError(body, (text) => redact(text, channel)) : undefined,
  )
}

// An envelope's own `type: "error"`, a URL and a number name no type of error.
function typeOf({ type }: UpstreamErrorText): string | undefined {
  return type !== undefined && type !== 'error' && /^[A-Za-z][\w.-]*$/.test(type) ? type : undefined
}

function messageOf(channel: Channel, { message }: UpstreamErrorText): string | undefined {
  return message === undefined ? undefined : redact(message, channel).slice(0, MAX_MESSAGE_LENGTH)
}

/**
 * An error that a stream began with: like an answer with its status, but that another channel may have an
 * answer.
 */
export function errorInFirstEvent(channel: Channel, data: string): Failure {
  const failure = failureOfStatus(channel, statusOfError(data), Buffer.from(data), undefined)
  return {
    ...failure,
    next: failure.next === 'nowhere' ? 'next-channel' : failure.next,
    cause: 'error in the first event',
  }
}

/**
 * What a stream's error event may say to the caller: the upstream's own words, but for our keys and its
 * address.
 */
export function streamErrorText(
  channel: Channel,
  data: string,
): { type?: string; code?: string; message: string } {
  const said = readUpstreamError(Buffer.from(data))
  const message = redact(said.message ?? 'the upstream reported an error', channel)
  return {
    ...(said.type === undefined ? {} : { type: redact(said.type, channel) }),
    ...(said.code === undefined ? {} : { code: redact(said.code, channel) }),
    message: message.slice(0, MAX_MESSAGE_LENGTH),
  }
}

/**
 * No answer that could be used: no connection, a time-out, rubbish. `said`: what the upstream told instead,
 * redacted.
 */
export function noUsableResponse(cause: string, said?: string): Failure {
  return {
    next: 'next-channel',
    blames: 'channel',
    cooldownMs: undefined,
    refusal: undefined,
    cause,
    upstreamMessage: said,
  }
}

/** An error that came in place of an answer, with the status of a success. */
export function errorWithStatus200(channel: Channel, body: Buffer): Failure {
  return noUsableResponse('error with status 200', messageOf(channel, readUpstreamError(body)))
}

/**
 * A stream could not be read on: an event was too large, or found no room, which is no fault of the
 * channel's.
 */
export function unreadableStream(error: unknown): Failure {
  const refusal = error instanceof GatewayError && error.code === 'overloaded' ? error : undefined
  if (!refusal) return noUsableResponse('an event was too large')
  return { next: 'nowhere', blames: 'nobody', cooldownMs: undefined, refusal, cause: 'no room for an event' }
}

/** The gateway stops: whoever asks again will be answered by another run of it. */
export const STOPPING: Failure = {
  next: 'nowhere',
  blames: 'nobody',
  cooldownMs: undefined,
  refusal: new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 }),
  cause: 'stopping',
}

/** Nobody is there to be answered any more. */
export const CLIENT_GONE: Failure = {
  next: 'nowhere',
  blames: 'nobody',
  cooldownMs: undefined,
  refusal: undefined,
  cause: 'caller gone',
}

/**
 * The error for the client when every channel failed: what was said last, or that no answer could be had. A
 * 404 is told only where all of them said so: a channel that failed in another way may have the model.
 */
export function finalError(failures: readonly Failure[]): Error {
  const others = failures.filter(({ blames }) => blames !== 'model')
  const told = others.length > 0 ? others : failures
  const refusal = told.findLast((failure) => failure.refusal)?.refusal
  return refusal ?? new GatewayError('upstream_error', 'no upstream could answer this request')
}
