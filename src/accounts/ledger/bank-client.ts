import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { AccountName, Bank, LoanResponse, LoanRequest } from '../../store/bank.ts'
import type { NodeFile, OutboxEntry } from '../../store/node-file.ts'
import { NodeNameTaken, StoreUnavailable } from '../../store/store-unavailable.ts'
import { LeaseClock, readClocks } from './lease-clock.ts'
import { LeaseTable } from './lease-table.ts'
import type { OpenHold } from './open-hold.ts'
import { Outbox } from './outbox.ts'

/** Maximum interval between this node's reports to the bank, the database that lends quota to the nodes. */
const REPORT_MS = 200
/** Delay before a loan is requested again for an account that another database session has locked. */
const LOCKED_RETRY_MS = 100
/** Minimum interval between two reports to the bank if another node has asked for one. */
const REQUESTED_MS = 20
/** Interval of heartbeats while there is nothing to report. */
const HEARTBEAT_INTERVAL_MS = 2_000
/**
 * Interval at which this node compares all its leases with the bank, which then also takes back the leases of
 * lost nodes.
 */
const COMPARE_INTERVAL_MS = 10_000
/** Delay between attempts to reach the bank. */
const RETRY_MS = 250
/** Maximum time that `close` spends on the last report to the bank and the return of lent quota. */
const CLOSE_TIMEOUT_MS = 2_000
const NO_ACCOUNTS: readonly AccountName[] = []
/** Maximum time that a read of charges waits until recent settlements have been reported to the bank. */
const FLUSH_TIMEOUT_MS = 1_000

/**
 * The only queue between this node and the bank, the shared database that lends quota to nodes. It sends one
 * request at a time: loans first, then reports, then released leases. Therefore a state received from the
 * bank is never older than one received before.
 */
export class BankClient {
  readonly leases: LeaseTable
  readonly #dependencies: BankClientDependencies
  readonly #loans = new LoanQueue()
  readonly #outbox: Outbox
  readonly #clock = new LeaseClock()
  #reportedMs = Number.NEGATIVE_INFINITY
  #comparedMs = Number.NEGATIVE_INFINITY
  /** Set while the bank may have an outdated record of the quota that this node's calls hold. */
  #mustResync = true
  #roundMs = Number.NEGATIVE_INFINITY
  readonly #flushes = new Set<() => void>()
  /** Set while another node is waiting for a report of this node to the bank. */
  #isReportRequested = false
  #requested: NodeJS.Timeout | undefined
  /** Tickets of calls that have stopped waiting; the bank does not know that yet. */
  #left: number[] = []
  #isDown = false
  #isStopping = false
  readonly #alarm = new Alarm()
  #running: Promise<void> | undefined
  #onForgotten: (accounts: readonly string[]) => void = () => {}

  constructor(dependencies: BankClientDependencies) {
    this.#dependencies = dependencies
    this.#outbox = new Outbox(dependencies.file)
    this.leases = new LeaseTable(() => this.mayBeFenced)
  }

  /**
   * Whether the bank may have given this node up as lost and taken back its leases, or soon will. Leases must
   * not be spent then.
   */
  get mayBeFenced(): boolean {
    return this.#clock.mayBeFenced
  }

  /** Whether `close` was called: nothing can be borrowed any more. */
  get isClosed(): boolean {
    return this.#isStopping
  }

  /** Whether the last request to the bank succeeded. */
  get isConnected(): boolean {
    return !this.#isDown && !this.mayBeFenced
  }

  /** Called with the names of the accounts that were evicted from the table of leases. */
  set onEvicted(listener: (accounts: readonly string[]) => void) {
    this.#onForgotten = listener
  }

