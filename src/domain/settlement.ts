/**
 * Why a call was charged what it was; stored with each charge. `docs/ledger.md: Outcomes`.
 */
export type SettlementReason =
  /** The answer ended as the protocol says, with usage that could be charged. */
  | 'complete'
  /** The answer ended as the protocol says, but its usage was missing or made no sense: the gateway counted. */
  | 'estimated'
  /** The caller went away before the end. */
  | 'client_gone'
  /** The upstream broke off, timed out or reported an error after content had been delivered, or the hold ran out. */
  | 'cut'
  /** Nothing was delivered: no charge. */
  | 'failed'
  /** The gateway died during the call; the next one settled it from the last progress mark. */
  | 'crash'
