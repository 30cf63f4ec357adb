import type { ShareResponse } from './share-messages.ts'

/** Use by all nodes as of one moment, as it expires from the window. Times are of this node's clock. */
export class WindowSnapshot {
  /** Time of expiry and amount, ascending. */
  readonly #expiries: readonly (readonly [atMs: number, amount: number])[]

  readonly #version: number

  constructor(expiries: readonly (readonly [atMs: number, amount: number])[], version = 0) {
    this.#expiries = expiries
    this.#version = version
  }

  /** Version below which the window has lost data; 0 once it has expired, and may be missing. */
  version(nowMs: number): number {
    return this.used(nowMs) > 0 ? this.#version : 0
  }

  /** Amount that is still in the window. */
  used(nowMs: number): number {
    let sum = 0
    for (const [atMs, amount] of this.#expiries) if (atMs > nowMs) sum += amount
    return sum
  }

  /** Milliseconds until `amount` of `max` is free; 0 if it is now. */
  waitMs(nowMs: number, max: number, amount: number): number {
    let missing = this.used(nowMs) + amount - max
    if (missing <= 0) return 0
    for (const [atMs, expired] of this.#expiries) {
      if (atMs <= nowMs) continue
      missing -= expired
      if (missing <= 0) return Math.ceil(atMs - nowMs)
    }
    return 0
  }

  /** Milliseconds until the window is empty. */
  resetMs(nowMs: number): number {
    return Math.max(0, Math.ceil((this.#expiries.at(-1)?.[0] ?? nowMs) - nowMs))
  }
}

/** Converts a response that arrived at `nowMs`. */
export function snapshotFrom(
  response: ShareResponse,
  nowMs: number,
  widthMs: number,
  windowMs: number,
): WindowSnapshot {
  const aheadMs = nowMs - response.nowMs
  return new WindowSnapshot(
    response.amounts.map(([slot, amount]) => [slot * widthMs + windowMs + aheadMs, amount]),
    response.version,
  )
}
