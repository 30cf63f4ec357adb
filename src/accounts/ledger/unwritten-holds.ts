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
  /** The holds in order of admission. */
  readonly #holds = new Set<OpenHold>()
  #timer: NodeJS.Timeout | undefined
  /** Time before which no hold must be written, by `performance.now()`. */
  #dueAt = 0

  /** Adds a hold whose write may wait. */
  add(hold: OpenHold): void {
    if (this.#holds.size === 0) this.#dueAt = hold.admittedAt + DUE_MS
    this.#holds.add(hold)
    this.#timer ??= setTimeout(() => this.#turn(), LATEST_MS).unref()
  }

  /** Removes a hold that is being written, or whose call is settled. */
  delete(hold: OpenHold): void {
    this.#holds.delete(hold)
  }

  /** Writes the holds that are due. Call it before any other write, which then shares its commit. */
  writeDue(): void {
    if (this.#holds.size === 0) return
    const now = performance.now()
    if (now < this.#dueAt) return
    // Each write below calls `writeDue` again, which must then do nothing.
    this.#dueAt = Number.POSITIVE_INFINITY
    for (const hold of this.#holds) {
      if (now < hold.admittedAt + DUE_MS) {
        this.#dueAt = hold.admittedAt + DUE_MS
        return
      }
      void hold.whenDurable()
    }
  }

  #turn(): void {
    this.#timer = undefined
    this.writeDue()
    const [oldest] = this.#holds
    if (!oldest) return
    // Writing the other holds may have taken so long that the oldest remaining hold is due already.
    const waitMs = Math.max(oldest.admittedAt + LATEST_MS - performance.now(), 0)
    this.#timer = setTimeout(() => this.#turn(), waitMs).unref()
  }
}
