import type { SlotPeers } from './peers.ts'

/** A limit on the number of calls that run at the same time, and whom it limits. */
export interface ParallelLimit {
  /** Whom it limits, such as `key:17`. */
  readonly subject: string
  /** Maximum number of running calls; always above 0. */
  readonly max: number
}

/** Counts the running calls of each subject (such as a key); each running call occupies a slot. */
export interface Semaphore {
  /**
   * Occupies a slot if one is free. Returns a promise only if other nodes must be asked; it never rejects.
   */
  take(limit: ParallelLimit): boolean | Promise<boolean>
  /** Whether all slots are occupied, by what this node knows. Does not occupy a slot. */
  isFull(limit: ParallelLimit): boolean
  /** Releases a slot that was taken. */
  give(subject: string): void
  /** Releases all slots of this node, and stops. */
  close(): Promise<void>
}

/** Semaphore for a node without others: in memory, exact, and always synchronous. */
export class LocalSemaphore implements Semaphore {
  readonly #held = new Map<string, number>()

  take({ subject, max }: ParallelLimit): boolean {
    const held = this.#held.get(subject) ?? 0
    if (held >= max) return false
    this.#held.set(subject, held + 1)
    return true
  }

  isFull({ subject, max }: ParallelLimit): boolean {
    return (this.#held.get(subject) ?? 0) >= max
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

const SWEEP_INTERVAL_MS = 100
/** Maximum number of subjects that are reported to the other nodes in one run. */
const MAX_PER_SWEEP = 500
/** Maximum number of attempts to report if the shared store's data is replaced meanwhile. */
const MAX_TRIES = 3

/** Tells a call that waits for a slot whether it got one. */
type Waiter = (isAdmitted: boolean) => void

/** A subject (such as a key): its slots on this node, and its calls that wait for one. */
interface SubjectEntry {
  readonly subject: string
  max: number
  held: number
  readonly waiting: Waiter[]
  /** Number of slots that this node last reported; undefined if the last report failed. */
  reported: number | undefined
  reportedMs: number
  exchange: Promise<void> | undefined
}

/**
 * A semaphore that several nodes share. Each report to the others states how many slots this node occupies,
 * so that a lost report does no lasting harm, and requests as many more as calls are waiting. Slots of a node
 * that sends no heartbeats are not counted any more. A node that cannot reach the others uses only its share
 * of the limit, but at least one slot.
 */
export class SharedSemaphore implements Semaphore {
  readonly #entries = new Map<string, SubjectEntry>()
  readonly #peers: SlotPeers
  readonly #onIsolated: () => void
  readonly #sweep: NodeJS.Timeout
  #generation: string | undefined

  /** `onIsolated` is called whenever this node decides without the others. */
  constructor(peers: SlotPeers, onIsolated: () => void = () => {}) {
    this.#peers = peers
    this.#onIsolated = onIsolated
    this.#sweep = setInterval(() => this.#runSweep(), SWEEP_INTERVAL_MS).unref()
  }

  take({ subject, max }: ParallelLimit): boolean | Promise<boolean> {
    const entry = this.#entry(subject, max)
    if (!this.#peers.isReachable) return this.#takeShare(entry)
    if (this.#peers.isRefilling) {
      const isAdmitted = this.#takeShare(entry)
      void this.#exchange(entry)
      return isAdmitted
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    entry.waiting.push(resolve)
    void this.#exchange(entry)
    return promise
  }

  isFull({ subject, max }: ParallelLimit): boolean {
    return (this.#entries.get(subject)?.held ?? 0) >= max
  }

  give(subject: string): void {
    const entry = this.#entries.get(subject)
    if (!entry || entry.held === 0) return
    entry.held -= 1
    if (this.#peers.isReachable) void this.#exchange(entry)
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep)
    await Promise.all([...this.#entries.values()].flatMap(({ exchange }) => exchange ?? []))
    if (!this.#peers.isReachable) return
    for (const entry of this.#entries.values()) entry.held = 0
    await Promise.all([...this.#entries.values()].map((entry) => this.#exchange(entry)))
  }

  #entry(subject: string, max: number): SubjectEntry {
    let entry = this.#entries.get(subject)
    if (!entry) {
      entry = { subject, max, held: 0, waiting: [], reported: 0, reportedMs: 0, exchange: undefined }
      this.#entries.set(subject, entry)
    }
    entry.max = max
    return entry
  }

  #takeShare(entry: SubjectEntry): boolean {
    this.#onIsolated()
    const share = Math.max(1, Math.floor(entry.max / this.#peers.nodes))
    const isAdmitted = entry.held < share
    if (isAdmitted) entry.held += 1
    return isAdmitted
  }

  // One report per subject at a time; the next one includes what happened meanwhile.
  #exchange(entry: SubjectEntry): Promise<void> {
    return (entry.exchange ??= this.#runExchange(entry).finally(() => {
      entry.exchange = undefined
      // Calls may have arrived after the report was answered.
      if (entry.waiting.length > 0) void this.#exchange(entry)
      else if (entry.held === 0 && entry.reported === 0) this.#entries.delete(entry.subject)
    }))
  }

  async #runExchange(entry: SubjectEntry): Promise<void> {
    const { subject, waiting } = entry
    for (let tries = 1; tries <= MAX_TRIES; ) {
      // The store has lost its data, so slots of nodes that have not reported again are missing.
      if (this.#peers.isRefilling) this.#decideIsolated(entry)
      const { held, max, reported } = entry
      const want = waiting.length
      const granted = await this.#peers
        .exchangeSlots(subject, { held, want, reported, max })
        .catch(() => undefined)
      if (granted === undefined) {
        entry.reported = undefined
        break
      }
      if (granted === 'stale') {
        entry.reported = undefined
        tries += 1
        continue
      }
      for (const [slot, decide] of waiting.splice(0, want).entries()) {
        const isAdmitted = slot < granted
        if (isAdmitted) entry.held += 1
        decide(isAdmitted)
      }
      entry.reported = held + granted
      entry.reportedMs = performance.now()
      if (waiting.length === 0 && entry.held === entry.reported) return
    }
    this.#decideIsolated(entry)
  }

  #decideIsolated(entry: SubjectEntry): void {
    for (const decide of entry.waiting.splice(0)) decide(this.#takeShare(entry))
  }

  #runSweep(): void {
    const { isReachable, generation } = this.#peers
    if (!isReachable) return
    // If the store's generation has changed, it has lost earlier reports.
    const isNew = generation !== this.#generation
    this.#generation = generation
    const dueMs = performance.now() - this.#peers.refreshMs
    let started = 0
    for (const entry of this.#entries.values()) {
      if (isNew && entry.held > 0) entry.reported = undefined
      if (started === MAX_PER_SWEEP || entry.exchange) continue
      if (entry.reported === entry.held && entry.reportedMs > dueMs) continue
      started += 1
      void this.#exchange(entry)
    }
  }
}
