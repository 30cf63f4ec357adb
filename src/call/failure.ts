import type { AnswerError } from '@sluice/wire/answer-error'
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
import {
  type ErrorSentToClient,
  causeOfStatus,
  causeWithoutResponse,
  type FailureCause,
} from '../domain/failure-cause.ts'
import type { Channel } from '../domain/records/channel.ts'
import { asGatewayError, GatewayError } from '../errors.ts'
import { rateLimitError } from '../limits/rate-limiter.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { accountFaultOf } from '../upstreams/account-faults.ts'
import type { WireRequest } from '../upstreams/provider.ts'
import { databaseUnavailableError } from './storage-errors.ts'
import { plainText } from './plain-text.ts'
import { redact } from '../upstreams/redact.ts'
import { forwardedRetryAfter, type PausingHead, requestedPauseMs } from '../upstreams/retry-after.ts'
import { exhaustedLimitMs } from '../upstreams/stated-limits.ts'
import { type FailureKind, KIND_OF_STATUS, ruleOf } from './failure-table.ts'
import type { ComparedRequestTexts } from './provider-messages.ts'
import { isFilteredRequest, isModeratedRequest, isTooLongRequest, tooLongError } from './refused-requests.ts'
import type { AttemptTarget, ErrorTexts } from './request-stages.ts'

/** Maximum characters of an upstream's message that are forwarded. */
const MAX_MESSAGE_LENGTH = 4096

/** Why an attempt delivered nothing. What follows from it is in the row of its kind in `FAILURES`. */
export interface Failure {
  readonly kind: FailureKind
  /**
   * Milliseconds for which the upstream asks not to be called: by a header, in the error, or as the reset of a
   * limit that is used up.
   */
  readonly restMs?: number | undefined
  /** The error for the client if there is no further attempt. */
  readonly refusal?: UpstreamRefusal | GatewayError | undefined
  /** Cause of the failure in a few fixed words, used as a label of metrics. */
  readonly cause: string
  /** Cause of the failure, as the usage log states it. */
  readonly failureCause: FailureCause
  /** The status of the upstream's response, if there was one. */
  readonly status?: number
  /** The upstream's code of the error, or its type if it has no code. */
  readonly code?: string | undefined
  /** The upstream's message, redacted; it may repeat parts of the request. */
  readonly upstreamMessage?: string | undefined
  /**
   * Type and code of the error that ends a stream that has begun. If absent, the error is that of an upstream
   * that broke off.
   */
  readonly inStream?: { readonly type: string; readonly code: string }
  /** Whether the attempt is charged like one that its client left, although nothing was delivered. */
  readonly isCharged?: boolean
  /** Set if the answer reports usage, which the provider charges for, but was not delivered. */
  readonly hasUsage?: boolean
  /**
   * Sends the answer as the upstream wrote it, if no other attempt follows. Set for complete answers that are not
   * converted.
   */
  readonly passOn?: () => Promise<void>
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
  /** What the log and the usage log say instead of what the client reads; absent if it is the same. */
  readonly recorded?: Pick<ErrorSentToClient, 'type' | 'code' | 'message'>
  /** The redacted body, otherwise unchanged, for clients that speak the protocol of the error. */
  readonly envelope: ErrorEnvelope | undefined
  /** Whether an identical request would fail in the same way. */
  readonly recurs: boolean
}

/** An upstream's refusal, forwarded with its own status and message. `docs/api.md: Errors`. */
export class UpstreamRefusal extends Error {
  readonly facts: RefusalFacts

  constructor(message: string, facts: RefusalFacts) {
    super(message)
    this.name = 'UpstreamRefusal'
    this.facts = facts
  }

  /**
   * The same refusal with a `retry-after` of this many milliseconds, rounded up to seconds. Without a time, it
   * stays as the upstream sent it.
   */
  withRetryAfter(ms: number | undefined): UpstreamRefusal {
    if (ms === undefined) return this
    const retryAfter = String(Math.max(1, Math.ceil(ms / 1000)))
    return new UpstreamRefusal(this.message, { ...this.facts, retryAfter })
  }
}

/** Type and code of an upstream's error that names none, for the statuses that are forwarded. */
const FORWARDED: ReadonlyMap<number, { readonly type: string; readonly code: string }> = new Map([
  [400, { type: 'invalid_request_error', code: 'bad_request' }],
  [403, { type: 'permission_error', code: 'content_filter' }],
  [405, { type: 'invalid_request_error', code: 'method_not_allowed' }],
  [404, { type: 'invalid_request_error', code: 'not_found' }],
  [409, { type: 'invalid_request_error', code: 'conflict' }],
  [413, { type: 'request_too_large', code: 'request_too_large' }],
  [422, { type: 'invalid_request_error', code: 'unprocessable_entity' }],
  [429, { type: 'rate_limit_error', code: 'rate_limit_exceeded' }],
  [451, { type: 'invalid_request_error', code: 'unavailable_for_legal_reasons' }],
  [500, { type: 'api_error', code: 'server_error' }],
  [501, { type: 'api_error', code: 'not_implemented' }],
  [503, { type: 'api_error', code: 'service_unavailable' }],
  [529, { type: 'overloaded_error', code: 'overloaded' }],
])

