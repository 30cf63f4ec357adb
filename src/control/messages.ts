import type { QuotaDisplay } from '../management/settings/quota-display.ts'

/** What a gateway answers to `GET /` on its socket: that it is there, and how it shows quota. */
export interface Hello {
  readonly display: QuotaDisplay
}

/** What it answers to `POST /OPERATION` when it could not be done. */
export interface ControlFailure {
  readonly error: { readonly code: string; readonly message: string }
}
