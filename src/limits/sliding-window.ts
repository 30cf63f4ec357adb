/** Moments kept apart at most; beyond it, neighbours are put together as if all had been at the later one. */
const MOMENTS = 64

/** What a limit says of one more. */
export interface Verdict {
  readonly allowed: boolean
  /** What may still come now. */
  readonly remaining: number
  /** Milliseconds until all of the limit is free again. */
  readonly resetMs: number
  /** Milliseconds until as much as was asked for is free; 0 where it is, or never will be. */
  readonly waitMs: number
}

/** When something came, and how much. */
export type Moment = readonly [atMs: number, amount: number]

/**
 * What came within the last `windowMs`, of which there is never more than `most`: a window that slides, so
 * that there is no edge at which twice as much gets through. Up to 64 moments it is exact; beyond, up to a
 * 64th of the window stricter.
 */
export class SlidingWindow {
  readonly #times: number[] = []
  readonly #amounts: number[] = []
  #sum = 0

  /** Asks for `amount`, and takes it if it is free. */
  take(nowMs: number, amount: number, most: number, windowMs: number): Verdict {
    const verdict = this.peek(nowMs, amount, most, windowMs)
    if (!verdict.allowed) return verdict
    this.add(nowMs, amount, windowMs)
    return { ...verdict, remaining: verdict.remaining - amount, resetMs: windowMs }
  }

  /** The same without taking it. */
  peek(nowMs: number, amount: number, most: number, windowMs: number): Verdict {
    this.#forget(nowMs, windowMs)
    const last = this.#times.at(-1)
    const free = most - this.#sum
    return {
      allowed: amount <= free,
      remaining: Math.max(0, free),
      resetMs: last === undefined ? 0 : last + windowMs - nowMs,
      waitMs: amount <= free ? 0 : this.#waitFor(amount - free, nowMs, windowMs),
    }
  }

  /** Takes note of what came, whether it was free or not. */
  add(nowMs: number, amount: number, windowMs: number): void {
    this.#sum += amount
    const last = this.#times.length - 1
    const isNear = this.#times.length >= MOMENTS && nowMs - (this.#times[last - 1] ?? 0) < windowMs / MOMENTS
    if (isNear || this.#times[last] === nowMs) {
      this.#times[last] = nowMs
      this.#amounts[last] = (this.#amounts[last] ?? 0) + amount
    } else {
      this.#times.push(nowMs)
      this.#amounts.push(amount)
    }
  }

  /** What came within the last `windowMs`. */
  sum(nowMs: number, windowMs: number): number {
    this.#forget(nowMs, windowMs)
    return this.#sum
  }

  /** When it came, and how much, within the last `windowMs`. */
  moments(nowMs: number, windowMs: number): readonly Moment[] {
    this.#forget(nowMs, windowMs)
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

  #forget(nowMs: number, windowMs: number): void {
    let gone = 0
    while (gone < this.#times.length && (this.#times[gone] ?? 0) + windowMs <= nowMs) {
      this.#sum -= this.#amounts[gone] ?? 0
      gone += 1
    }
    if (gone === 0) return
    this.#times.splice(0, gone)
    this.#amounts.splice(0, gone)
  }
}
