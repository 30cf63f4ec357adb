import {
  convertErrorType,
  readUpstreamError,
  statusOfError,
  type ErrorContent,
  type UpstreamErrorText,
} from '@sluice/wire/upstream-error'
import { type GeminiErrorText, passedOnGeminiError, readGeminiError } from '@sluice/wire/gemini'
import { passedOnError } from '@sluice/wire/messages'
import type { ProtocolName } from '@sluice/wire/protocols'
import { type ErrorSentToClient, causeOfStatus, type FailureCause } from '../domain/failure-cause.ts'
import type { Channel } from '../domain/records/channel.ts'
import { asGatewayError, GatewayError } from '../errors.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { WireRequest } from '../upstreams/provider.ts'
import { redact } from '../upstreams/redact.ts'
import { forwardedRetryAfter, retryAfterMs } from '../upstreams/retry-after.ts'
import type { AttemptTarget } from './request-stages.ts'

/** What to try after a failed attempt; `same-again` after a reused connection turned out to be dead. */
export type NextStep = 'same-again' | 'next-key' | 'next-channel' | 'nowhere'

/** Maximum characters of an upstream's message that are forwarded. */
const MAX_MESSAGE_LENGTH = 4096

/** Why an attempt delivered nothing, and what may be tried next. */
export interface Failure {
  readonly next: NextStep
  /** What later calls avoid for a while: a refused or limited key, a missing model, or a failing channel. */
  readonly blames: 'key' | 'model' | 'channel' | 'none'
  /** Time in milliseconds for which the upstream asks not to be called. */
  readonly cooldownMs: number | undefined
  /** The error for the client if there is no further attempt. */
  readonly refusal: UpstreamRefusal | GatewayError | undefined
  /** Cause of the failure in a few fixed words, used as a label of metrics. */
  readonly cause: string
  /** Cause of the failure, as the usage log states it. */
  readonly failureCause: FailureCause
  /** The status of the upstream's response, if there was one. */
  readonly status?: number
  /** The upstream's message, redacted; it may repeat parts of the request. */
  readonly upstreamMessage?: string | undefined
  /**
   * Type and code of the error that ends a stream that has begun. If absent, the error is that of an upstream
   * that broke off.
   */
  readonly inStream?: { readonly type: string; readonly code: string }
  /** Whether no warning is logged, because the upstream's endpoint often responds like this. */
  readonly isExpected?: boolean
  /** Whether the attempt is charged like one that its client left, although nothing was delivered. */
  readonly isCharged?: boolean
}

/** An upstream's complete error body, for clients that speak the upstream's protocol. */
export interface ErrorEnvelope {
  readonly protocol: ProtocolName
  readonly body: Buffer
}

/** Facts of an upstream's refusal apart from its message. */
interface RefusalFacts {
  readonly status: number
  readonly type: string
  /** Whether the error type comes from the upstream, rather than from the status. */
  readonly hasOwnType: boolean
  readonly code: string
  /** Whether the error code comes from the upstream, rather than from the status. */
  readonly hasOwnCode: boolean
  /** The `retry-after` header as the upstream sent it. */
  readonly retryAfter: string | undefined
  /** The redacted body, otherwise unchanged, for clients that speak the protocol of the error. */
  readonly envelope: ErrorEnvelope | undefined
}

/** An upstream's refusal, forwarded with its own status and message. `docs/api.md: Errors`. */
export class UpstreamRefusal extends Error {
  readonly facts: RefusalFacts

  constructor(message: string, facts: RefusalFacts) {
    super(message)
    this.name = 'UpstreamRefusal'
    this.facts = facts
  }
}

interface StatusRule {
  readonly next: NextStep
  readonly blames: Failure['blames'] | 'key at its limit'
  /**
   * The error type for a status, if the upstream names none. A status for which no type is declared is not
   * forwarded.
   */
  readonly type?: string
  /** The error code for a status, if the upstream names none. */
  readonly code?: string
}

