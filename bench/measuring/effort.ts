/** How much is measured. */
export interface Effort {
  /** Rounds of each scenario: minimum and maximum. */
  readonly rounds: readonly [min: number, max: number]
  /**
   * Milliseconds after which no further round of a scenario begins, once it has the minimum number of rounds.
   */
  readonly budgetMs: number
  /**
   * CPU time that a candidate should spend in one measurement, in microseconds; enough for several garbage
   * collections.
   */
  readonly cpuMicros: number
  /** The warm-up before everything, and the one before each saturating scenario. */
  readonly firstWarmUp: WarmUp
  readonly warmUp: WarmUp
  /** Milliseconds for which streams and arrivals are observed. */
  readonly windowMs: number
  /** Pauses between bursts, a multiple of four. */
  readonly pauses: number
}

/** A warm-up ends after this many requests or this much CPU time. */
export interface WarmUp {
  readonly requests: number
  readonly cpuMicros: number
}

/** A full run: some 20 minutes in total. */
export const FULL: Effort = {
  rounds: [3, 9],
  budgetMs: 30_000,
  cpuMicros: 600_000,
  firstWarmUp: { requests: 40_000, cpuMicros: 8_000_000 },
  warmUp: { requests: 20_000, cpuMicros: 6_000_000 },
  windowMs: 3000,
  pauses: 16,
}

/** A quick run: some six minutes. It warms up for long, because code that is not yet compiled costs several times as much. */
export const QUICK: Effort = {
  rounds: [3, 5],
  budgetMs: 5000,
  cpuMicros: 300_000,
  firstWarmUp: FULL.firstWarmUp,
  warmUp: { requests: 20_000, cpuMicros: 2_500_000 },
  windowMs: 1000,
  pauses: 8,
}

/** A quick run of only two candidates, which has time for more rounds. */
export const QUICK_PAIR: Effort = { ...QUICK, rounds: [7, 11], budgetMs: 9000 }