  /**
   * Reports the settled calls that an earlier run left in the outbox, and releases that run's leases except for
   * what open holds need; then reports continuously.
   */
  async start(): Promise<void> {
    // Leases have to pay for these calls until they are counted, which has to wait while an account is locked.
    this.leases.chargeUnreported(await this.#outbox.readAll())
    while (this.#outbox.mayHaveEntries) await this.#report()
    await this.#leave()
    this.#mustResync = true
    await this.#report()
    this.#running = this.#run()
  }

  /**
   * Requests a loan of quota. `request` builds the request at the moment when it is sent. Resolves to
   * undefined for an unknown token. `waitsFor` are the accounts of a call that waits in the bank's queue.
   * Rejects with `StoreUnavailable` within two seconds.
   */
  acquire(
    request: () => LoanRequest,
    waitsFor: readonly AccountName[] = NO_ACCOUNTS,
  ): Promise<LoanResponse | undefined> {
    if (this.#isStopping) return Promise.reject(new StoreUnavailable('the bank is closed'))
    const loan = this.#loans.enqueue(request, waitsFor)
    this.#alarm.ring()
    return loan
  }

  /** Removes the call with this ticket from the bank's queue of waiting calls. */
  leaveQueue(ticket: number): void {
    this.#left.push(ticket)
    this.#alarm.ring()
  }

  /**
   * Call it after a settled call has been added to the outbox; starts a report once there are enough of them.
   */
  onSettled(): void {
    if (this.#outbox.onSettled()) this.#alarm.ring()
  }

  /**
   * Resolves when everything settled so far has been reported, except on locked accounts, or after a second.
   */
  async flush(): Promise<void> {
    if (this.#outbox.mayHaveEntries) await this.#waitForReport()
  }

  /** Quota units of an account that the open holds of this node reserve. */
  held(account: AccountName): number {
    return this.leases.get(account)?.held ?? 0
  }

  /** Resolves when the bank has sent the current state of all accounts, or after a second. */
  async resync(): Promise<void> {
    this.#mustResync = true
    await this.#waitForReport()
  }

  /**
   * Call it after the connection to the bank was restored: an older copy of the bank may have taken its
   * place.
   */
  onReconnected(): void {
    this.#mustResync = true
    this.leases.expectRestored()
  }

  /**
   * Reports soon, because another node asked for it. The bank's answer contains changes that this node does
   * not know yet.
   */
  reportSoon(): void {
    this.#isReportRequested = true
    const inMs = this.#roundMs + REQUESTED_MS - performance.now()
    if (inMs <= 0) this.#alarm.ring()
    else this.#requested ??= setTimeout(() => this.#ringRequested(), inMs).unref()
  }

  #ringRequested(): void {
    this.#requested = undefined
    this.#alarm.ring()
  }

  /**
   * Reports the settled calls in the outbox to the bank, returns all lent quota, and stops. Calls that cannot
   * be reported stay in the file.
   */
  async close({ isUnresolved = false }: { readonly isUnresolved?: boolean } = {}): Promise<void> {
    this.#isStopping = true
    this.#alarm.ring()
    await this.#running
    this.#clock.close()
    this.#loans.rejectAll(new StoreUnavailable('the bank is closed'))
    // Leases that are not released stay unusable for a minute, so a single lost response must not end the
    // attempts.
    for (const endMs = performance.now() + CLOSE_TIMEOUT_MS; ; await delay(RETRY_MS)) {
      try {
        return await this.#leaveBank(isUnresolved)
      } catch {
        if (performance.now() > endMs) return
      }
    }
  }

  async #leaveBank(isUnresolved: boolean): Promise<void> {
    while (this.#outbox.mayHaveEntries) await this.#report()
    if (!isUnresolved) return this.#leave()
    // Holds that are still open keep the quota lent for them until the next start. The bank keeps what it knows to be held.
    this.#mustResync = true
    await this.#report()
    await this.#releaseSpare(Number.POSITIVE_INFINITY)
  }

  // Releases all leases, except those that pay for open holds and for calls not counted yet, so that the bank does
  // not lend them again.
  async #leave(): Promise<void> {
    const { bank } = this.#dependencies
    const keepsLeases = this.#outbox.hasLocked || this.leases.hasHolds
    if (!keepsLeases) {
      await this.#releaseSpare(Number.POSITIVE_INFINITY)
      return bank.leave()
    }
    await bank.acquire([], [null])
    // The first report learns all leases of an earlier run. The second one states what is held of them now.
    for (let reports = 0; reports < 2; reports += 1) {
      this.#mustResync = true
      await this.#report()
    }
    await this.#releaseSpare(Number.POSITIVE_INFINITY)
  }

  #waitForReport(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#flushes.delete(end)
        resolve()
      }
      const timer = setTimeout(end, FLUSH_TIMEOUT_MS).unref()
      this.#flushes.add(end)
      this.#alarm.ring()
    })
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      try {
        await this.#runRound()
        if (this.#isDown) this.#setReachability(undefined)
        if (!this.#outbox.hasMore) await this.#sleep(this.#isReportRequested ? REQUESTED_MS : REPORT_MS)
      } catch (error) {
        this.#loans.rejectAll(error)
        // The bank may have executed the failed request, so this node's record of its leases may be outdated.
        this.#mustResync = true
        if (error instanceof NodeNameTaken) this.#clock.end()
        if (!this.#isDown) this.#setReachability(error instanceof Error ? error : new Error(String(error)))
        await this.#sleep(RETRY_MS)
      }
    }
  }

  #setReachability(failure: Error | undefined): void {
    this.#isDown = failure !== undefined
    this.#dependencies.onReachabilityChange(failure)
  }

