/**
 * Causes of calls that failed, in the order of the columns of their sums. `docs/api.md: Failed calls`.
 */
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

/** The cause for an error status of a provider. */
export function causeOfStatus(status: number): FailureCause {
  return (
    CAUSE_OF_STATUS.get(status) ?? (status >= 400 && status < 500 ? 'provider_refused' : 'provider_failed')
  )
}

/** The error that the client of a failed call got. */
export interface AnsweredError {
  readonly cause: FailureCause
  /** HTTP status of the answer; null if there was none. */
  readonly status: number | null
  readonly type: string
  readonly code: string
  /** The sentence, not cleaned yet. */
  readonly message: string
}

/** What the usage log keeps of an error in addition to its cause and status; JSON in its row. */
export interface StoredError {
  readonly type: string
  readonly code: string
  /** Cleaned; empty without `options.error_details`. */
  readonly message: string
}

const NAME = /^[\w.-]{1,64}$/

/** A type or code of an error as it is kept; empty unless it is a short name. */
export function shortNameOrEmpty(name: string): string {
  return NAME.test(name) ? name : ''
}
