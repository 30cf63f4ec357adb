import { type CountedLimit, type RateCounter, SubjectTable } from './rate-counter.ts'
import type { PermitPeers } from './peers.ts'
import { Permits } from './permits.ts'
import type { LimitDecision } from './sliding-window.ts'

/** Default timeout of a request that waits for other nodes, slightly below the promised 50 ms. */
const WAIT_TIMEOUT_MS = 45
const SWEEP_INTERVAL_MS = 50
/** Maximum number of exchanges that one sweep starts. */
const MAX_PER_SWEEP = 500
/** Maximum number of windows that one sweep checks. */
const MAX_CHECKS = 50
/** Maximum number of attempts while the generation changes. */
const MAX_TRIES = 3

interface Waiter {
  readonly takes: boolean
  readonly timer: NodeJS.Timeout
  readonly resolve: (verdict: LimitDecision) => void
}

/**
 * Counter that nodes share. A permit in stock lets a request through without asking; otherwise the request
 * waits for an exchange, together with all requests that arrive until then. A node that cannot reach the
 * others keeps to its share.
 */
export class SharedRateCounter implements RateCounter {
  readonly #tables = new Map<string, SubjectTable<SubjectEntry>>()
  /** Entries with something to report. */
  readonly #unreported = new Set<SubjectEntry>()
  /** Entries whose use the shared store contains; the next one to be checked comes first. */
  readonly #reported = new Set<SubjectEntry>()
  readonly #peers: PermitPeers
  readonly #onIsolated: () => void
  readonly #nowMs: () => number
  readonly #waitTimeoutMs: number
  readonly #sweep: NodeJS.Timeout
  #generation: string | undefined

  /**
   * `onIsolated` is called for each verdict given without the other nodes. `nowMs` is a monotonic clock.
   * `waitTimeoutMs` is the maximum time for which a request waits for the others.
   */
  constructor(
    peers: PermitPeers,
    onIsolated: () => void = () => {},
    nowMs: () => number = () => performance.now(),
    waitTimeoutMs = WAIT_TIMEOUT_MS,
  ) {
    this.#peers = peers
    this.#onIsolated = onIsolated
    this.#nowMs = nowMs
    this.#waitTimeoutMs = waitTimeoutMs
    this.#sweep = setInterval(() => this.#runSweep(), SWEEP_INTERVAL_MS).unref()
  }

  take(counted: CountedLimit): LimitDecision | Promise<LimitDecision> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#decideIsolated(entry, true)
    if (this.#peers.isRefilling) return this.#takeShare(entry, nowMs)
    const verdict = entry.permits.take(nowMs)
    if (!verdict) return this.#wait(entry, true)
    if (entry.permits.hasUnreported) this.#unreported.add(entry)
    if (entry.permits.isLow(nowMs)) void this.#exchange(entry)
    return verdict
  }