/**
 * Statuses after which the same call may succeed later, so that `retry-after` is forwarded. Waiting does not
 * change a request that is refused for itself.
 */
const PASSING: ReadonlySet<number> = new Set([409, 429, 500, 503, 529])

/** Channel that responded, the dialect of the request to it, and the client's dialect. */
interface UpstreamContext {
  readonly channel: Channel
  readonly client: ProtocolName
  readonly request: Pick<WireRequest, 'protocol'>
  /** Texts of the client's request; absent if it contains none. */
  readonly words?: ComparedRequestTexts
  /** The features of the call, which may change what errors say; absent if there is no call. */
  readonly features?: Pick<ErrorTexts, 'errorText'> | undefined
}

/** A text of an upstream's error as its client may read it, or as it may be recorded. */
function wordsFor({ channel, features }: UpstreamContext, text: string, isRecorded = false): string {
  const redacted = redact(text, channel)
  return features ? features.errorText(redacted, isRecorded) : redacted
}

/** An upstream's error, as the response with an error status or the error inside another response states it. */
export interface ErrorAnswer {
  readonly status: number
  readonly body: Buffer
  /** The head of the response; absent for an error inside a response. */
  readonly head?: PausingHead
}

/** The failure that an upstream's error means, by the table of `docs/operations.md: Decisions after a failure`. */
export function failureOfAnswer(
  context: UpstreamContext,
  { status: sent, body, head }: ErrorAnswer,
): Failure {
  const { channel } = context
  const error = readError(context, body)
  const status = channel.status_mapping.get(sent) ?? sent
  const kind = kindOf(context, status, error)
  const retryAfter =
    head?.retryAfter ?? (error.retryAfter === undefined ? undefined : String(error.retryAfter))
  const nowMs = Date.now()
  const pauseMs = requestedPauseMs({ retryAfter, headers: head?.headers ?? {} }, nowMs)
  return {
    kind,
    restMs: pauseMs ?? (kind === 'limited' && head ? exhaustedLimitMs(head, nowMs) : undefined),
    refusal: refusalOf(context, { kind, status, body, error, retryAfter }),
    cause: `status ${sent}`,
    failureCause: CAUSE_OF_KIND[kind] ?? causeOfStatus(status),
    status: sent,
    code: error.code ?? error.type,
    upstreamMessage: recordedWords(context, error, body),
  }
}

/** Causes in the usage log of failures that are not told by the status. */
const CAUSE_OF_KIND: Partial<Record<FailureKind, FailureCause>> = {
  key_refused: 'provider_key',
  account_fault: 'provider_key',
  account_lacks_model: 'provider_key',
  limited: 'provider_limited',
}

