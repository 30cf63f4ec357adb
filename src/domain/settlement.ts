import type { Usage } from './usage.ts'

/**
 * Why a call was charged what it was; stored with each charge. `docs/ledger.md: Outcomes`.
 */
export type SettlementReason =
  /** The answer ended as the protocol says, with usage that could be charged. */
  | 'complete'
  /**
   * The answer ended as the protocol says, but its usage was missing or made no sense: the gateway counted.
   */
  | 'estimated'
  /** The caller went away before the end. */
  | 'client_gone'
  /**
   * The upstream broke off, timed out or reported an error after content had been delivered, or the hold ran
   * out.
   */
  | 'cut'
  /** Nothing was delivered: no charge. */
  | 'failed'
  /** The gateway died during the call; the next one settled it from the last progress mark. */
  | 'crash'
  /**
   * The gateway died, and its data folder with it: an estimate of what its open calls cost, until it comes
   * back after all.
   */
  | 'lost-node'

/** How a call ended and what it is charged: all that its hold did not know. */
export interface Settlement {
  /** Quota units. */
  readonly quota: number
  readonly reason: SettlementReason
  /** Whether the caller got any of the answer; only such calls are counted as requests. */
  readonly delivered: boolean
  readonly endedMs: number
  readonly usage: Usage
  readonly upstreamModel: string
  /** The channel that answered, which need not be the first one tried. */
  readonly channel: string
  /** From the start of the call to the first byte of the answer; null if there was none. */
  readonly firstByteMs: number | null
}
