import { setTimeout as delay } from 'node:timers/promises'
import type { Bank, Loan, LoanRequest } from '../store/bank.ts'
import type { NodeFile, OutboxEntry } from '../store/node-file.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { LeaseTable } from './lease-table.ts'
import { LoanQueue } from './loan-queue.ts'
import type { OpenHold } from './open-hold.ts'

/** How often the bank is told what was settled, at the latest, and how much it is told at a time. */
const REPORT_MS = 200
const REPORT_ROWS = 500
/** How often it hears of us where there is nothing to tell. */
const HEARTBEAT_MS = 2_000
/** How often everything is compared, and nodes that are gone are looked after. */
const COMPARE_MS = 10_000
/** Silence after which the bank may soon fence this node; it does so after 60 s by its own clock. */
const FENCE_MS = 50_000
/** Between attempts to reach a bank that is away. */
const AGAIN_MS = 250
/** How long it is tried, at the end, to report what is left and give everything back. */
const FAREWELL_MS = 2_000
/** How long somebody who wants to see what was just settled waits for its report. */
const FLUSH_MS = 1_000

/** What the teller works with. */
export interface BankClientParts {
  readonly bank: Bank
  readonly file: NodeFile
  readonly openHolds: () => Iterable<OpenHold>
  /**
   * Hears what could not be done, once for each time that the bank goes away, and of its return (undefined).
   */
  readonly onReachabilityChange: (trouble: Error | undefined) => void
  /**
   * Hears of calls of tokens that are not in this database, as after an older copy of it was put back: nobody
   * can be charged.
   */
  readonly onUnknownTokens: (calls: readonly OutboxEntry[]) => void
}

/**
 * The one queue between this node and the bank, in which one thing happens at a time: loans first, then
 * reports, and what goes back strictly after the report before it. What the bank says is therefore always the
 * latest word.
 */
export class BankClient {
  readonly leases: LeaseTable
  readonly #parts: BankClientParts
  readonly #loans = new LoanQueue()
  #validUntilMs = Number.NEGATIVE_INFINITY
  #reportedMs = Number.NEGATIVE_INFINITY
  #comparedMs = Number.NEGATIVE_INFINITY
  /** What the bank believes is in doubt. */
  #mustCompare = true
  #lookedMs = Number.NEGATIVE_INFINITY
  /** The outbox may hold something. */
  #hasOutbox = true
  /** The last entry of it that the bank has counted. */
  #reportedPlace = 0
  /** Calls settled since the outbox was looked into. */
  #settled = 0
  /** It holds more than was reported at once. */
  #isBehind = false
  #flushes: (() => void)[] = []
  #isAway = false
  #isStopping = false
  #wake = Promise.withResolvers<void>()
  #running: Promise<void> | undefined
  #onForgotten: (accounts: readonly string[]) => void = () => {}

  constructor(parts: BankClientParts) {
    this.#parts = parts
    this.leases = new LeaseTable(() => this.mayBeFenced)
  }

  /** The bank may have given this node up, or is about to: nothing borrowed may be spent. */
  get mayBeFenced(): boolean {
    return performance.now() > this.#validUntilMs
  }

  /** The bank heard us when we last spoke to it. */
  get isConnected(): boolean {
    return !this.#isAway && !this.mayBeFenced
  }

  /** Tells of accounts that were forgotten. */
  set onEvicted(told: (accounts: readonly string[]) => void) {
    this.#onForgotten = told
  }

  /** Reports what an earlier run has left, and gives back what it had borrowed; then reports on and on. */
  async start(): Promise<void> {
    while (this.#hasOutbox) await this.#report()
    await this.#parts.bank.leave()
    this.#reportedMs = Number.NEGATIVE_INFINITY
    await this.#report()
    this.#running = this.#run()
  }

  /**
   * Asks for a loan; undefined for a token that is not there. Rejects with `StoreUnavailable` within two
   * seconds.
   */
  acquire(request: LoanRequest): Promise<Loan | undefined> {
    if (this.#isStopping) return Promise.reject(new StoreUnavailable('the bank is closed'))
    const loan = this.#loans.enqueue(request)
    this.#wake.resolve()
    return loan
  }

  /** A call was settled: it is in the outbox. */
  onSettled(): void {
    this.#hasOutbox = true
    this.#settled += 1
    if (this.#settled >= REPORT_ROWS) this.#wake.resolve()
  }

  /** Resolves when everything settled up to now has been reported, or after a second. */
  async flush(): Promise<void> {
    if (this.#hasOutbox) await this.#untilReported()
  }

  /** Resolves when the bank has said anew where we stand with everything, or after a second. */
  async resync(): Promise<void> {
    this.#mustCompare = true
    await this.#untilReported()
  }

  /** Something is to go back. */
  wake(): void {
    this.#wake.resolve()
  }

  /**
   * Reports what is left, gives everything back, and says no more. What cannot be reported stays in the file.
   */
  async close({ isUnresolved = false }: { readonly isUnresolved?: boolean } = {}): Promise<void> {
    this.#isStopping = true
    this.#wake.resolve()
    await this.#running
    this.#loans.rejectAll(new StoreUnavailable('the bank is closed'))
    // What is still lent when it ends is nobody's for a minute: one answer that is lost must not be enough
    // for that.
    for (const endMs = performance.now() + FAREWELL_MS; ; await delay(AGAIN_MS)) {
      try {
        return await this.#takeLeave(isUnresolved)
      } catch {
        if (performance.now() > endMs) return
      }
    }
  }

  async #takeLeave(isUnresolved: boolean): Promise<void> {
    while (this.#hasOutbox) await this.#report()
    // What calls that were not settled hold stays theirs until the next start.
    if (isUnresolved) await this.#giveBack(Number.POSITIVE_INFINITY)
    else await this.#parts.bank.leave()
  }

  #untilReported(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, FLUSH_MS).unref()
      this.#flushes.push(() => {
        clearTimeout(timer)
        resolve()
      })
      this.#wake.resolve()
    })
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      try {
        await this.#round()
        if (this.#isAway) this.#reach(undefined)
        if (!this.#isBehind) await this.#nap(REPORT_MS)
      } catch (error) {
        this.#loans.rejectAll(error)
        // Whatever was under way may have happened or not.
        this.#mustCompare = true
        if (!this.#isAway) this.#reach(error instanceof Error ? error : new Error(String(error)))
        await this.#nap(AGAIN_MS)
      }
    }
  }

  #reach(trouble: Error | undefined): void {
    this.#isAway = trouble !== undefined
    this.#parts.onReachabilityChange(trouble)
  }