/** What an upstream's error means. Codes and types come before the status, and the status before words. */
function kindOf({ channel, words }: UpstreamContext, status: number, error: UpstreamErrorText): FailureKind {
  const isInRequest = (text: string): boolean => words?.mayContain(text) ?? false
  if (isModeratedRequest(status, error, isInRequest)) return 'filtered'
  const fault = accountFaultOf(channel, { ...error, status }, isInRequest)
  if (fault) return fault
  const kind = KIND_OF_STATUS.get(status) ?? 'other_status'
  if (kind !== 'request_refused') return kind
  if (isTooLongRequest(error, isInRequest)) return 'too_long'
  return isFilteredRequest(error) ? 'filtered' : kind
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

/** Statuses that clients get in place of those that mean an account, if a request was refused for its content. */
const MODERATED_STATUS = 403

/** The status with which a failure is forwarded. */
function forwardedStatus(kind: FailureKind, status: number): number {
  if (kind === 'too_long') return 400
  if (kind === 'limited') return 429
  return kind === 'filtered' && KIND_OF_STATUS.get(status) !== 'request_refused' ? MODERATED_STATUS : status
}

function refusalOf(
  context: UpstreamContext,
  {
    kind,
    status: received,
    body,
    error,
    retryAfter,
  }: {
    readonly kind: FailureKind
    readonly status: number
    readonly body: Buffer
    readonly error: UpstreamErrorText
    readonly retryAfter: string | undefined
  },
): UpstreamRefusal | undefined {
  const { client } = context
  const status = forwardedStatus(kind, received)
  const forwarded = FORWARDED.get(status)
  if (!forwarded || ruleOf({ kind }).client === 'hidden') return undefined
  const isTooLong = kind === 'too_long'
  const type = isTooLong ? undefined : error.type
  const stated = (isRecorded: boolean) => {
    const said = wordsFor(context, error.message ?? `the upstream answered ${received}`, isRecorded)
    const { message, code } = isTooLong ? tooLongError(client, said, error.code) : { ...error, message: said }
    return {
      message: message.slice(0, MAX_MESSAGE_LENGTH),
      type: wordsFor(context, type ?? forwarded.type, isRecorded),
      code: wordsFor(context, code ?? forwarded.code, isRecorded),
      hasOwnCode: code !== undefined,
    }
  }
  const { message, ...sent } = stated(false)
  return new UpstreamRefusal(message, {
    ...sent,
    status,
    hasOwnType: type !== undefined,
    recorded: stated(true),
    retryAfter: PASSING.has(status) ? forwardedRetryAfter(retryAfter) : undefined,
    envelope: envelopeOf(context, body),
    recurs: kind === 'not_supported',
  })
}

function envelopeOf(context: UpstreamContext, bytes: Buffer): ErrorEnvelope | undefined {
  const { protocol } = context.request
  const body = ERRORS[protocol].passedOn?.(bytes, (text) => wordsFor(context, text))
  return body && { protocol, body }
}

// Ignores values that are not an error type: an envelope's own `type: "error"`, a URL, a number.
function typeOf({ type }: UpstreamErrorText): string | undefined {
  return type !== undefined && type !== 'error' && /^[A-Za-z][\w.-]*$/.test(type) ? type : undefined
}

/** Maximum characters of an upstream's message that are read for the log. */
const MAX_WORDS_LENGTH = 16_384

/** The message of an upstream's error for the log, or the text of a body without one; undefined if it has none. */
function recordedWords(
  context: UpstreamContext,
  { message }: UpstreamErrorText,
  body: Buffer,
): string | undefined {
  const text = message ?? plainText(body, MAX_WORDS_LENGTH)
  return text && wordsFor(context, text, true).slice(0, MAX_WORDS_LENGTH)
}

/**
 * The failure of an answer with status 200 that is or contains an error: that of the status which the error
 * states. A status that would be hidden from clients counts as 500, so that they get the provider's words.
 */
export function failureInAnswer(
  target: AttemptTarget,
  { data, culprit }: AnswerError,
  cause: string,
): Failure {
  const stated = statusOfError(data)
  const isKnown = KIND_OF_STATUS.has(target.channel.status_mapping.get(stated) ?? stated)
  const failure = failureOfAnswer(target, { status: isKnown ? stated : 500, body: Buffer.from(data) })
  const isOfModel = culprit === 'model' && failure.kind === 'server_error'
  return {
    ...failure,
    kind: isOfModel ? 'failed_end' : failure.kind,
    cause: culprit ? 'failed end' : cause,
  }
}

/** An error event of a stream, for the client or as it may be recorded, with the upstream's message redacted. */
export function streamErrorText(context: UpstreamContext, data: string, isRecorded = false): ErrorContent {
  const { client } = context
  const error = readError(context, Buffer.from(data))
  const said = wordsFor(context, error.message ?? 'the upstream reported an error', isRecorded)
  const status = statusOfError(data)
  if (kindOf(context, status, error) === 'too_long') {
    const { message, code = 'bad_request' } = tooLongError(client, said, error.code)
    const hasOwnCode = code !== 'bad_request'
    return {
      type: 'invalid_request_error',
      code,
      hasOwnCode,
      message: message.slice(0, MAX_MESSAGE_LENGTH),
      status: 400,
    }
  }
  return {
    type:
      error.type === undefined
        ? (FORWARDED.get(status)?.type ?? 'api_error')
        : wordsFor(context, error.type, isRecorded),
    ...(error.code === undefined
      ? { code: 'upstream_error', hasOwnCode: false }
      : { code: wordsFor(context, error.code, isRecorded), hasOwnCode: true }),
    message: said.slice(0, MAX_MESSAGE_LENGTH),
    status,
  }
}

/**
 * The failure of an attempt without a usable response: no connection, a timeout, an unreadable response.
 * `upstreamMessage` is redacted.
 */
export function failureWithoutResponse(cause: string, upstreamMessage?: string): Failure {
  return {
    kind: 'no_answer',
    failureCause: causeWithoutResponse(cause),
    cause,
    upstreamMessage,
  }
}

/** The failure of an answer that the provider filtered before it had content, if another model may be tried. */
export const FILTERED_ANSWER: Failure = {
  kind: 'filtered',
  cause: 'filtered answer',
  failureCause: 'provider_refused',
  refusal: new UpstreamRefusal('the provider refused to answer this request because of its content', {
    status: 400,
    type: 'invalid_request_error',
    hasOwnType: false,
    code: 'content_filter',
    hasOwnCode: false,
    retryAfter: undefined,
    envelope: undefined,
    recurs: false,
  }),
}

/** The failure of a stream with an event that is too large to be read. */
export const UNREADABLE_STREAM = failureWithoutResponse('an event was too large')

/** Causes that lie in what an answer contains, however slowly it was read. */
export const UNREADABLE_CAUSES: ReadonlySet<string> = new Set([
  UNREADABLE_STREAM.cause,
  'answer too large',
  'no answer of its protocol',
])

/**
 * The failure of an upstream without an optional endpoint: its 404 does not mean that the channel or the
 * model is missing.
 */
export function missingEndpointFailure(failure: Failure): Failure {
  return { ...failure, kind: 'endpoint_missing' }
}

/** The gateway is stopping. Clients can retry at another node or after the next start. */
export const GATEWAY_STOPPING: Failure = {
  kind: 'stopping',
  refusal: new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 }),
  cause: 'stopping',
  failureCause: 'gateway',
  inStream: { type: 'gateway_error', code: 'overloaded' },
}

