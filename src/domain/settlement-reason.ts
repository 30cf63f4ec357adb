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