  check(counted: CountedLimit): LimitDecision | Promise<LimitDecision> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#decideIsolated(entry, false)
    const verdict = entry.permits.check(nowMs)
    if (!verdict) return this.#wait(entry, false)
    if (entry.permits.isStale(nowMs)) void this.#exchange(entry)
    return verdict
  }

  peek({ name, subject, max }: CountedLimit): LimitDecision {
    const entry = this.#tables.get(name)?.get(subject)
    if (!entry) return { allowed: max > 0, remaining: max, resetMs: 0, waitMs: 0 }
    const { permits } = entry
    const nowMs = this.#nowMs()
    return this.#peers.isReachable ? permits.peek(nowMs) : permits.peekIsolated(nowMs, this.#peers.nodes)
  }

  add(counted: CountedLimit, amount: number): void {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (this.#peers.isReachable) entry.permits.add(nowMs, amount)
    else entry.permits.addIsolated(nowMs, amount)
    this.#unreported.add(entry)
  }

  /** Reports the remaining use, returns all permits, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    // Running exchanges may grant permits, which must be returned as well.
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
    if (entry.permits.hasUnreported) this.#unreported.add(entry)
    return verdict
  }

  #decideIsolated(entry: SubjectEntry, takes: boolean): LimitDecision {
    this.#onIsolated()
    const { permits } = entry
    const { nodes } = this.#peers
    if (!takes) return permits.peekIsolated(this.#nowMs(), nodes)
    const verdict = permits.takeIsolated(this.#nowMs(), nodes)
    if (permits.hasUnreported) this.#unreported.add(entry)
    return verdict
  }

  #wait(entry: SubjectEntry, takes: boolean): Promise<LimitDecision> {
    const { promise, resolve } = Promise.withResolvers<LimitDecision>()
    const timer = setTimeout(() => {
      // After a blocked event loop the response may have arrived without being read yet, so it gets one more
      // turn.
      setImmediate(() => {
        if (entry.waiting.delete(waiter)) waiter.resolve(this.#decideIsolated(entry, takes))
        if (entry.permits.hasUnreported) this.#unreported.add(entry)
      })
    }, this.#waitTimeoutMs)
    const waiter: Waiter = { takes, resolve, timer }
    entry.waiting.add(waiter)
    if (!entry.exchange) void this.#exchange(entry)
    return promise
  }

  // Runs one exchange of an entry at a time; the next one reports what happened during it.
  #exchange(entry: SubjectEntry): Promise<void> {
    return (entry.exchange ??= this.#runExchange(entry))
  }

  async #runExchange(entry: SubjectEntry): Promise<void> {
    const { permits, waiting } = entry
    for (let tries = 1; tries <= MAX_TRIES; ) {
      // A new generation may lack counts, so waiting requests get this node's share, and the use is still
      // reported.
      if (this.#peers.isRefilling) this.#serveShares(entry)
      const need = [...waiting].filter(({ takes }) => takes).length
      const request = permits.buildRequest(this.#nowMs(), need, this.#peers.generation)
      const response = await this.#peers.exchangePermits(entry.counted, request).catch(() => undefined)
      if (response === undefined) break
      if (response === 'stale') {
        permits.failRequest()
        tries += 1
        continue
      }
      permits.applyResponse(this.#nowMs(), request, response)
      if (permits.isReported(this.#nowMs())) this.#reported.add(entry)
      this.#serve(entry)
      if (waiting.size === 0) break
    }
    permits.failRequest()
    entry.exchange = undefined
    for (const waiter of waiting) this.#resolve(entry, waiter, this.#decideIsolated(entry, waiter.takes))
    if (permits.hasUnreported) this.#unreported.add(entry)
  }

  #serve(entry: SubjectEntry): void {
    const nowMs = this.#nowMs()
    for (const waiter of entry.waiting) {
      const verdict = waiter.takes ? entry.permits.take(nowMs) : entry.permits.peek(nowMs)
      if (!verdict) return
      this.#resolve(entry, waiter, verdict)
    }
  }

  #serveShares(entry: SubjectEntry): void {
    for (const waiter of entry.waiting) {
      const nowMs = this.#nowMs()
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
    if (!isReachable) return
    if (generation !== this.#generation) this.#markAllUnreported()
    this.#generation = generation
    const nowMs = this.#nowMs()
    this.#checkReported(nowMs)
    let started = 0
    for (const entry of this.#unreported) {
      if (started === MAX_PER_SWEEP) return
      if (entry.exchange) continue
      if (entry.permits.isDue(nowMs, generation)) {
        started += 1
        void this.#exchange(entry)
      } else if (!entry.permits.hasUnreported) this.#unreported.delete(entry)
    }
  }

  // An exchange finds out whether the store has lost what was reported.
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

  // Earlier reports are lost with the generation, so every entry must report again.
  #markAllUnreported(): void {
    for (const entry of this.#entries()) this.#unreported.add(entry)
  }
}

/** One subject of a limit: its permits on this node, and the requests that wait for more. */
class SubjectEntry {
  readonly waiting = new Set<Waiter>()
  /** The running exchange. */
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

  /** Applies the configured limit. A window with another length starts empty. */
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