  async #runRound(): Promise<void> {
    // If the bank may have taken back this node's leases, the node must learn their state before it requests
    // loans.
    if (this.mayBeFenced) await this.#report()
    const loans = this.#loans.takeBatch()
    if (loans.length > 0 || this.#left.length > 0) {
      await this.#acquireBatch(loans)
      // Gives the waiting calls a turn to use their loans; otherwise the unused part would be released as
      // spare.
      await nextTurn()
    }
    const nowMs = performance.now()
    const isUrgent = this.#outbox.isFull || this.#flushes.size > 0
    if (isUrgent || nowMs - this.#roundMs >= (this.#isReportRequested ? REQUESTED_MS : REPORT_MS)) {
      this.#roundMs = nowMs
      await this.#report()
      await this.#releaseSpare(nowMs)
    }
  }

  async #acquireBatch(batch: ReturnType<LoanQueue['takeBatch']>): Promise<void> {
    const left = this.#left.splice(0)
    try {
      await this.#releaseAwaited(batch)
      const requests = batch.map(({ request }) => request())
      const loans = await this.#dependencies.bank.acquire(requests, left)
      for (const [index, pending] of batch.entries()) {
        const loan = loans[index]
        if (loan === 'locked') {
          this.#retryLocked(pending)
          continue
        }
        if (loan) this.leases.applyLoans([loan.tokenState, loan.userState, ...loan.budgetStates])
        pending.resolve(loan)
      }
    } catch (error) {
      this.#left.push(...left)
      for (const pending of batch) pending.reject(error)
      throw error
    }
  }

  // Before calls in the bank's queue ask for loans, the spare quota that they wait for is returned to the
  // bank. The bank then lends it to the call whose turn it is.
  async #releaseAwaited(batch: ReturnType<LoanQueue['takeBatch']>): Promise<void> {
    await this.#release(this.leases.releaseAwaited(batch.flatMap(({ waitsFor }) => waitsFor)))
  }

  async #release(spare: ReturnType<LeaseTable['releaseSpare']>): Promise<void> {
    if (spare.length > 0) this.leases.applyReleased(spare, await this.#dependencies.bank.release(spare))
  }

  #retryLocked(pending: PendingLoan): void {
    const retry = (): void => {
      if (this.#loans.putBack(pending)) this.#alarm.ring()
    }
    setTimeout(retry, LOCKED_RETRY_MS).unref()
  }

  async #report(): Promise<void> {
    const sent = readClocks()
    const sentMs = sent.monotonicMs
    const isFull = this.#mustResync || this.mayBeFenced || sentMs - this.#comparedMs > COMPARE_INTERVAL_MS
    this.#mustResync = false
    const flushes = [...this.#flushes]
    const entries = await this.#outbox.read()
    const held = this.leases.takeReports(this.#dependencies.openHolds(), isFull)
    const isDue =
      isFull ||
      flushes.length > 0 ||
      this.#isReportRequested ||
      this.#outbox.hasLocked ||
      sentMs - this.#reportedMs >= HEARTBEAT_INTERVAL_MS
    if (entries.length === 0 && held.length === 0 && !isDue) return
    this.#isReportRequested = false
    await this.#apply(entries, held)
    await this.#dependencies.onReported?.()
    if (isFull) await this.#compare()
    if (isFull) this.#comparedMs = sentMs
    this.#reportedMs = sentMs
    this.#clock.answered(sent)
    if (this.#outbox.hasMore) return
    for (const flush of flushes) flush()
  }

  // Applies the bank's record of all leases, which includes loans whose response was lost.
  async #compare(): Promise<void> {
    this.leases.applyAll(await this.#dependencies.bank.compare())
  }

  async #apply(entries: readonly OutboxEntry[], held: ReturnType<LeaseTable['takeReports']>): Promise<void> {
    try {
      const { states, locked } = await this.#dependencies.bank.apply(
        entries.map(({ row }) => row),
        held,
      )
      const known = new Set<string>(states.map(({ account }) => account))
      const { counted, fresh } = this.#outbox.applyAnswer(entries, locked)
      const unknown = counted.filter(({ token_id: tokenId }) => !known.has(`t:${tokenId}`))
      if (unknown.length > 0) this.#dependencies.onUnknownTokens(unknown)
      this.leases.applyReported(fresh)
      this.leases.applyStates(states)
      this.leases.markUnsynced(locked)
      await this.#outbox.remove(counted)
    } catch (error) {
      this.leases.markUnsynced(held.map(({ account }) => account))
      throw error
    }
  }

  async #releaseSpare(nowMs: number): Promise<void> {
    await this.#release(this.leases.releaseSpare(nowMs))
    const forgotten = this.leases.evictIdle(nowMs)
    if (forgotten.length > 0) this.#onForgotten(forgotten)
  }

  async #sleep(ms: number): Promise<void> {
    await this.#alarm.sleep(this.#loans.isEmpty || this.#isDown ? ms : 0)
  }
}

