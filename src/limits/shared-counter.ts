import type { CountedLimit, LimitCounter } from './limit-counter.ts'
import type { Peers } from './peers.ts'
import { Permits } from './permits.ts'
import { ClientTable } from './client-table.ts'
import type { Verdict } from './sliding-window.ts'

/** The longest that a request waits for the others; a little less than is promised. */
const WAIT_MS = 45
const SWEEP_MS = 50
/** Exchanges that one sweep begins at most. */
const SWEPT = 500
/** How often an exchange is tried anew for a memory that was lost. */
const TRIES = 3

interface Waiter {
  readonly takes: boolean
  readonly timer: NodeJS.Timeout
  readonly resolve: (verdict: Verdict) => void
}

/**
 * Counts that several nodes share. A request is let through by a permit that is at hand, with no question
 * asked; only where none is does it wait for an exchange, all that come meanwhile for the same one. Where the
 * others cannot be reached in time, a node goes by its share.
 */
export class SharedCounter implements LimitCounter {
  readonly #rolls = new Map<string, ClientTable<SubjectEntry>>()
  /** Those that have something to tell. */
  readonly #open = new Set<SubjectEntry>()
  readonly #peers: Peers
  readonly #onAlone: () => void
  readonly #nowMs: () => number
  readonly #sweep: NodeJS.Timeout
  #memory: string | undefined

  /**
   * `onAlone` hears of each answer that was given without the others. `nowMs` is a clock that never goes
   * back.
   */
  constructor(peers: Peers, onAlone: () => void = () => {}, nowMs: () => number = () => performance.now()) {
    this.#peers = peers
    this.#onAlone = onAlone
    this.#nowMs = nowMs
    this.#sweep = setInterval(() => this.#swept(), SWEEP_MS).unref()
  }

  take(counted: CountedLimit): Verdict | Promise<Verdict> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#alone(entry, true)
    if (this.#peers.isRefilling) return this.#share(entry, nowMs)
    const verdict = entry.permits.take(nowMs)
    if (!verdict) return this.#wait(entry, true)
    if (entry.permits.hasUnreported) this.#open.add(entry)
    if (entry.permits.isLow(nowMs)) void this.#exchange(entry)
    return verdict
  }

