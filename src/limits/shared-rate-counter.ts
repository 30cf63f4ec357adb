import { type CountedLimit, type RateCounter, SubjectTable } from './rate-counter.ts'
import type { PermitPeers } from './peers.ts'
import { Permits } from './permits.ts'
import type { LimitDecision } from './sliding-window.ts'

/** Milliseconds for which a request waits for the other nodes; slightly less than the promised 50 ms. */
const WAIT_TIMEOUT_MS = 45
const SWEEP_INTERVAL_MS = 50
/** Maximum number of entries that are reported to the other nodes in one run. */
const MAX_PER_SWEEP = 500
/** Maximum number of entries per run that are checked for whether the store still contains them. */
const MAX_CHECKS = 50
/** Maximum number of attempts to report if the shared store's data is replaced meanwhile. */
const MAX_TRIES = 3

interface Waiter {
  readonly takes: boolean
  readonly timer: NodeJS.Timeout
  readonly resolve: (verdict: LimitDecision) => void
}

/**
 * Rate counter that several nodes share. Each node holds permits with which it allows requests without
 * asking. Without a permit, a request waits until the other nodes have answered, together with all requests
 * that arrive meanwhile. A node that cannot reach the others uses only its share of the limit.
 */
export class SharedRateCounter implements RateCounter {
  readonly #tables = new Map<string, SubjectTable<SubjectEntry>>()
  /** Entries with counts that must be reported to the other nodes. */
  readonly #unreported = new Set<SubjectEntry>()
  /** Entries that the shared store contains, in the order in which they are checked. */
  readonly #reported = new Set<SubjectEntry>()
  readonly #peers: PermitPeers
  readonly #onIsolated: () => void
  readonly nowMs: () => number
  readonly #waitTimeoutMs: number
  readonly #sweep: NodeJS.Timeout
  #generation: string | undefined

  /**
   * `onIsolated` is called whenever this node decides without the others. `nowMs` returns milliseconds of a
   * monotonic clock. `waitTimeoutMs` is how long a request waits for the other nodes at most.
   */
  constructor(
    peers: PermitPeers,
    onIsolated: () => void = () => {},
    nowMs: () => number = () => performance.now(),
    waitTimeoutMs = WAIT_TIMEOUT_MS,
  ) {
    this.#peers = peers
    this.#onIsolated = onIsolated
    this.nowMs = nowMs
    this.#waitTimeoutMs = waitTimeoutMs
    this.#sweep = setInterval(() => this.#runSweep(), SWEEP_INTERVAL_MS).unref()
  }

