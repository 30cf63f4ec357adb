import type { QuotaDisplay } from '../../management/gateway-status.ts'

/**
 * Response to `GET /` on the control socket. It shows that the gateway runs, and the unit in which it
 * displays quota.
 */
export interface GatewayGreeting {
  readonly display: QuotaDisplay
}

/** Response to `POST /OPERATION` if the operation failed. */
export interface ControlFailure {
  readonly error: { readonly code: string; readonly message: string }
}
