import type { RefusedLimit } from '../errors.ts'

/** A call that was refused before it began. `docs/api.md: Refused calls`. */
export interface RefusedCall {
  /** The call's `x-request-id`. */
  readonly id: string
  readonly refused_ms: number
  /** Id of the user; 0 if the key was not valid. */
  readonly user_id: number
  readonly token_id: number
  readonly model: string
  readonly group: string
  readonly kind: string
  /** HTTP status of the error that the client got; `type` and `code` are those of the same error. */
  readonly status: number
  readonly type: string
  readonly code: string
  /** The gateway's error message, without secrets and prompts. */
  readonly message: string
  /** Seconds after which the client may try again; null if the error stated none. */
  readonly retry_after: number | null
  readonly limit: RefusedLimit | null
}

/** A refused call with the names of its API key and its user; empty if the key was not valid. */
export interface NamedRefusedCall extends RefusedCall {
  readonly username: string
  readonly token_name: string
}

/** Milliseconds for which refused calls are stored. */
export const REFUSED_CALL_RETENTION_MS = 72 * 3_600_000

/** Each API key may have at most this fraction of all stored refused calls: 10 means a tenth. */
export const KEY_SHARE_DIVISOR = 10
