/** How a call ended, which determines its charge; stored with it. `docs/ledger.md: Outcomes`. */
export type SettlementReason =
  /** The response ended regularly, with valid usage. */
  | 'complete'
  /**
   * The response ended regularly, but its usage was missing or invalid, so the gateway counted the tokens.
   */
  | 'estimated'
  /** The client disconnected before the end of the response. */
  | 'client_gone'
  /**
   * The upstream broke off, timed out or failed after content had been delivered, or the reserved quota was
   * used up.
   */
  | 'cut'
  /** A user or administrator stopped the call; what had been delivered is charged. */
  | 'stopped'
  /** Nothing was delivered, and nothing is charged. */
  | 'failed'
  /**
   * The gateway crashed during the call. The next start charged it for the progress that was last recorded.
   */
  | 'crash'
  /**
   * The node and its data folder were lost. Its open calls are charged with an estimate until the folder is
   * back.
   */
  | 'lost-node'

/** Labels of the outcomes in exported files, the same as in the console. */
export const STATUS_WORDS: Readonly<Record<SettlementReason, string>> = {
  complete: 'Complete',
  estimated: 'Estimated',
  client_gone: 'Caller left',
  cut: 'Cut',
  stopped: 'Stopped',
  failed: 'Failed',
  crash: 'Recovered',
  'lost-node': 'Recovered',
}

/** Outcomes that count as failed, whether or not the client got a part of the response. */
export const FAILED_REASONS = ['failed', 'cut', 'stopped', 'crash', 'lost-node'] as const

/** Irregularities of responses that the usage log reports. */
export const CALL_NOTES = [
  /** The provider reported a regular end, but the arguments of a tool call were truncated. */
  'cut_arguments',
  /** The provider reported a reason for the end of its answer that is not known; it counts as a good end. */
  'unknown_end',
  /** A guard blocked the response. */
  'guard_blocked',
  /** The provider reported a usage that is not believed, so the call is charged what it held. */
  'usage_implausible',
] as const

/** Note about a response in the usage log. */
export type CallNote = (typeof CALL_NOTES)[number]

/** The ways in which calls come. */
export const TRANSPORTS = ['http', 'websocket'] as const

export type Transport = (typeof TRANSPORTS)[number]