  check(counted: CountedLimit): Verdict | Promise<Verdict> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isReachable) return this.#alone(entry, false)
    const verdict = entry.permits.check(nowMs)
    if (!verdict) return this.#wait(entry, false)
    if (entry.permits.isStale(nowMs)) void this.#exchange(entry)
    return verdict
  }

  peek({ name, subject: whom, max: most }: CountedLimit): Verdict {
    const entry = this.#rolls.get(name)?.get(whom)
    if (!entry) return { allowed: most > 0, remaining: most, resetMs: 0, waitMs: 0 }
    const { permits } = entry
    const nowMs = this.#nowMs()
    return this.#peers.isReachable ? permits.peek(nowMs) : permits.peekIsolated(nowMs, this.#peers.nodes)
  }

  add(counted: CountedLimit, amount: number): void {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (this.#peers.isReachable) entry.permits.add(nowMs, amount)
    else entry.permits.addIsolated(nowMs, amount)
    this.#open.add(entry)
  }

  /**
   * Tells the others what they have not heard yet, and gives back what is at hand; then does nothing more.
   */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    if (!this.#peers.isReachable) return
    for (const entry of this.#open) entry.permits.returnAll()
    await Promise.all([...this.#open].map((entry) => this.#exchange(entry)))
  }

  #entry({ name, subject: whom, max: most, windowMs }: CountedLimit, nowMs: number): SubjectEntry {
    let roll = this.#rolls.get(name)
    if (!roll) this.#rolls.set(name, (roll = new ClientTable((place) => new SubjectEntry(name, place, most, windowMs))))
    const entry = roll.getOrCreate(whom, nowMs)
    entry.settle(most, windowMs)
    return entry
  }

  #share(entry: SubjectEntry, nowMs: number): Verdict {
    this.#onAlone()
    const verdict = entry.permits.takeShare(nowMs, this.#peers.nodes)
    if (entry.permits.hasUnreported) this.#open.add(entry)
    return verdict
  }

  #alone(entry: SubjectEntry, takes: boolean): Verdict {
    this.#onAlone()
    const { permits } = entry
    const { nodes } = this.#peers
    if (!takes) return permits.peekIsolated(this.#nowMs(), nodes)
    const verdict = permits.takeIsolated(this.#nowMs(), nodes)
    if (permits.hasUnreported) this.#open.add(entry)
    return verdict
  }

  #wait(entry: SubjectEntry, takes: boolean): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<Verdict>()
    const timer = setTimeout(() => {
      // Where this node was late itself, the answer may be there already, and only not be read.
      setImmediate(() => {
        if (entry.waiting.delete(waiter)) waiter.resolve(this.#alone(entry, takes))
        if (entry.permits.hasUnreported) this.#open.add(entry)
      })
    }, WAIT_MS)
    const waiter: Waiter = { takes, resolve, timer }
    entry.waiting.add(waiter)
    if (!entry.isAsking) void this.#exchange(entry)
    return promise
  }

  // One at a time for each: the next one says what happened during this one.
  async #exchange(entry: SubjectEntry): Promise<void> {
    if (entry.isAsking) return
    entry.isAsking = true
    const { permits, waiting } = entry
    for (let tries = 1; tries <= TRIES; ) {
      // Who waits is not to be served from a memory that may not know of everything yet; it is told all the
      // same.
      if (this.#peers.isRefilling) this.#serveShares(entry)
      const need = [...waiting].filter(({ takes }) => takes).length
      const question = permits.buildRequest(this.#nowMs(), need, this.#peers.generation)
      const answer = await this.#peers.exchange(entry.counted, question).catch(() => undefined)
      if (answer === undefined) break
      if (answer === 'stale') {
        permits.failRequest()
        tries += 1
        continue
      }
      permits.applyResponse(this.#nowMs(), question, answer)
      this.#serve(entry)
      if (waiting.size === 0) break
    }
    permits.failRequest()
    entry.isAsking = false
    for (const waiter of waiting) this.#resolve(entry, waiter, this.#alone(entry, waiter.takes))
    if (permits.hasUnreported) this.#open.add(entry)
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
      this.#resolve(entry, waiter, waiter.takes ? this.#share(entry, nowMs) : entry.permits.peek(nowMs))
    }
  }

  #resolve({ waiting }: SubjectEntry, waiter: Waiter, verdict: Verdict): void {
    waiting.delete(waiter)
    clearTimeout(waiter.timer)
    waiter.resolve(verdict)
  }

  #swept(): void {
    const { isReachable: isThere, generation: memory } = this.#peers
    if (!isThere) return
    if (memory !== this.#memory) this.#openAll()
    this.#memory = memory
    const nowMs = this.#nowMs()
    let begun = 0
    for (const entry of this.#open) {
      if (begun === SWEPT) return
      if (entry.isAsking) continue
      if (entry.permits.isDue(nowMs, memory)) {
        begun += 1
        void this.#exchange(entry)
      } else if (!entry.permits.hasUnreported) this.#open.delete(entry)
    }
  }

  // What was told is lost, and has to be told again.
  #openAll(): void {
    for (const roll of this.#rolls.values()) for (const entry of roll.values()) this.#open.add(entry)
  }
}

/** Who is counted, what this node has of it, and who waits for more. */
class SubjectEntry {
  readonly waiting = new Set<Waiter>()
  isAsking = false
  #counted: CountedLimit
  #permits: Permits

  constructor(name: string, whom: string | number, most: number, windowMs: number) {
    this.#counted = { name, subject: whom, max: most, windowMs }
    this.#permits = new Permits(most, windowMs)
  }

  get counted(): CountedLimit {
    return this.#counted
  }

  get permits(): Permits {
    return this.#permits
  }

  /** Takes over what the configuration says by now. A window of another length begins anew. */
  settle(most: number, windowMs: number): void {
    if (most === this.#counted.max && windowMs === this.#counted.windowMs) return
    if (windowMs !== this.#counted.windowMs) this.#permits = new Permits(most, windowMs)
    this.#counted = { ...this.#counted, max: most, windowMs }
    this.#permits.max = most
  }

  isIdle(nowMs: number): boolean {
    return !this.isAsking && this.waiting.size === 0 && this.#permits.isIdle(nowMs)
  }
}