/** A user or an administrator stopped the call. `docs/api.md: Calls under way`. */
export const CALL_STOPPED: Failure = {
  kind: 'call_stopped',
  failureCause: 'stopped',
  refusal: new GatewayError('call_stopped', 'this call was stopped'),
  cause: 'stopped',
  inStream: { type: 'gateway_error', code: 'call_stopped' },
}

/** The same after the request was sent: the upstream may have been working on it, so it is charged. */
export const SENT_CALL_STOPPED: Failure = { ...CALL_STOPPED, isCharged: true }

/** Whether a user or an administrator caused this failure. */
export function isStoppedCall({ kind }: Failure): boolean {
  return kind === 'call_stopped'
}

/** The failure to write something that must be durable before the client receives anything of the call. */
export function failureOfWrite(error: Error | undefined): Failure {
  const refusal = databaseUnavailableError(error)
  return { kind: 'unwritten', refusal, cause: 'unwritten', failureCause: 'gateway' }
}

/** The client disconnected before an attempt began. */
export const CLIENT_DISCONNECTED: Failure = {
  kind: 'client_left',
  cause: 'caller gone',
  failureCause: 'gateway',
}

/** Kinds of failures that blame an account, so that other accounts say more about the call. */
const OF_ACCOUNTS: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'key_refused',
  'account_fault',
  'account_lacks_model',
  'limited',
])

/**
 * The error for the client after every account failed: the last one that can be forwarded. A 404 is forwarded
 * only if all channels returned it, because a channel that failed for another reason may have the model.
 * `shortestRestMs` returns the milliseconds until the first account that has only reached a limit may be
 * called again; undefined if there is none.
 */
export function finalError(failures: readonly Failure[], shortestRestMs: () => number | undefined): Error {
  const others = failures.filter(({ kind }) => kind !== 'model_missing')
  const relevant = others.length > 0 ? others : failures
  const last = relevant.findLast((failure) => failure.refusal)
  if (last?.kind === 'limited' && last.refusal instanceof UpstreamRefusal)
    return last.refusal.withRetryAfter(shortestRestMs())
  if (last?.refusal) return last.refusal
  const restMs = relevant.every(({ kind }) => OF_ACCOUNTS.has(kind)) ? shortestRestMs() : undefined
  if (restMs !== undefined) return rateLimitError(restMs, 'every account for this model')
  return new GatewayError('upstream_error', 'no upstream could answer this request')
}

/** The cause of a failure that the gateway reports with its own error, rather than an upstream's. */
function causeOfOwn({ code, kind }: GatewayError): FailureCause {
  if (code === 'call_stopped') return 'stopped'
  return kind.status < 500 ? causeOfStatus(kind.status) : 'gateway'
}

/**
 * The error that a client gets, with its cause, as it is recorded. If no upstream's error is forwarded, the
 * cause is that of the last attempt.
 */
export function errorSentToClient(thrown: unknown, last: Failure | undefined): ErrorSentToClient {
  if (thrown instanceof UpstreamRefusal) {
    const { status, type, code, recorded } = thrown.facts
    return { cause: causeOfStatus(status), status, type, code, message: thrown.message, ...recorded }
  }
  const error = thrown instanceof StoreUnavailable ? databaseUnavailableError(thrown) : asGatewayError(thrown)
  const own = error ?? new GatewayError('internal_error', 'internal error')
  const { code, message, kind } = own
  const cause = (code === 'upstream_error' && last?.failureCause) || causeOfOwn(own)
  return { cause, status: kind.status, type: kind.type, code: kind.code ?? code, message }
}