  take(counted: CountedLimit, nowMs = this.nowMs()): LimitDecision | Promise<LimitDecision> {
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#decideIsolated(entry, true)
    if (this.#peers.isRefilling) return this.#takeShare(entry, nowMs)
    const verdict = entry.permits.take(nowMs)
    if (!verdict) return this.#wait(entry, true)
    if (entry.permits.hasUnreported(nowMs)) this.#unreported.add(entry)
    if (entry.permits.isLow(nowMs) || entry.permits.isDue(nowMs, this.#peers.generation))
      void this.#exchange(entry)
    return verdict
  }

  check(counted: CountedLimit, nowMs = this.nowMs()): LimitDecision | Promise<LimitDecision> {
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#decideIsolated(entry, false)
    const verdict = entry.permits.check(nowMs)
    if (!verdict) return this.#wait(entry, false)
    if (entry.permits.isStale(nowMs)) void this.#exchange(entry)
    return verdict
  }

  peek({ name, subject, max, windowMs }: CountedLimit, nowMs = this.nowMs()): LimitDecision {
    const entry = this.#tables.get(name)?.get(subject)
    if (!entry) return { allowed: max > 0, remaining: max, resetMs: 0, waitMs: 0 }
    entry.applyLimit(max, windowMs)
    const { permits } = entry
    const { isReachable, nodes, generation } = this.#peers
    return isReachable ? permits.peek(nowMs) : permits.peekIsolated(nowMs, nodes, generation !== undefined)
  }

  add(counted: CountedLimit, amount: number, nowMs = this.nowMs()): void {
    // The call may have begun before a change of the limit, and another window would begin to count anew.
    const known = this.#tables.get(counted.name)?.get(counted.subject)
    const entry = known ?? this.#entry(counted, nowMs)
    if (this.#peers.isReachable) entry.permits.add(nowMs, amount)
    else entry.permits.addIsolated(nowMs, amount)
    this.#unreported.add(entry)
  }

  /** Reports the remaining counts, returns all permits, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    // Requests that are still being answered may bring permits, which must be returned too.
    await Promise.all([...this.#entries()].map(async ({ exchange }) => exchange))
    if (!this.#peers.isReachable) return
    for (const entry of this.#unreported) entry.permits.returnAll()
    await Promise.all([...this.#unreported].map((entry) => this.#exchange(entry)))
  }

  *#entries(): Iterable<SubjectEntry> {
    for (const table of this.#tables.values()) yield* table.values()
  }

  #entry({ name, subject, max, windowMs }: CountedLimit, nowMs: number): SubjectEntry {
    let table = this.#tables.get(name)
    if (!table)
      this.#tables.set(
        name,
        (table = new SubjectTable((subject) => new SubjectEntry(name, subject, max, windowMs))),
      )
    const entry = table.getOrCreate(subject, nowMs)
    entry.applyLimit(max, windowMs)
    return entry
  }

  #takeShare(entry: SubjectEntry, nowMs: number): LimitDecision {
    this.#onIsolated()
    const verdict = entry.permits.takeShare(nowMs, this.#peers.nodes)
    if (entry.permits.hasUnreported(nowMs)) this.#unreported.add(entry)
    return verdict
  }

  #decideIsolated(entry: SubjectEntry, takes: boolean): LimitDecision {
    this.#onIsolated()
    const { permits } = entry
    const { nodes } = this.#peers
    const nowMs = this.nowMs()
    if (!takes) return permits.peekIsolated(nowMs, nodes)
    const verdict = permits.takeIsolated(nowMs, nodes)
    if (permits.hasUnreported(nowMs)) this.#unreported.add(entry)
    return verdict
  }

  #wait(entry: SubjectEntry, takes: boolean): Promise<LimitDecision> {
    const { promise, resolve } = Promise.withResolvers<LimitDecision>()
    const timer = setTimeout(() => {
      // If the event loop was blocked, the response may have arrived without being read, so it gets one more
      // turn.
      setImmediate(() => {
        if (entry.waiting.delete(waiter)) waiter.resolve(this.#decideIsolated(entry, takes))
        if (entry.permits.hasUnreported(this.nowMs())) this.#unreported.add(entry)
      })
    }, this.#waitTimeoutMs)
    const waiter: Waiter = { takes, resolve, timer }
    entry.waiting.add(waiter)
    if (!entry.exchange) void this.#exchange(entry)
    return promise
  }

  // One request to the others per entry at a time; the next one includes what happened meanwhile.
  #exchange(entry: SubjectEntry): Promise<void> {
    return (entry.exchange ??= this.#runExchange(entry))
  }

  async #runExchange(entry: SubjectEntry): Promise<void> {
    const { waiting } = entry
    let permits = entry.permits
    for (let tries = 1; tries <= MAX_TRIES; ) {
      // A change of the limit's window replaces them.
      permits = entry.permits
      // The store may have lost counts, so waiting requests only get this node's share. The counts are still
      // reported.
      if (this.#peers.isRefilling) this.#serveShares(entry)
      const need = [...waiting].filter(({ takes }) => takes).length
      const request = permits.buildRequest(this.nowMs(), need, this.#peers.generation)
      const response = await this.#peers.exchangePermits(entry.counted, request).catch(() => undefined)
      if (response === undefined) break
      if (response === 'stale') {
        permits.failRequest()
        tries += 1
        continue
      }
      permits.applyResponse(this.nowMs(), request, response)
      if (permits.isReported(this.nowMs())) this.#reported.add(entry)
      this.#serve(entry)
      if (waiting.size === 0) break
    }
    permits.failRequest()
    entry.exchange = undefined
    for (const waiter of waiting) this.#resolve(entry, waiter, this.#decideIsolated(entry, waiter.takes))
    if (permits.hasUnreported(this.nowMs())) this.#unreported.add(entry)
  }

  #serve(entry: SubjectEntry): void {
    const nowMs = this.nowMs()
    for (const waiter of entry.waiting) {
      const verdict = waiter.takes ? entry.permits.take(nowMs) : entry.permits.peek(nowMs)
      if (!verdict) return
      this.#resolve(entry, waiter, verdict)
    }
  }

  #serveShares(entry: SubjectEntry): void {
    for (const waiter of entry.waiting) {
      const nowMs = this.nowMs()
      this.#resolve(entry, waiter, waiter.takes ? this.#takeShare(entry, nowMs) : entry.permits.peek(nowMs))
    }
  }

  #resolve({ waiting }: SubjectEntry, waiter: Waiter, verdict: LimitDecision): void {
    waiting.delete(waiter)
    clearTimeout(waiter.timer)
    waiter.resolve(verdict)
  }

  #runSweep(): void {
    const { isReachable, generation } = this.#peers
    const nowMs = this.nowMs()
    if (!isReachable) return this.#dropExpired(nowMs)
    if (generation !== this.#generation) this.#markAllUnreported()
    this.#generation = generation
    this.#checkReported(nowMs)
    let started = 0
    for (const entry of this.#unreported) {
      if (started === MAX_PER_SWEEP) return
      if (entry.exchange) continue
      if (entry.permits.isDue(nowMs, generation)) {
        started += 1
        void this.#exchange(entry)
      } else if (!entry.permits.hasUnreported(nowMs)) this.#unreported.delete(entry)
    }
  }

  // Drops some entries with nothing left to report. As nothing is reported while the others cannot be reached, they would
  // never be released.
  #dropExpired(nowMs: number): void {
    let left = Math.min(MAX_PER_SWEEP, this.#unreported.size)
    for (const entry of this.#unreported) {
      if (left-- === 0) return
      this.#unreported.delete(entry)
      if (entry.permits.hasUnreported(nowMs)) this.#unreported.add(entry)
    }
  }

  // Reports some entries again, to find out whether the store has lost them.
  #checkReported(nowMs: number): void {
    let left = Math.min(MAX_CHECKS, this.#reported.size)
    for (const entry of this.#reported) {
      if (left-- === 0) return
      this.#reported.delete(entry)
      if (!entry.permits.isReported(nowMs)) continue
      this.#reported.add(entry)
      if (!entry.exchange && entry.permits.isUnverified(nowMs)) void this.#exchange(entry)
    }
  }

  // If the store's generation has changed, it has lost earlier reports, so that every entry must be reported
  // again.
  #markAllUnreported(): void {
    for (const entry of this.#entries()) this.#unreported.add(entry)
  }
}

/** A limit of one subject (such as a key): the permits of this node, and the requests that wait for more. */
class SubjectEntry {
  readonly waiting = new Set<Waiter>()
  /** The request to the other nodes that is not answered yet. */
  exchange: Promise<void> | undefined
  #counted: CountedLimit
  #permits: Permits

  constructor(name: string, subject: string | number, max: number, windowMs: number) {
    this.#counted = { name, subject, max, windowMs }
    this.#permits = new Permits(max, windowMs)
  }

  get counted(): CountedLimit {
    return this.#counted
  }

  get permits(): Permits {
    return this.#permits
  }

  /**
   * Applies the configured limit. If the length of the window has changed, counting starts again from zero.
   */
  applyLimit(max: number, windowMs: number): void {
    if (max === this.#counted.max && windowMs === this.#counted.windowMs) return
    if (windowMs !== this.#counted.windowMs) this.#permits = new Permits(max, windowMs)
    this.#counted = { ...this.#counted, max, windowMs }
    this.#permits.max = max
  }

  isIdle(nowMs: number): boolean {
    return !this.exchange && this.waiting.size === 0 && this.#permits.isIdle(nowMs)
  }
}