  async #round(): Promise<void> {
    // First of all it must be known what is left of what was borrowed.
    if (this.mayBeFenced) await this.#report()
    const loans = this.#loans.takeBatch()
    if (loans.length > 0) await this.#lend(loans)
    const nowMs = performance.now()
    const isUrgent =
      this.#isBehind || this.#settled >= REPORT_ROWS || this.#flushes.length > 0 || this.leases.hasRecalls
    if (isUrgent || nowMs - this.#lookedMs >= REPORT_MS) {
      this.#lookedMs = nowMs
      await this.#report()
      await this.#giveBack(nowMs)
    }
  }

  async #lend(asked: ReturnType<LoanQueue['takeBatch']>): Promise<void> {
    try {
      const loans = await this.#parts.bank.acquire(asked.map(({ request }) => request))
      for (const [index, one] of asked.entries()) {
        const loan = loans[index]
        if (loan) {
          for (const standing of [loan.tokenState, loan.userState]) this.leases.getOrCreate(standing).applyState(standing)
        }
        one.resolve(loan)
      }
    } catch (error) {
      for (const one of asked) one.reject(error)
      throw error
    }
  }

  async #report(): Promise<void> {
    const sentMs = performance.now()
    const isWhole = this.#mustCompare || this.mayBeFenced || sentMs - this.#comparedMs > COMPARE_MS
    this.#mustCompare = false
    const flushes = [...this.#flushes]
    const entries = await this.#outbox()
    const held = this.leases.takeReports(this.#parts.openHolds(), isWhole)
    const isDue = isWhole || flushes.length > 0 || sentMs - this.#reportedMs >= HEARTBEAT_MS
    if (entries.length === 0 && held.length === 0 && !isDue) return
    await this.#apply(entries, held)
    if (isWhole) await this.#compare()
    if (isWhole) this.#comparedMs = sentMs
    this.#reportedMs = sentMs
    this.#validUntilMs = sentMs + FENCE_MS
    if (this.#isBehind) return
    this.#flushes = this.#flushes.slice(flushes.length)
    for (const flush of flushes) flush()
  }

  async #outbox(): Promise<readonly OutboxEntry[]> {
    if (!this.#hasOutbox) return []
    this.#settled = 0
    this.#hasOutbox = false
    try {
      const entries = await this.#parts.file.write('outbox', { limit: REPORT_ROWS })
      this.#isBehind = entries.length === REPORT_ROWS
      // Until the bank has them they are there.
      if (entries.length > 0) this.#hasOutbox = true
      return entries
    } catch (error) {
      this.#hasOutbox = true
      throw error
    }
  }

  // A report of nothing is answered with everything. What a loan brought whose answer was lost is found here.
  async #compare(): Promise<void> {
    for (const standing of await this.#parts.bank.apply([], [])) this.leases.getOrCreate(standing).applyState(standing)
  }

  async #apply(entries: readonly OutboxEntry[], held: ReturnType<LeaseTable['takeReports']>): Promise<void> {
    const { bank, file } = this.#parts
    try {
      const standings = await bank.apply(
        entries.map(({ row }) => row),
        held,
      )
      const known = new Set<string>(standings.map(({ account }) => account))
      const unknown = entries.filter(({ tokenId }) => !known.has(`t:${tokenId}`))
      if (unknown.length > 0) this.#parts.onUnknownTokens(unknown)
      // What could not be taken out of the outbox comes again.
      this.leases.applyReported(entries.filter(({ place }) => place > this.#reportedPlace))
      this.#reportedPlace = entries.at(-1)?.place ?? this.#reportedPlace
      this.leases.applyStates(standings)
    } catch (error) {
      this.leases.markUnsynced(held)
      throw error
    }
    const last = entries.at(-1)
    if (!last) return
    await file.write('reported', { place: last.place })
    if (!this.#isBehind && this.#settled === 0) this.#hasOutbox = false
  }

  async #giveBack(nowMs: number): Promise<void> {
    const spare = this.leases.releaseSpare(nowMs)
    if (spare.length > 0) this.leases.applyStates(await this.#parts.bank.release(spare))
    const forgotten = this.leases.evictIdle(nowMs)
    if (forgotten.length > 0) this.#onForgotten(forgotten)
  }

  async #nap(ms: number): Promise<void> {
    if (this.#loans.isEmpty || this.#isAway) {
      const timer = setTimeout(() => this.#wake.resolve(), ms).unref()
      await this.#wake.promise
      clearTimeout(timer)
    }
    this.#wake = Promise.withResolvers<void>()
  }
}
