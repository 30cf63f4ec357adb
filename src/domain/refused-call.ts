import type { RefusedLimit } from '../errors.ts'

/** A call that was refused before it began. `docs/api.md: Refused calls`. */
export interface RefusedCall {
  /** The call's `x-request-id`. */
  readonly id: string
  readonly refused_ms: number
  /** 0 without a valid key. */
  readonly user_id: number
  readonly token_id: number
  readonly model: string
  readonly group: string
  readonly kind: string
  /** Status, type and code of the answer. */
  readonly status: number
  readonly type: string
  readonly code: string
  /** The gateway's sentence, cleaned. */
  readonly message: string
  /** Seconds. */
  readonly retry_after: number | null
  readonly limit: RefusedLimit | null
}

/** A refused call with the names of its key and of that key's user; empty without a valid key. */
export interface NamedRefusedCall extends RefusedCall {
  readonly username: string
  readonly token_name: string
}

/** Time for which refused calls are kept. */
export const REFUSED_CALL_RETENTION_MS = 72 * 3_600_000

/** The part of all kept rows that one key may have. */
export const KEY_SHARE_DIVISOR = 10
