import type { QuotaDisplay } from '../management/settings/quota-display.ts'

/** Response to `GET /` on the control socket: the gateway runs, and shows quota in these units. */
export interface Hello {
  readonly display: QuotaDisplay
}

/** Response to `POST /OPERATION` when the operation failed. */
export interface ControlFailure {
  readonly error: { readonly code: string; readonly message: string }
}
