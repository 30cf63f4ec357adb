/** The measurement of one candidate in one round. */
export interface Figure {
  /** Cost in the scenario's unit. */
  readonly cost: number
  /** Cost in the same process while it was at work without a pause, where that was measured. */
  readonly steady?: number
  /** Median latency in microseconds, where latency was measured. */
  readonly p50?: number
  readonly p99?: number
}

/** One round: a figure for each candidate, by name. */
export type Round = Readonly<Record<string, Figure>>
