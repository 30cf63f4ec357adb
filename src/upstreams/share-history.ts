/** Number of minutes that are stored, including the current one. */
export const HISTORY_MINUTES = 60
/**
 * Maximum number of names (pairs of channel and key) for which minutes are stored; beyond it, the oldest name
 * is forgotten.
 */
const MAX_NAMES = 10_000
/** Value for a minute in which no share was noted. */
const NOTHING = 255

interface Ring {
  /** The latest minute with a value, counted from 1970-01-01. */
  minute: number
  /** Percentages, each at the index `minute % HISTORY_MINUTES`. */
  readonly percents: Uint8Array
}

/** The smallest share of a rate limit that was left, for each name and each minute of the last hour. */
export class ShareHistory {
  readonly #rings = new Map<string, Ring>()

  /** Notes the share of a rate limit that is left, from 0 to 1. */
  note(name: string, nowMs: number, share: number): void {
    const minute = minuteOf(nowMs)
    let ring = this.#rings.get(name)
    if (!ring) {
      ring = { minute, percents: new Uint8Array(HISTORY_MINUTES).fill(NOTHING) }
      this.#rings.set(name, ring)
      this.#forgetOldest()
    }
    advance(ring, minute)
    const at = minute % HISTORY_MINUTES
    ring.percents[at] = Math.min(ring.percents[at] ?? NOTHING, Math.round(share * 100))
  }

  /**
   * The smallest share in each minute of the last hour in percent, the oldest minute first; null for a minute
   * in which none was noted.
   */
  of(name: string, nowMs: number): readonly (number | null)[] {
    const ring = this.#rings.get(name)
    const latest = minuteOf(nowMs)
    return Array.from({ length: HISTORY_MINUTES }, (_, index) => {
      const minute = latest - HISTORY_MINUTES + 1 + index
      if (!ring || minute > ring.minute || minute <= ring.minute - HISTORY_MINUTES) return null
      const percent = ring.percents[minute % HISTORY_MINUTES] ?? NOTHING
      return percent === NOTHING ? null : percent
    })
  }

  #forgetOldest(): void {
    if (this.#rings.size <= MAX_NAMES) return
    for (const oldest of this.#rings.keys()) {
      this.#rings.delete(oldest)
      break
    }
  }
}

/**
 * Moves on to a later minute. Removes the values at the indexes of the minutes in between, because they are
 * those of an hour before.
 */
function advance(ring: Ring, minute: number): void {
  for (let gap = Math.min(minute - ring.minute, HISTORY_MINUTES); gap > 0; gap -= 1)
    ring.percents[(minute - gap + 1) % HISTORY_MINUTES] = NOTHING
  ring.minute = Math.max(ring.minute, minute)
}

function minuteOf(ms: number): number {
  return Math.floor(ms / 60_000)
}
