import type { Verdict } from './sliding-window.ts'

/** What is counted: of how many within how long, and by whom. */
export interface CountedLimit {
  /** Which limit, and what of it: `key requests`. */
  readonly name: string
  readonly subject: string | number
  readonly max: number
  readonly windowMs: number
}

/**
 * Keeps count of what limits limit. What can be answered from memory is answered in the same turn; a promise
 * resolves within 50 ms, and never rejects.
 */
export interface LimitCounter {
  /** Takes one, if one is free. */
  take(counted: CountedLimit): Verdict | Promise<Verdict>
  /** Whether one is free, as well as it can be known; takes nothing. */
  check(counted: CountedLimit): Verdict | Promise<Verdict>
  /** The same by what is known in this turn. Where nothing is known, one is free: taking it will tell. */
  peek(counted: CountedLimit): Verdict
  /** Takes note of what was used, whether it was free or not. */
  add(counted: CountedLimit, amount: number): void
}