/** Meanings of upstreams' statuses. Any other status counts as a failing channel. */
const STATUSES = new Map<number, StatusRule>([
  [400, { next: 'nowhere', blames: 'none', type: 'invalid_request_error', code: 'bad_request' }],
  [401, { next: 'next-key', blames: 'key' }],
  [403, { next: 'next-key', blames: 'key' }],
  [404, { next: 'next-channel', blames: 'model', type: 'invalid_request_error', code: 'not_found' }],
  [407, { next: 'next-key', blames: 'key' }],
  [409, { next: 'nowhere', blames: 'none', type: 'invalid_request_error', code: 'conflict' }],
  [413, { next: 'nowhere', blames: 'none', type: 'request_too_large', code: 'request_too_large' }],
  [422, { next: 'nowhere', blames: 'none', type: 'invalid_request_error', code: 'unprocessable_entity' }],
  [
    429,
    { next: 'next-key', blames: 'key at its limit', type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  ],
  [500, { next: 'next-channel', blames: 'channel', type: 'api_error', code: 'server_error' }],
  [503, { next: 'next-channel', blames: 'channel', type: 'api_error', code: 'service_unavailable' }],
  [529, { next: 'next-channel', blames: 'channel', type: 'overloaded_error', code: 'overloaded' }],
])

const UNLISTED: StatusRule = { next: 'next-channel', blames: 'channel' }

/** Channel that responded, the dialect of the request to it, and the client's dialect. */
interface UpstreamContext {
  readonly channel: Channel
  readonly client: ProtocolName
  readonly request: Pick<WireRequest, 'protocol'>
}

/**
 * Returns the failure that corresponds to a response with an error status. `given` is the text of its
 * `retry-after` header, `givenMs` the milliseconds of its `retry-after-ms` header.
 */
export function failureOfStatus(
  context: UpstreamContext,
  sent: number,
  body: Buffer,
  given: string | undefined,
  givenMs?: number,
): Failure {
  const { channel } = context
  const error = readError(context, body)
  const status = channel.status_mapping.get(sent) ?? sent
  const rule = STATUSES.get(error.isBadKey ? 401 : status) ?? UNLISTED
  const retryAfter = given ?? (error.retryAfter === undefined ? undefined : String(error.retryAfter))
  const cooldownMs = givenMs ?? retryAfterMs(retryAfter, Date.now())
  return {
    next: rule.next,
    blames: blamed(rule, cooldownMs),
    cooldownMs,
    refusal: rule.type === undefined ? undefined : refusalOf(context, status, rule, body, error, retryAfter),
    cause: `status ${sent}`,
    failureCause: causeOfStatus(error.isBadKey ? 401 : status),
    status: sent,
    upstreamMessage: messageOf(channel, error) ?? textOf(channel, body),
  }
}

/** How the error bodies of a protocol are read. */
interface ErrorForm {
  readonly read: (body: Buffer) => Partial<GeminiErrorText> & UpstreamErrorText
  /** Returns the body that clients of the same protocol get, if it may be passed on to them. */
  readonly passedOn?: typeof passedOnError
}

const COMMON: ErrorForm = { read: readUpstreamError }
const ERRORS: Readonly<Record<ProtocolName, ErrorForm>> = {
  chat: COMMON,
  messages: { read: readUpstreamError, passedOn: passedOnError },
  responses: COMMON,
  // Google reports in the body what other providers report in a header or by the status.
  gemini: { read: readGeminiError, passedOn: passedOnGeminiError },
  converse: COMMON,
  rerank: COMMON,
}

function readError(
  { client, request: { protocol } }: UpstreamContext,
  body: Buffer,
): Partial<GeminiErrorText> & UpstreamErrorText {
  const error = ERRORS[protocol].read(body)
  const own = { ...error, type: typeOf(error) }
  return client === protocol ? own : { ...own, ...convertErrorType(own, client) }
}

// A limit without an end time is not a reason for a cooldown of the key.
function blamed({ blames }: StatusRule, cooldownMs: number | undefined): Failure['blames'] {
  if (blames !== 'key at its limit') return blames
  return cooldownMs === undefined ? 'none' : 'key'
}

function refusalOf(
  context: UpstreamContext,
  status: number,
  { type = '', code = '' }: StatusRule,
  body: Buffer,
  error: UpstreamErrorText,
  retryAfter: string | undefined,
): UpstreamRefusal {
  const { channel } = context
  const message = redact(error.message ?? `the upstream answered ${status}`, channel)
  return new UpstreamRefusal(message.slice(0, MAX_MESSAGE_LENGTH), {
    status,
    type: redact(error.type ?? type, channel),
    hasOwnType: error.type !== undefined,
    code: redact(error.code ?? code, channel),
    hasOwnCode: error.code !== undefined,
    retryAfter: forwardedRetryAfter(retryAfter),
    envelope: envelopeOf(context, body),
  })
}

function envelopeOf(
  { channel, request: { protocol } }: UpstreamContext,
  bytes: Buffer,
): ErrorEnvelope | undefined {
  const body = ERRORS[protocol].passedOn?.(bytes, (text) => redact(text, channel))
  return body && { protocol, body }
}

// Ignores values that are not an error type: an envelope's own `type: "error"`, a URL, a number.
function typeOf({ type }: UpstreamErrorText): string | undefined {
  return type !== undefined && type !== 'error' && /^[A-Za-z][\w.-]*$/.test(type) ? type : undefined
}

/** Maximum characters of an upstream's message that are read for the log. */
const MAX_WORDS_LENGTH = 16_384

function messageOf(channel: Channel, { message }: UpstreamErrorText): string | undefined {
  return message === undefined ? undefined : redact(message, channel).slice(0, MAX_WORDS_LENGTH)
}

/** The text of an error body without a message, with markup removed. */
function textOf(channel: Channel, body: Buffer): string | undefined {
  const text = body.toString('utf8', 0, MAX_WORDS_LENGTH)
  const plain = text
    .replace(/<(script|style)\b[^<]*(?:<(?!\/\1)[^<]*)*(?:<\/\1[^>]*>)?/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .trim()
  return plain === '' ? undefined : redact(plain, channel)
}

/**
 * The failure of a stream that begins with an error. It is handled like the corresponding status, but another
 * channel may be tried.
 */
export function errorInFirstEvent(target: AttemptTarget, data: string): Failure {
  const failure = failureOfStatus(target, statusOfError(data), Buffer.from(data), undefined)
  return {
    ...failure,
    next: failure.next === 'nowhere' ? 'next-channel' : failure.next,
    cause: 'error in the first event',
  }
}

/** An error event of a stream, for the client, with the upstream's message redacted. */
export function streamErrorText(context: UpstreamContext, data: string): ErrorContent {
  const { channel } = context
  const error = readError(context, Buffer.from(data))
  const message = redact(error.message ?? 'the upstream reported an error', channel)
  const status = statusOfError(data)
  return {
    type:
      error.type === undefined ? (STATUSES.get(status)?.type ?? 'api_error') : redact(error.type, channel),
    ...(error.code === undefined
      ? { code: 'upstream_error' }
      : { code: redact(error.code, channel), hasOwnCode: true }),
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    status,
  }
}

const TIMEOUTS: ReadonlySet<string> = new Set(['first byte time-out', 'idle time-out', 'total time-out'])

/** Causes of failures in which a response began, or was complete but unusable. */
const BROKEN: ReadonlySet<string> = new Set([
  'an event was too large',
  'answer too large',
  'connection closed',
  'no answer of its protocol',
  'stream ended early',
  'unexpected content type',
  'ECONNRESET',
  'EPIPE',
])

function causeWithoutResponse(cause: string): FailureCause {
  if (TIMEOUTS.has(cause)) return 'provider_timeout'
  return BROKEN.has(cause) ? 'provider_broken' : 'provider_unreachable'
}

/**
 * The failure of an attempt without a usable response: no connection, a timeout, an unreadable response.
 * `upstreamMessage` is redacted.
 */
export function failureWithoutResponse(cause: string, upstreamMessage?: string): Failure {
  return {
    failureCause: causeWithoutResponse(cause),
    next: 'next-channel',
    blames: 'channel',
    cooldownMs: undefined,
    refusal: undefined,
    cause,
    upstreamMessage,
  }
}

/** The failure of a response with status 200 that contains an error. */
export function errorWithStatus200(channel: Channel, body: Buffer): Failure {
  const failure = failureWithoutResponse('error with status 200', messageOf(channel, readUpstreamError(body)))
  return { ...failure, failureCause: 'provider_failed' }
}

/** The failure of a stream with an event that is too large to be read. */
export const UNREADABLE_STREAM = failureWithoutResponse('an event was too large')

/**
 * The failure of an upstream without an optional endpoint: its 404 does not mean that the channel or the
 * model is missing.
 */
export function missingEndpointFailure(failure: Failure): Failure {
  return { ...failure, next: 'nowhere', blames: 'none', isExpected: true }
}

/** The gateway is stopping. Clients can retry at another node or after the next start. */
export const GATEWAY_STOPPING: Failure = {
  next: 'nowhere',
  blames: 'none',
  cooldownMs: undefined,
  refusal: new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 }),
  cause: 'stopping',
  failureCause: 'gateway',
}

