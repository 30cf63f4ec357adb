/** Causes of failed calls, in the order of their columns in sums. `docs/api.md: Failed calls`. */
export const FAILURE_CAUSES = [
  'provider_refused',
  'provider_unknown_model',
  'provider_limited',
  'provider_key',
  'provider_failed',
  'provider_timeout',
  'provider_unreachable',
  'provider_broken',
  'spent',
  'stopped',
  'gateway',
] as const

/** Why a call failed. */
export type FailureCause = (typeof FAILURE_CAUSES)[number]

const CAUSE_OF_STATUS = new Map<number, FailureCause>([
  [401, 'provider_key'],
  [403, 'provider_key'],
  [404, 'provider_unknown_model'],
  [407, 'provider_key'],
  [429, 'provider_limited'],
])

/** The cause of failure that a provider's error status implies. */
export function causeOfStatus(status: number): FailureCause {
  return (
    CAUSE_OF_STATUS.get(status) ?? (status >= 400 && status < 500 ? 'provider_refused' : 'provider_failed')
  )
}

const TIMEOUTS: ReadonlySet<string> = new Set(['first byte time-out', 'idle time-out', 'total time-out'])

/** Causes of failures in which a response began, or was complete but unusable. */
const BROKEN: ReadonlySet<string> = new Set([
  'an event was too large',
  'answer too large',
  'compressed answer',
  'connection closed',
  'no answer of its protocol',
  'stream ended early',
  'unexpected content type',
  'ECONNRESET',
  'EPIPE',
])

/** The cause of a failure without a usable response, by its fixed words. */
export function causeWithoutResponse(cause: string): FailureCause {
  if (TIMEOUTS.has(cause)) return 'provider_timeout'
  return BROKEN.has(cause) ? 'provider_broken' : 'provider_unreachable'
}

/** The error that the client of a failed call got. */
export interface ErrorSentToClient {
  readonly cause: FailureCause
  /** HTTP status of the answer; null if there was none. */
  readonly status: number | null
  readonly type: string
  readonly code: string
  /** The error message, from which secrets were not yet removed. */
  readonly message: string
}

/** What the usage log stores of an error in addition to its cause and status, as JSON. */
export interface StoredError {
  readonly type: string
  readonly code: string
  /** The error message without secrets; empty unless `options.error_details` is set. */
  readonly message: string
}

const NAME = /^[\w.-]{1,64}$/

/**
 * An error type or code for the log. Empty if it is not a short name, because it could then contain anything.
 */
export function shortNameOrEmpty(name: string): string {
  return NAME.test(name) ? name : ''
}
