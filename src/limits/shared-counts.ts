import type { Counted, Counts } from './counts.ts'
import type { Peers } from './peers.ts'
import { Permits } from './permits.ts'
import { Roll } from './roll.ts'
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
export class SharedCounts implements Counts {
  readonly #rolls = new Map<string, Roll<Entry>>()
  /** Those that have something to tell. */
  readonly #open = new Set<Entry>()
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

  take(counted: Counted): Verdict | Promise<Verdict> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isThere) return this.#alone(entry, true)
    if (this.#peers.isFilling) return this.#share(entry, nowMs)
    const verdict = entry.permits.take(nowMs)
    if (!verdict) return this.#wait(entry, true)
    if (entry.permits.isOpen) this.#open.add(entry)
    if (entry.permits.isLow(nowMs)) void this.#exchange(entry)
    return verdict
  }

  check(counted: Counted): Verdict | Promise<Verdict> {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (!this.#peers.isThere) return this.#alone(entry, false)
    const verdict = entry.permits.check(nowMs)
    if (!verdict) return this.#wait(entry, false)
    if (entry.permits.isOld(nowMs)) void this.#exchange(entry)
    return verdict
  }

  look({ name, whom, most }: Counted): Verdict {
    const entry = this.#rolls.get(name)?.get(whom)
    if (!entry) return { allowed: most > 0, remaining: most, resetMs: 0, waitMs: 0 }
    const { permits } = entry
    const nowMs = this.#nowMs()
    return this.#peers.isThere ? permits.look(nowMs) : permits.lookAlone(nowMs, this.#peers.nodes)
  }

  add(counted: Counted, amount: number): void {
    const nowMs = this.#nowMs()
    const entry = this.#entry(counted, nowMs)
    if (this.#peers.isThere) entry.permits.add(nowMs, amount)
    else entry.permits.addAlone(nowMs, amount)
    this.#open.add(entry)
  }

  /**
   * Tells the others what they have not heard yet, and gives back what is at hand; then does nothing more.
   */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    if (!this.#peers.isThere) return
    for (const entry of this.#open) entry.permits.retire()
    await Promise.all([...this.#open].map((entry) => this.#exchange(entry)))
  }

  #entry({ name, whom, most, windowMs }: Counted, nowMs: number): Entry {
    let roll = this.#rolls.get(name)
    if (!roll) this.#rolls.set(name, (roll = new Roll((place) => new Entry(name, place, most, windowMs))))
    const entry = roll.of(whom, nowMs)
    entry.settle(most, windowMs)
    return entry
  }

  #share(entry: Entry, nowMs: number): Verdict {
    this.#onAlone()
    const verdict = entry.permits.takeShare(nowMs, this.#peers.nodes)
    if (entry.permits.isOpen) this.#open.add(entry)
    return verdict
  }

  #alone(entry: Entry, takes: boolean): Verdict {
    this.#onAlone()
    const { permits } = entry
    const { nodes } = this.#peers
    if (!takes) return permits.lookAlone(this.#nowMs(), nodes)
    const verdict = permits.takeAlone(this.#nowMs(), nodes)
    if (permits.isOpen) this.#open.add(entry)
    return verdict
  }

  #wait(entry: Entry, takes: boolean): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<Verdict>()
    const timer = setTimeout(() => {
      // Where this node was late itself, the answer may be there already, and only not be read.
      setImmediate(() => {
        if (entry.waiting.delete(waiter)) waiter.resolve(this.#alone(entry, takes))
        if (entry.permits.isOpen) this.#open.add(entry)
      })
    }, WAIT_MS)
    const waiter: Waiter = { takes, resolve, timer }
    entry.waiting.add(waiter)
    if (!entry.isAsking) void this.#exchange(entry)
    return promise
  }

  // One at a time for each: the next one says what happened during this one.
  async #exchange(entry: Entry): Promise<void> {
    if (entry.isAsking) return
    entry.isAsking = true
    const { permits, waiting } = entry
    for (let tries = 1; tries <= TRIES; ) {
      // Who waits is not to be served from a memory that may not know of everything yet; it is told all the
      // same.
      if (this.#peers.isFilling) this.#serveShares(entry)
      const need = [...waiting].filter(({ takes }) => takes).length
      const question = permits.ask(this.#nowMs(), need, this.#peers.memory)
      const answer = await this.#peers.exchange(entry.counted, question).catch(() => undefined)
      if (answer === undefined) break
      if (answer === 'forgotten') {
        permits.unanswered()
        tries += 1
        continue
      }
      permits.answered(this.#nowMs(), question, answer)
      this.#serve(entry)
      if (waiting.size === 0) break
    }
    permits.unanswered()
    entry.isAsking = false
    for (const waiter of waiting) this.#resolve(entry, waiter, this.#alone(entry, waiter.takes))
    if (permits.isOpen) this.#open.add(entry)
  }

  #serve(entry: Entry): void {
    const nowMs = this.#nowMs()
    for (const waiter of entry.waiting) {
      const verdict = waiter.takes ? entry.permits.take(nowMs) : entry.permits.look(nowMs)
      if (!verdict) return
      this.#resolve(entry, waiter, verdict)
    }
  }

  #serveShares(entry: Entry): void {
    for (const waiter of entry.waiting) {
      const nowMs = this.#nowMs()
      this.#resolve(entry, waiter, waiter.takes ? this.#share(entry, nowMs) : entry.permits.look(nowMs))
    }
  }

  #resolve({ waiting }: Entry, waiter: Waiter, verdict: Verdict): void {
    waiting.delete(waiter)
    clearTimeout(waiter.timer)
    waiter.resolve(verdict)
  }

  #swept(): void {
    const { isThere, memory } = this.#peers
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
      } else if (!entry.permits.isOpen) this.#open.delete(entry)
    }
  }

  // What was told is lost, and has to be told again.
  #openAll(): void {
    for (const roll of this.#rolls.values()) for (const entry of roll.values()) this.#open.add(entry)
  }
}

/** Who is counted, what this node has of it, and who waits for more. */
class Entry {
  readonly waiting = new Set<Waiter>()
  isAsking = false
  #counted: Counted
  #permits: Permits

  constructor(name: string, whom: string | number, most: number, windowMs: number) {
    this.#counted = { name, whom, most, windowMs }
    this.#permits = new Permits(most, windowMs)
  }

  get counted(): Counted {
    return this.#counted
  }

  get permits(): Permits {
    return this.#permits
  }

  /** Takes over what the configuration says by now. A window of another length begins anew. */
  settle(most: number, windowMs: number): void {
    if (most === this.#counted.most && windowMs === this.#counted.windowMs) return
    if (windowMs !== this.#counted.windowMs) this.#permits = new Permits(most, windowMs)
    this.#counted = { ...this.#counted, most, windowMs }
    this.#permits.most = most
  }

  isIdle(nowMs: number): boolean {
    return !this.isAsking && this.waiting.size === 0 && this.#permits.isIdle(nowMs)
  }
}