export interface BankClientDependencies {
  readonly bank: Bank
  readonly file: Pick<NodeFile, 'write'>
  readonly openHolds: () => Iterable<OpenHold>
  /** Called after each report to the bank. */
  readonly onReported?: (() => Promise<void>) | undefined
  /**
   * Called with the error when the bank becomes unreachable, and with undefined when it is reachable again.
   */
  readonly onReachabilityChange: (failure: Error | undefined) => void
  /**
   * Called with calls whose tokens are missing from the database, as after a restore; they cannot be charged.
   */
  readonly onUnknownTokens: (calls: readonly OutboxEntry[]) => void
}

/**
 * A sleep that can be ended early. `ring` ends the current sleep; between two sleeps, it ends the next one.
 */
class Alarm {
  #rung = Promise.withResolvers<void>()

  ring(): void {
    this.#rung.resolve()
  }

  /** Sleeps for `ms` milliseconds or until `ring` is called; returns at once for 0. */
  async sleep(ms: number): Promise<void> {
    if (ms > 0) {
      const timer = setTimeout(() => this.ring(), ms).unref()
      await this.#rung.promise
      clearTimeout(timer)
    }
    this.#rung = Promise.withResolvers<void>()
  }
}

/** Timeout of a request for a loan of quota from the bank. */
const TIMEOUT_MS = 1_500
/** Maximum number of requests for loans that are sent to the bank together. */
const BATCH_SIZE = 100

/** A request for quota from the bank, made by a call that waits for the response. */
interface PendingLoan {
  /** Builds the request when it is sent, because other calls may have changed the leases until then. */
  readonly request: () => LoanRequest
  readonly waitsFor: readonly AccountName[]
  resolve(loan: LoanResponse | undefined): void
  reject(error: unknown): void
  /** Whether the call still waits for the bank's response; false after the timeout. */
  isOpen: boolean
}

/** Queue of requests for loans of quota from the bank, in order of arrival. */
class LoanQueue {
  #waiting: PendingLoan[] = []

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /**
   * Queues a request for a loan. Resolves to the bank's response; rejects with `StoreUnavailable` on timeout.
   */
  enqueue(request: () => LoanRequest, waitsFor: readonly AccountName[]): Promise<LoanResponse | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((pending) => pending !== pendingLoan)
        pendingLoan.isOpen = false
        reject(new StoreUnavailable('the database that leases quota does not respond'))
      }, TIMEOUT_MS)
      const pendingLoan: PendingLoan = {
        request,
        waitsFor,
        isOpen: true,
        resolve(loan) {
          clearTimeout(timer)
          resolve(loan)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      this.#waiting.push(pendingLoan)
    })
  }

  /** Queues a request again if its account was locked; returns false if the request has timed out. */
  putBack(pending: PendingLoan): boolean {
    if (pending.isOpen) this.#waiting.push(pending)
    return pending.isOpen
  }

  /** Takes the oldest requests out of the queue, to be sent to the bank together. */
  takeBatch(): PendingLoan[] {
    const next = this.#waiting.slice(0, BATCH_SIZE)
    this.#waiting = this.#waiting.slice(BATCH_SIZE)
    return next
  }

  /** Rejects all queued requests for loans. */
  rejectAll(error: unknown): void {
    const rejected = this.#waiting
    this.#waiting = []
    for (const pending of rejected) pending.reject(error)
  }
}
