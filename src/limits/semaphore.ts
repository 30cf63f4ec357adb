/** A limit on the number of calls under way, and its subject. */
export interface ParallelLimit {
  /** Name of the subject: `key:17`. */
  readonly subject: string
  /** Always above 0. */
  readonly max: number
}

/** Counts the calls under way by subject; each call has a place. */
export interface Semaphore {
  /**
   * Takes a place if one is free. Returns a promise only if other nodes have to be asked; it never rejects.
   */
  take(limit: ParallelLimit): boolean | Promise<boolean>
  /** Releases a place that was taken. */
  give(subject: string): void
  /** Releases all places, and stops. */
  close(): Promise<void>
}

/** Places of a node that runs alone: in memory, exact, and always answered synchronously. */
export class LocalSemaphore implements Semaphore {
  readonly #held = new Map<string, number>()

  take({ subject, max }: ParallelLimit): boolean {
    const held = this.#held.get(subject) ?? 0
    if (held >= max) return false
    this.#held.set(subject, held + 1)
    return true
  }

  give(subject: string): void {
    const rest = (this.#held.get(subject) ?? 0) - 1
    if (rest > 0) this.#held.set(subject, rest)
    else this.#held.delete(subject)
  }

  close(): Promise<void> {
    this.#held.clear()
    return Promise.resolve()
  }
}
