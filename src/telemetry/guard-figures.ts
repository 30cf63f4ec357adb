import type { GuardVerdict } from '../domain/guard.ts'

const HOUR_MS = 3_600_000
/** Number of hours that the statistics of guards cover, including the current hour. */
const HOURS = 24
/**
 * Upper bound of the first bucket of delays, in milliseconds. `STEPS` buckets cover the range from one delay
 * to twice that delay.
 */
const FIRST_MS = 0.01
const STEPS = 4
/** Number of buckets. The last one counts all delays from about ten minutes. */
const BUCKETS = 105

/** Result of a guard for one call. */
export interface GuardedCall {
  readonly verdict: GuardVerdict
  readonly matches: number
  /** Milliseconds for which the guard delayed the call. */
  readonly delayMs: number
}

/** Sums over the calls that a guard checked. */
export interface GuardSums {
  readonly calls: number
  readonly matches: number
  readonly blocked: number
  readonly failed: number
  /** Number of calls in each bucket of delays. */
  readonly delays: readonly number[]
}

interface Hour {
  number: number
  calls: number
  matches: number
  blocked: number
  failed: number
  readonly delays: number[]
}

/** The sums of a guard that has not checked any call. */
export const NO_GUARDED_CALLS: GuardSums = { calls: 0, matches: 0, blocked: 0, failed: 0, delays: [] }

/**
 * Results of guards in the last 24 hours on this node, by hour. They are stored by the name of the guard, so
 * that a reload of the configuration does not clear them. `docs/guards.md: Statistics`.
 */
export class GuardFigures {
  readonly #guards = new Map<string, Hour[]>()
  readonly #now: () => number

  /** `now` returns the time in Unix milliseconds. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Counts a call that a guard has checked. */
  note(name: string, { verdict, matches, delayMs }: GuardedCall): void {
    const hour = this.#hourOf(name)
    hour.calls += 1
    hour.matches += matches
    if (verdict === 'blocked') hour.blocked += 1
    if (verdict === 'failed_passed' || verdict === 'failed_blocked') hour.failed += 1
    const bucket = bucketOf(delayMs)
    hour.delays[bucket] = (hour.delays[bucket] ?? 0) + 1
  }

  /** The sums of a guard over the last 24 hours. */
  of(name: string): GuardSums {
    const first = this.#hour - HOURS + 1
    return (this.#guards.get(name) ?? [])
      .filter(({ number }) => number >= first)
      .reduce(addGuardSums, NO_GUARDED_CALLS)
  }

  /** Removes the figures of guards that are no longer configured. `names` are the configured guards. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#guards.keys()) if (!names.has(name)) this.#guards.delete(name)
  }

  get #hour(): number {
    return Math.floor(this.#now() / HOUR_MS)
  }

  #hourOf(name: string): Hour {
    const number = this.#hour
    let hours = this.#guards.get(name)
    if (!hours) this.#guards.set(name, (hours = []))
    const last = hours.at(-1)
    if (last?.number === number) return last
    const hour: Hour = { number, calls: 0, matches: 0, blocked: 0, failed: 0, delays: [] }
    hours.push(hour)
    if (hours.length > HOURS) hours.shift()
    return hour
  }
}

/** Adds the sums of two periods, or of two nodes. */
export function addGuardSums(a: GuardSums, b: GuardSums): GuardSums {
  return {
    calls: a.calls + b.calls,
    matches: a.matches + b.matches,
    blocked: a.blocked + b.blocked,
    failed: a.failed + b.failed,
    delays: Array.from(
      { length: Math.max(a.delays.length, b.delays.length) },
      (_, bucket) => (a.delays[bucket] ?? 0) + (b.delays[bucket] ?? 0),
    ),
  }
}

/**
 * The delay in milliseconds that 95 % of the calls do not exceed, with an error of at most 10 %; null if
 * there are no calls.
 */
export function delayP95({ calls, delays }: GuardSums): number | null {
  if (calls === 0) return null
  let left = 0.95 * calls
  const bucket = delays.findIndex((count) => count > 0 && (left -= count) <= 0)
  const middle = FIRST_MS * 2 ** ((bucket - 0.5) / STEPS)
  return Number(middle.toPrecision(2))
}

function bucketOf(ms: number): number {
  if (!(ms > FIRST_MS)) return 0
  return Math.min(BUCKETS - 1, Math.ceil(Math.log2(ms / FIRST_MS) * STEPS))
}