/** A user or an administrator stopped the call. `docs/api.md: Calls under way`. */
export const CALL_STOPPED: Failure = {
  next: 'nowhere',
  blames: 'none',
  failureCause: 'stopped',
  cooldownMs: undefined,
  refusal: new GatewayError('call_stopped', 'this call was stopped'),
  cause: 'stopped',
  inStream: { type: 'gateway_error', code: 'call_stopped' },
}

/** The same after the request was sent: the upstream may have been working on it, so it is charged. */
export const SENT_CALL_STOPPED: Failure = { ...CALL_STOPPED, isCharged: true }

/** Whether a user or an administrator caused this failure. */
export function isStoppedCall({ failureCause }: Failure): boolean {
  return failureCause === 'stopped'
}

/** Cause of a failure to write to the database; see `failureOfWrite`. */
export const WRITE_FAILURE_CAUSE = 'unwritten'

/** The failure to write something that must be durable before the client receives anything of the call. */
export function failureOfWrite(error: Error | undefined): Failure {
  const refusal = databaseUnavailableError(error)
  return {
    next: 'nowhere',
    blames: 'none',
    cooldownMs: undefined,
    refusal,
    cause: WRITE_FAILURE_CAUSE,
    failureCause: 'gateway',
  }
}

/** The client disconnected before an attempt began. */
export const CLIENT_DISCONNECTED: Failure = {
  next: 'nowhere',
  blames: 'none',
  cooldownMs: undefined,
  refusal: undefined,
  cause: 'caller gone',
  failureCause: 'gateway',
}

