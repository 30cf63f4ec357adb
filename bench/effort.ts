/** How much is measured. */
export interface Effort {
  /** Rounds of each scenario: never fewer than the first, nor more than the second. */
  readonly rounds: readonly [least: number, most: number]
  /** Milliseconds after which no further round of a scenario is begun, where it has the least of them. */
  readonly budgetMs: number
  /**
   * CPU time that a candidate should spend in one measurement, in microseconds: its clock ticks in steps of
   * 10 ms.
   */
  readonly cpuMicros: number
  /** Before everything, and before each scenario that saturates. */
  readonly firstWarmUp: WarmUp
  readonly warmUp: WarmUp
  /** Milliseconds for which streams, and arrivals, are watched. */
  readonly windowMs: number
}

/** It is over after so many requests, or so much CPU time. */
export interface WarmUp {
  readonly requests: number
  readonly cpuMicros: number
}

/** Under 15 minutes for everything. */
export const FULL: Effort = {
  rounds: [3, 9],
  budgetMs: 30_000,
  cpuMicros: 600_000,
  firstWarmUp: { requests: 40_000, cpuMicros: 8_000_000 },
  warmUp: { requests: 6000, cpuMicros: 3_000_000 },
  windowMs: 3000,
}

/** Under four. */
export const QUICK: Effort = {
  rounds: [3, 5],
  budgetMs: 8000,
  cpuMicros: 250_000,
  firstWarmUp: { requests: 25_000, cpuMicros: 4_000_000 },
  warmUp: { requests: 4000, cpuMicros: 1_000_000 },
  windowMs: 1200,
}
