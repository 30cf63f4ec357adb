/** The measurement of one candidate in one round. */
export interface Figure {
  /** Cost in the scenario's unit. */
  readonly cost: number
  /** Cost in the same process while it worked without a pause, if measured. */
  readonly steady?: number
  /** Median latency in microseconds, if measured. */
  readonly p50?: number
  readonly p99?: number
}

/** One round: a figure for each candidate, by name. */
export type Round = Readonly<Record<string, Figure>>
