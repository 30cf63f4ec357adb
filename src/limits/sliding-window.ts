/**
 * Number of moments of use that are stored separately; beyond it, a use that follows the last one closely is
 * merged with it.
 */
const MAX_MOMENTS = 64

/** What a rate limit decides about a request. */
export interface LimitDecision {
  readonly allowed: boolean
  /** Number of units that are free now. */
  readonly remaining: number
  /** Milliseconds until all units are free again. */
  readonly resetMs: number
  /** Milliseconds until the requested units are free; 0 if they are free now, or never will be. */
  readonly waitMs: number
}

/** A time in milliseconds, and the amount that was used then. */
export type UsageSample = readonly [atMs: number, amount: number]

/**
 * Counts what was used within the last `windowMs` milliseconds. Because the window slides, there is no moment
 * at which twice the limit can pass. The count is exact for up to 64 separate times; beyond that, the limit
 * is stricter by up to a 64th of the window.
 */
export class SlidingWindow {
  readonly #times: number[] = []
  readonly #amounts: number[] = []
  #sum = 0

  /** Uses `amount` units if they are free. */
  take(nowMs: number, amount: number, max: number, windowMs: number): LimitDecision {
    const verdict = this.peek(nowMs, amount, max, windowMs)
    if (!verdict.allowed) return verdict
    this.add(nowMs, amount, windowMs)
    return { ...verdict, remaining: verdict.remaining - amount, resetMs: windowMs }
  }

  /** Decides like `take`, but does not count `amount` as used. */
  peek(nowMs: number, amount: number, max: number, windowMs: number): LimitDecision {
    this.#expire(nowMs, windowMs)
    const last = this.#times.at(-1)
    const free = max - this.#sum
    return {
      allowed: amount <= free,
      remaining: Math.max(0, free),
      resetMs: last === undefined ? 0 : last + windowMs - nowMs,
      waitMs: amount <= free ? 0 : this.#waitFor(amount - free, nowMs, windowMs),
    }
  }

  /** Counts units that were used, even if the limit is exceeded. */
  add(nowMs: number, amount: number, windowMs: number): void {
    this.#sum += amount
    const last = this.#times.length - 1
    const isNear =
      this.#times.length >= MAX_MOMENTS && nowMs - (this.#times[last - 1] ?? 0) < windowMs / MAX_MOMENTS
    if (isNear || this.#times[last] === nowMs) {
      this.#times[last] = nowMs
      this.#amounts[last] = (this.#amounts[last] ?? 0) + amount
    } else {
      this.#times.push(nowMs)
      this.#amounts.push(amount)
    }
  }

  /** Number of units used within the last `windowMs` milliseconds. */
  sum(nowMs: number, windowMs: number): number {
    this.#expire(nowMs, windowMs)
    return this.#sum
  }

  /** Times and amounts of what was used within the last `windowMs` milliseconds. */
  moments(nowMs: number, windowMs: number): UsageSample[] {
    this.#expire(nowMs, windowMs)
    return this.#times.map((time, i) => [time, this.#amounts[i] ?? 0])
  }

  #waitFor(needed: number, nowMs: number, windowMs: number): number {
    let freed = 0
    for (const [index, time] of this.#times.entries()) {
      freed += this.#amounts[index] ?? 0
      if (freed >= needed) return Math.max(1, time + windowMs - nowMs)
    }
    return 0
  }

  #expire(nowMs: number, windowMs: number): void {
    let expired = 0
    while (expired < this.#times.length && (this.#times[expired] ?? 0) + windowMs <= nowMs) {
      this.#sum -= this.#amounts[expired] ?? 0
      expired += 1
    }
    if (expired === 0) return
    this.#times.splice(0, expired)
    this.#amounts.splice(0, expired)
  }
}
