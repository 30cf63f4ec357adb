import type { Verdict } from './sliding-window.ts'

/** One count of one limit: at most `max` within `windowMs` by a subject. */
export interface CountedLimit {
  /** Name of the limit and unit: `key requests`. */
  readonly name: string
  readonly subject: string | number
  readonly max: number
  readonly windowMs: number
}

/**
 * Counts the use of limits. Returns a verdict synchronously if memory suffices; otherwise a promise that
 * resolves within 50 ms and never rejects.
 */
export interface RateCounter {
  /** Takes one unit if one is free. */
  take(counted: CountedLimit): Verdict | Promise<Verdict>
  /** Checks whether a unit is free, asking other nodes if needed, without taking it. */
  check(counted: CountedLimit): Verdict | Promise<Verdict>
  /** Checks synchronously, by what this node knows; an unknown subject is allowed. */
  peek(counted: CountedLimit): Verdict
  /** Counts units that were used, even if they were not free. */
  add(counted: CountedLimit, amount: number): void
}
