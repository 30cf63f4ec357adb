import type { Response } from '@sluice/http1'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import type { Transport } from '../domain/call-outcome.ts'
import type { HoldFacts } from '../domain/records/usage.ts'
import type { GatewayError } from '../errors.ts'
import type { Request } from '../http/request.ts'

/** A client's request as it arrives, and the response to it. */
export interface IncomingCall {
  readonly id: string
  /** `http` if absent. */
  readonly transport?: Transport
  /** Set for a turn of a WebSocket. */
  readonly turn?: TurnForm
  readonly request: Request
  readonly response: Response
  readonly record: CallRecord
  /** Set if telemetry records the call as a span. Its HTTP request is then not a span. */
  isTraced?: true
  /** Set if the relay refuses the call: facts about the refusal for its record. */
  refusal?: RefusalFacts
  /** Start of the call in Unix milliseconds. */
  readonly startedMs: number
  /** Start of the call by the monotonic clock `performance.now()`, in milliseconds. */
  readonly startedAt: number
  /** Renders an error for the client. Absent if the call has no idempotency key. */
  readonly render?: (error: unknown) => RenderedRefusal
  /**
   * The error that a caller whose key has no quota gets, unless the answer was kept for its idempotency key.
   */
  readonly unlessKept?: GatewayError
  /**
   * Set if the hold of the call is taken out of another one: called in place of `Ledger.admit`. Throws `Unaffordable`.
   */
  readonly holdFor?: (amount: number, facts: HoldFacts) => OpenHold
  /**
   * Set if the call is a line of a batch of a provider, which has the price of the tier `batch` and counts in no limit: its
   * request is made, or its answer has come.
   */
  readonly inBatch?: 'request' | 'answer'
  /** Set for lines of batches: the call is made only while at least half of each limit is left, so that calls of clients come first. */
  readonly isBehind?: true
  /** Whether the limit of its model has still to count the call as a request (`CallLimits.countModel`). */
  isUncounted?: boolean
  /** Set if the call is made for another one, in whose place it counts as a parallel call of its key. */
  readonly isPart?: true
  /** Set if the call has an idempotency key under which its answer may be kept. */
  isIdempotent?: true
  /** Whether the call ended with an error. Set when the call is over or its response has begun to fail. */
  hasFailed?: boolean
}

/** What the client of a turn sent and gets, where the relay has a request and an answer as by HTTP. */
export interface TurnForm {
  /** The message that the client sent. */
  readonly message: Buffer
  /** Puts an answer into the form in which the client gets it. */
  readonly shown: (answer: Buffer) => Buffer
}

/** An error as the client gets it, as an HTTP response. */
export interface RenderedRefusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Facts about a call that the relay refuses. */
export interface RefusalFacts {
  readonly kind: string
  readonly group: string
  /** The error message, without text repeated from the request. */
  readonly message: string
}

/**
 * What the log says about a call, in addition to its route and status. Only scalars, never a part of a prompt
 * or a key.
 */
export interface CallRecord {
  userId?: number
  tokenId?: number
  model?: string
  channel?: string
  upstreamModel?: string
  /** The fallback model that served the call. */
  fallback?: string
  stream?: boolean
  attempts?: number
  firstByteMs?: number
  /** Number of tokens of the prompt, whether they were cached or not. */
  inputTokens?: number
  outputTokens?: number
  /** The token total that the provider reported, if it is implausible and was not charged. */
  ignoredTotal?: number
  quota?: number
  reason?: string
  /** `hit` if the call got the answer of another call from the answer cache. */
  cache?: 'hit'
  /** Cause of the last failed attempt. */
  failure?: string
  /** Id of the call whose answer was sent, because it had the same idempotency key. */
  replayOf?: string
}
