/** A stretch of time that shared counts put together: all within it count as if they had come at its end. */
export interface Slots {
  readonly widthMs: number
  /** How far ahead a node may have permits at hand. */
  readonly ahead: number
}

/** Slots of a window: narrow enough that no more than a hundredth of it is lost. */
const SLOTS = 128
const NARROW_MS = 20
/** For how long permits may be at hand unused. */
const AHEAD_MS = 10_000
const AHEAD_SHARE = 1 / 4

/** How a window of this length is divided. */
export function slotsOf(windowMs: number): Slots {
  const widthMs = Math.max(1, Math.ceil(Math.max(windowMs / SLOTS, Math.min(NARROW_MS, windowMs / 16))))
  const aheadMs = Math.min(AHEAD_MS, windowMs * AHEAD_SHARE)
  return { widthMs, ahead: Math.max(1, Math.floor(aheadMs / widthMs)) }
}

/** What a node tells of its part in a limit, and what it asks for. */
export interface ShareRequest {
  readonly max: number
  readonly windowMs: number
  /** The slot that its permits are counted in. */
  readonly slot: number
  /**
   * Permits of that slot which were used since it told last, which it gives back, and which it wants to keep.
   */
  readonly used: number
  readonly returned: number
  readonly kept: number
  /** What was used without a permit, and how long ago. */
  readonly added: readonly (readonly [agoMs: number, amount: number])[]
  /** Permits that are waited for, and that it would like to have at hand. */
  readonly need: number
  readonly want: number
}

/** What all nodes together have used of a limit, after it. */
export interface ShareResponse {
  /** By the clock that all share, in milliseconds. */
  readonly nowMs: number
  readonly granted: number
  /** The slot that permits, those kept and those granted, are counted in. */
  readonly slot: number
  /** Slot and amount, ascending; those in the future are permits at hand. */
  readonly amounts: readonly (readonly [slot: number, amount: number])[]
}
