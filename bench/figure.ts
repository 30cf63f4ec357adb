/** What was measured of one candidate in one round. */
export interface Figure {
  /** In the scenario's unit. */
  readonly cost: number
  /** Microseconds, where latency was looked at. */
  readonly p50?: number
  readonly p99?: number
}

/** One round: a figure for each candidate, by name. */
export type Round = Readonly<Record<string, Figure>>
