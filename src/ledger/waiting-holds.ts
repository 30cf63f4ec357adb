import type { OpenHold } from './open-hold.ts'

/** How long a hold waits for the end of its call; then it is written with whatever is written next. */
const DUE_MS = 30
/** How long it waits for company after that, counted from its admission. */
const LATEST_MS = 40

/**
 * Holds that nothing has been written of yet: quick calls end before it would be, and those of slow calls
 * share a commit, most often a settlement's. One timer watches the oldest: one for each would cost more than
 * it saves.
 */
export class WaitingHolds {
  /** In the order of their admission. */
  readonly #holds = new Set<OpenHold>()
  #timer: NodeJS.Timeout | undefined
  /** No hold is due before, by `performance.now()`. */
  #dueAt = 0

  /** Takes a hold whose write may wait. */
  add(hold: OpenHold): void {
    if (this.#holds.size === 0) this.#dueAt = hold.admittedAt + DUE_MS
    this.#holds.add(hold)
    this.#timer ??= setTimeout(() => this.#turn(), LATEST_MS).unref()
  }

  /** Forgets a hold that is being written, or whose call is settled. */
  delete(hold: OpenHold): void {
    this.#holds.delete(hold)
  }

  /** Has the holds written that are due. Call before any other write, which then shares its commit. */
  writeDue(): void {
    if (this.#holds.size === 0) return
    const now = performance.now()
    if (now < this.#dueAt) return
    // Each of these writes asks for those that are due, too.
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
    // Writing the others may have taken longer than this one may wait.
    const waitMs = Math.max(oldest.admittedAt + LATEST_MS - performance.now(), 0)
    this.#timer = setTimeout(() => this.#turn(), waitMs).unref()
  }
}
