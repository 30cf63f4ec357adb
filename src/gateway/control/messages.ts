import type { QuotaDisplay } from '../../management/gateway-status.ts'

/**
 * Response to `GET /` on the control socket: shows that the gateway runs, and the units in which it shows
 * quota.
 */
export interface Hello {
  readonly display: QuotaDisplay
}

/** Response to `POST /OPERATION` when the operation failed. */
export interface ControlFailure {
  readonly error: { readonly code: string; readonly message: string }
}
