import type { Verdict } from './sliding-window.ts'

/** One count of one limit: at most `max` within `windowMs`, by a subject. */
export interface CountedLimit {
  /** Name of limit and unit: `key requests`. */
  readonly name: string
  readonly subject: string | number
  readonly max: number
  readonly windowMs: number
}

/**
 * Counts the use of limits. Returns a verdict in the same turn where memory suffices; otherwise a promise
 * that resolves within 50 ms and never rejects.
 */
export interface LimitCounter {
  /** Takes one unit if one is free. */
  take(counted: CountedLimit): Verdict | Promise<Verdict>
  /** Checks whether a unit is free, asking other nodes if needed; takes nothing. */
  check(counted: CountedLimit): Verdict | Promise<Verdict>
  /** Checks in the same turn, by what this node knows; an unknown subject is allowed. */
  peek(counted: CountedLimit): Verdict
  /** Counts units that were used, free or not. */
  add(counted: CountedLimit, amount: number): void
}
