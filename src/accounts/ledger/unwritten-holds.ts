import type { OpenHold } from './open-hold.ts'

/**
 * Age at which a hold is written together with the next write. Until then its call may end, which makes the
 * write unnecessary.
 */
const DUE_MS = 30
/** Maximum age at which a hold is written even without another write. */
const LATEST_MS = 40

/**
 * Holds (reservations of quota) that are not written yet. Quick calls end before their hold would be written,
 * and holds of slow calls share a commit, usually with a settlement. One timer watches the oldest hold,
 * because a timer for each hold would cost more than it saves.
 */
export class UnwrittenHolds {
  /**
   * The first and the last of the holds in order of admission, which are linked to each other. A `Set` would keep
   * removed ones in memory, for the reason that `DenseSet` states.
   */
  #oldest: OpenHold | undefined
  #latest: OpenHold | undefined
  #timer: NodeJS.Timeout | undefined
  /** Time before which no hold must be written, by `performance.now()`. */
  #dueAt = 0

  /** Adds a hold whose write may wait. */
  add(hold: OpenHold): void {
    if (!this.#oldest) this.#dueAt = hold.admittedAt + DUE_MS
    hold.earlier = this.#latest
    if (this.#latest) this.#latest.later = hold
    else this.#oldest = hold
    this.#latest = hold
    this.#timer ??= setTimeout(() => this.#turn(), LATEST_MS).unref()
  }

  /** Removes a hold that is being written, or whose call is settled. */
  delete(hold: OpenHold): void {
    const { earlier, later } = hold
    if (earlier) earlier.later = later
    else if (this.#oldest === hold) this.#oldest = later
    if (later) later.earlier = earlier
    else if (this.#latest === hold) this.#latest = earlier
    hold.earlier = undefined
    hold.later = undefined
  }

  /** Writes the holds that are due. Call it before any other write, which then shares its commit. */
  writeDue(): void {
    if (!this.#oldest) return
    const now = performance.now()
    if (now < this.#dueAt) return
    // Each write below calls `writeDue` again, which must then do nothing.
    this.#dueAt = Number.POSITIVE_INFINITY
    for (let hold: OpenHold | undefined = this.#oldest; hold; ) {
      if (now < hold.admittedAt + DUE_MS) {
        this.#dueAt = hold.admittedAt + DUE_MS
        return
      }
      const later: OpenHold | undefined = hold.later
      void hold.whenDurable()
      hold = later
    }
  }

  #turn(): void {
    this.#timer = undefined
    this.writeDue()
    const oldest = this.#oldest
    if (!oldest) return
    // Writing the other holds may have taken so long that the oldest remaining hold is due already.
    const waitMs = Math.max(oldest.admittedAt + LATEST_MS - performance.now(), 0)
    this.#timer = setTimeout(() => this.#turn(), waitMs).unref()
  }
}
