/** Division of a window into slots; amounts within a slot count at its end. */
export interface Slots {
  readonly widthMs: number
  /** Number of future slots for which a node may hold permits. */
  readonly ahead: number
}

/** Number of slots in a window; enough that at most a hundredth of the limit is lost. */
const SLOTS = 128
const MIN_SLOT_MS = 20
/** Time for which permits may be held unused. */
const AHEAD_MS = 10_000
const AHEAD_SHARE = 1 / 4

/** Slots of a window of this length. */
export function bucketsOf(windowMs: number): Slots {
  const widthMs = Math.max(1, Math.ceil(Math.max(windowMs / SLOTS, Math.min(MIN_SLOT_MS, windowMs / 16))))
  const aheadMs = Math.min(AHEAD_MS, windowMs * AHEAD_SHARE)
  return { widthMs, ahead: Math.max(1, Math.floor(aheadMs / widthMs)) }
}

/** Report of one node about a limit, with its request for permits. */
export interface PermitRequest {
  readonly max: number
  readonly windowMs: number
  /** Version of the window below which data was lost; 0 if the window may be missing. */
  readonly known: number
  /** Slot to which the node's permits belong. */
  readonly slot: number
  /** Permits of that slot: used since the last report, returned, and kept. */
  readonly used: number
  readonly returned: number
  readonly kept: number
  /** Use without a permit, with its age. */
  readonly added: readonly (readonly [agoMs: number, amount: number])[]
  /** Permits for which calls wait, and permits wanted in total. */
  readonly need: number
  readonly want: number
}

/** Use of a limit by all nodes, after a request was applied. */
export interface PermitResponse {
  /** Time of the server's clock, in milliseconds. */
  readonly nowMs: number
  /** Rises with each change of the window. */
  readonly version: number
  readonly granted: number
  /** Slot to which kept and granted permits belong. */
  readonly slot: number
  /** Amounts by slot, ascending; future slots are permits in stock. */
  readonly amounts: readonly (readonly [slot: number, amount: number])[]
}
