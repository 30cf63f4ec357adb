import type { CallNote } from './call-note.ts'
import type { Provenance } from './provenance.ts'
import type { Usage } from './usage.ts'

/** Reason of a charge, stored with it. `docs/ledger.md: Outcomes`. */
export type SettlementReason =
  /** The response ended regularly, with valid usage. */
  | 'complete'
  /** The response ended regularly, but its usage was missing or invalid, so that the gateway counted. */
  | 'estimated'
  /** The client left before the end. */
  | 'client_gone'
  /** The upstream broke off, timed out or failed after content had been delivered, or the hold ran out. */
  | 'cut'
  /** Nothing was delivered: no charge. */
  | 'failed'
  /** The gateway crashed during the call; the next start settled it at its last recorded progress. */
  | 'crash'
  /**
   * The gateway was lost with its data folder: an estimate for its open calls, until the folder comes back.
   */
  | 'lost-node'

/** Outcome and charge of a call. */
export interface Settlement {
  /** Quota units. */
  readonly quota: number
  readonly reason: SettlementReason
  /** Whether the client got any of the response; only such calls count as requests. */
  readonly delivered: boolean
  readonly ended_ms: number
  readonly usage: Usage
  /** The model that answered and its group; undefined where they are those of the hold. */
  readonly answeredBy?: { readonly model: string; readonly group: string } | undefined
  readonly upstream_model: string
  /** Whether the request offered something that no price is known for. */
  readonly price_incomplete?: boolean
  /** Undefined where there is none. */
  readonly note?: CallNote | undefined
  /** Channel of the response, not necessarily the first one tried. */
  readonly channel: string
  /** From the start of the call to the first byte of the response; null if there was none. */
  readonly first_byte_ms: number | null
  /** JSON: `AttemptEntry[]`; undefined where the only attempt was answered. */
  readonly attempts?: string | undefined
  /** JSON: `Particulars`; undefined where there are none. */
  readonly particulars?: string | undefined
  /** Undefined where clients can refer to nothing of the response. */
  readonly provenance?: Provenance | undefined
}