/**
 * The error for the client after every channel failed: the last one that can be forwarded. A 404 is forwarded
 * only if all channels returned it, because a channel that failed for another reason may have the model.
 */
export function finalError(failures: readonly Failure[]): Error {
  const others = failures.filter(({ blames }) => blames !== 'model')
  const relevant = others.length > 0 ? others : failures
  const refusal = relevant.findLast((failure) => failure.refusal)?.refusal
  return refusal ?? new GatewayError('upstream_error', 'no upstream could answer this request')
}

const RETRY_AFTER = { retryAfter: 5 }

/** Message for clients while the database refuses writes. */
export const STORAGE_UNAVAILABLE = 'the gateway cannot write its database at the moment; try again'

/** The error for clients while the database is unavailable or refuses writes. */
export function databaseUnavailableError(error: unknown): GatewayError {
  const isAway = error instanceof StoreUnavailable && !error.refusesWrites
  const sentence = 'the gateway cannot reach its database at the moment; try again'
  return isAway
    ? new GatewayError('overloaded', sentence, RETRY_AFTER)
    : new GatewayError('storage_unavailable', STORAGE_UNAVAILABLE, RETRY_AFTER)
}

/** The cause of a failure that the gateway reports with its own error, rather than an upstream's. */
function causeOfOwn({ code, kind }: GatewayError): FailureCause {
  if (code === 'call_stopped') return 'stopped'
  return kind.status < 500 ? causeOfStatus(kind.status) : 'gateway'
}

/**
 * The error that a client gets, with its cause. If no upstream's error is forwarded, the cause is that of the
 * last attempt.
 */
export function errorSentToClient(thrown: unknown, last: Failure | undefined): ErrorSentToClient {
  if (thrown instanceof UpstreamRefusal) {
    const { status, type, code } = thrown.facts
    return { cause: causeOfStatus(status), status, type, code, message: thrown.message }
  }
  const error = thrown instanceof StoreUnavailable ? databaseUnavailableError(thrown) : asGatewayError(thrown)
  const own = error ?? new GatewayError('internal_error', 'internal error')
  const { code, message, kind } = own
  const cause = (code === 'upstream_error' && last?.failureCause) || causeOfOwn(own)
  return { cause, status: kind.status, type: kind.type, code: kind.code ?? code, message }
}
