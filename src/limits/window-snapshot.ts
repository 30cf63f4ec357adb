import type { ShareResponse } from './share-messages.ts'

/**
 * What all nodes together were known to have used at some moment, as it leaves the window. Times are of the
 * node's clock.
 */
export class WindowSnapshot {
  /** When an amount leaves the window, ascending. */
  readonly #leaving: readonly (readonly [atMs: number, amount: number])[]

  constructor(leaving: readonly (readonly [atMs: number, amount: number])[]) {
    this.#leaving = leaving
  }

  /** What of it is in the window still. */
  used(nowMs: number): number {
    let sum = 0
    for (const [atMs, amount] of this.#leaving) if (atMs > nowMs) sum += amount
    return sum
  }

  /** Milliseconds until `amount` is free of `most`; 0 where it is. */
  waitMs(nowMs: number, most: number, amount: number): number {
    let missing = this.used(nowMs) + amount - most
    if (missing <= 0) return 0
    for (const [atMs, left] of this.#leaving) {
      if (atMs <= nowMs) continue
      missing -= left
      if (missing <= 0) return Math.ceil(atMs - nowMs)
    }
    return 0
  }

  /** Milliseconds until nothing is left of it in the window. */
  resetMs(nowMs: number): number {
    return Math.max(0, Math.ceil((this.#leaving.at(-1)?.[0] ?? nowMs) - nowMs))
  }
}

/** What an answer that came at `nowMs` tells. */
export function snapshotFrom(answer: ShareResponse, nowMs: number, widthMs: number, windowMs: number): WindowSnapshot {
  const aheadMs = nowMs - answer.nowMs
  return new WindowSnapshot(answer.amounts.map(([slot, amount]) => [slot * widthMs + windowMs + aheadMs, amount]))
}
