import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import type { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Batch, BatchEnd, LineHead } from './batch.ts'
import { claimBatch, type LeasedBatch, releaseBatch, renewBatches } from './batch-leases.ts'
import type { BatchPart, SealedPrices } from './batch-part.ts'
import { BatchRun, type WaitingLine } from './batch-run.ts'
import { closeBatch, endBatch, type EndServices, resultsSoFar } from './end-batch.ts'
import type { BatchStore, LineResult } from './batch-store.ts'
import { findCaller, holdAgain, holdBatch, type HoldBatchInputs } from './hold-batch.ts'
import { callForLine, type LineAnswer, type LineCallServices } from './line-call.ts'
import { type LineEnds, ProviderWork, type ProviderWorkServices } from './provider-work.ts'
import { type SettledLine, settleLine, withAnswer, withoutAnswer } from './settle-line.ts'
import { Turns } from './turns.ts'

/** Interval in milliseconds at which batches without a node, wishes to cancel and keys are looked at. */
const LOOK_MS = 2_000
/** Interval in milliseconds at which a node renews its leases. */
const RENEW_MS = 20_000
/** Milliseconds within which progress is stored. */
const SAVE_MS = 1_000
/** First and longest time in milliseconds after which a line is tried again, if its error names none. */
const RETRY_MS = 1_000
const MAX_RETRY_MS = 300_000
/** Number of calls for a line that get errors of servers. */
const MAX_SERVER_ERRORS = 8
/** Number of looks after which keys, and lines without a batch, are looked at. */
const LOOKS_AT_KEYS = 2
const LOOKS_AT_ORPHANS = 150
/** Age in milliseconds at which stored lines without a batch are those of a submission that broke off. */
const ORPHAN_MS = 3_600_000

/** Number of results of providers' batches that are stored at a time. */
const RESULTS_AT_A_TIME = 32

/** Services that the work on batches needs. */
export interface BatchRunServices extends LineCallServices, EndServices, Omit<ProviderWorkServices, 'turns'> {
  readonly relay: LineCallServices['relay'] & ProviderWorkServices['relay']
  readonly store: BatchStore
  readonly metrics: Metrics
  readonly settings: () => Settings
  /** Whether all nodes of the database read and write the same files. */
  readonly hasSharedFiles: () => boolean
  /** Holds of batches that an earlier run of this node left. */
  readonly batchHolds: readonly OpenHold[]
  readonly log: { warn(fields: object, sentence: string): void }
}

/**
 * The batches that this node works on. Each open batch has a lease of one node. The result of a line is stored with the row
 * by which it is charged, and then charged, under an id that every call for the line has: `docs/decisions/batch-lines.md`.
 */
export class BatchRuns {
  readonly #services: BatchRunServices
  readonly #runs = new Map<string, BatchRun>()
  /** Holds of an earlier run whose batches were not found yet, by id. */
  readonly #holds: Map<string, OpenHold>
  /** The batch that this node takes over: it has the lease, but no run yet. */
  #taken: LeasedBatch | undefined
  /** Batches whose leases could not be returned; they lapse unless this node tries again. */
  readonly #unreturned = new Set<string>()
  #looking: Promise<void> | undefined
  #renewing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #renewedAt = performance.now()
  #looks = 0
  /** Number of calls for lines that are being made, and of those of each user. */
  #busy = 0
  readonly #busyOf = new Map<number, number>()
  #isStopping = false
  readonly #turns = new Turns(RESULTS_AT_A_TIME)
  readonly #work = new Set<Promise<void>>()

  constructor(services: BatchRunServices) {
    this.#services = services
    this.#holds = new Map(services.batchHolds.map((hold) => [hold.id, hold]))
  }

  /** Number of batches that this node works on. */
  get open(): number {
    return this.#runs.size
  }

  /** Number of calls for lines that are being made. */
  get busy(): number {
    return this.#busy
  }

  /** Continues with the batches that no node works on. */
  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
    this.#look()
  }

  /** Begins no more calls. What is not stored is done again by the node that continues with the batch. */
  stop(): void {
    this.#isStopping = true
    clearInterval(this.#timer)
    for (const run of this.#runs.values()) {
      run.dropDelayed()
      run.provider?.stop()
    }
  }

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.stop()
    await this.#looking
    await this.#renewing
    await Promise.all(this.#work)
    await Promise.all([...this.#runs.values()].map((run) => run.close()))
  }

  /** Makes a batch whose hold is durable, unless its user has `most` open ones already, and works on it. */
  async begin(batch: Batch, hold: OpenHold, most: number, prices: SealedPrices): Promise<void> {
    const { store, ledger } = this.#services
    try {
      await claimBatch(this.#services, batch)
      await store.create(batch, prices, most)
    } catch (error) {
      await ledger.release(hold)
      await this.#guarded(async () => {
        await store.remove(batch)
        await closeBatch(this.#services, batch, undefined)
      })
      throw error
    }
    const run = new BatchRun(store, batch, hold, new Set(), prices)
    if (prices.models.size > 0) this.#workAtProviders(run, { parts: [], ended: new Set() })
    this.#add(run)
  }

  /** Begins the work on those lines that go to batches of providers. */
  #workAtProviders(
    run: BatchRun,
    found: { readonly parts: readonly BatchPart[]; readonly ended: ReadonlySet<number> },
  ): void {
    const ends: LineEnds = {
      settle: (line, reserve, answer) => this.#end(run, line, reserve, withAnswer(answer)),
      settleWithout: (line, reserve, why) =>
        this.#end(run, line, reserve, withoutAnswer(run.batch, line, why)),
      settleLost: (line, reserve) => this.#settleLost(run, line, reserve),
      isHeld: () => this.#isHeld(run),
    }
    const work = new ProviderWork({ ...this.#services, turns: this.#turns }, run, ends, found)
    run.provider = work
    run.underWay += 1
    this.#track(
      this.#untilDone(run, work).finally(() => {
        run.underWay -= 1
        this.#endIfOver(run)
      }),
    )
  }

  async #untilDone(run: BatchRun, work: ProviderWork): Promise<void> {
    while (!this.#isStopping && !run.isLost) {
      try {
        run.caller ??= (await this.#callerOf(run)) ?? undefined
        return await work.work()
      } catch (error) {
        if (!this.#isStopping && !run.isLost)
          this.#services.log.warn({ err: error }, 'a batch could not be looked after; tried again')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
  }

  /** Reserves quota for a batch as `holdBatch` does. */
  hold(...given: HoldBatchInputs): Promise<OpenHold> {
    return holdBatch(this.#services, ...given)
  }

  /** Sends nothing more of a batch, if this node works on it; others learn of the wish from the store. */
  cancel(id: string): void {
    const run = this.#runs.get(id)
    if (run) this.#stopRun(run, 'cancelled')
  }

  #add(run: BatchRun): void {
    this.#runs.set(run.batch.id, run)
    this.#pump()
    this.#endIfOver(run)
  }

  #stopRun(run: BatchRun, how: BatchEnd): void {
    run.stopped ??= how
    run.dropDelayed()
    run.provider?.wake()
    this.#endIfOver(run)
  }

  /**
   * Starts calls while there are lines and fewer calls than allowed. Batches take turns. A user gets a further call only
   * while more are free than the user has, so that calls that hang leave some to others.
   */
  #pump(): void {
    const { parallel } = this.#services.settings().options.batches
    while (this.#busy < parallel && !this.#isStopping) {
      const free = parallel - this.#busy
      const run = [...this.#runs.values()].find(
        ({ mayTake, batch }) => mayTake && (this.#busyOf.get(batch.userId) ?? 0) < free,
      )
      if (!run) return
      const { id, userId } = run.batch
      this.#runs.delete(id)
      this.#runs.set(id, run)
      this.#countBusy(userId, 1)
      run.underWay += 1
      this.#track(
        this.#guarded(() => this.#makeNext(run)).finally(() => {
          this.#countBusy(userId, -1)
          run.underWay -= 1
          this.#pump()
          this.#endIfOver(run)
        }),
      )
    }
  }

  #countBusy(userId: number, by: number): void {
    this.#busy += by
    const left = (this.#busyOf.get(userId) ?? 0) + by
    if (left > 0) this.#busyOf.set(userId, left)
    else this.#busyOf.delete(userId)
  }

  async #makeNext(run: BatchRun): Promise<void> {
    const waiting = await this.#take(run)
    if (!waiting) return
    let answer: LineAnswer
    try {
      run.caller ??= await this.#callerOf(run)
      if (!run.caller || run.stopped !== undefined) return
      const { line, reserve } = waiting
      const body = await run.bodyOf(line)
      if (!body) return await this.#settleLost(run, line, reserve)
      answer = await callForLine(this.#services, run, run.caller, { ...line, body }, reserve)
    } catch (error) {
      this.#retry(run, waiting, 0)
      throw error
    }
    // The node that has taken the batch over makes the call again, and charges it.
    if (run.isLost) return
    // What fails because the gateway stops is done again after its start.
    if (this.#isStopping && answer.status >= 500) return
    if (answer.retryMs !== undefined && run.stopped !== undefined) return
    if (answer.retryMs !== undefined && answer.status !== 429 && answer.status !== 503)
      waiting.serverErrors += 1
    if (answer.retryMs !== undefined && waiting.serverErrors < MAX_SERVER_ERRORS)
      return this.#retry(run, waiting, answer.retryMs)
    await this.#end(run, waiting.line, waiting.reserve, withAnswer(answer))
  }

  async #take(run: BatchRun): Promise<WaitingLine | undefined> {
    try {
      return await run.take()
    } catch (error) {
      // The next attempt follows at once.
      await delay(RETRY_MS, undefined, { ref: false })
      throw error
    }
  }

  #retry(run: BatchRun, waiting: WaitingLine, retryMs: number): void {
    if (this.#isStopping || run.stopped !== undefined || run.isLost) return
    const backOff = RETRY_MS * 2 ** waiting.attempts
    waiting.attempts += 1
    run.delay(waiting, Math.min(MAX_RETRY_MS, Math.max(retryMs, backOff)), () => {
      this.#pump()
      this.#endIfOver(run)
    })
  }

  /** Ends a line whose body is lost. It costs nothing. */
  async #settleLost(run: BatchRun, line: LineHead, reserve: LineReserve): Promise<void> {
    // A node that has ended the batch has removed the bodies of its lines.
    if (!(await this.#isHeld(run)) || this.#isStopping) return
    run.reportLost(this.#services.log, line)
    await this.#end(run, line, reserve, withoutAnswer(run.batch, line, 'content_lost'))
  }

  async #end(
    run: BatchRun,
    line: SettledLine,
    reserve: LineReserve,
    result: LineResult & { readonly body: Buffer },
  ): Promise<void> {
    const work = { isStopping: () => this.#isStopping, isHeld: () => this.#isHeld(run) }
    if (await settleLine(this.#services, run, { line, reserve }, result, work)) this.#saveSoon(run)
  }

  #saveSoon(run: BatchRun): void {
    run.saving ??= this.#guarded(async () => {
      await delay(SAVE_MS, undefined, { ref: false })
      // The end of the batch is stored with its last counts.
      if (run.isEnding || this.#isStopping) return
      // Otherwise it could replace the end that another node has stored.
      if (!(await this.#isHeld(run))) return
      run.change({ held: run.hold.amount })
      await this.#services.store.save(run.batch)
    }).finally(() => (run.saving = undefined))
  }

  /** The key and the user of a batch as they are now, but for their groups. If one is disabled or deleted, the batch is cancelled. */
  async #callerOf(run: BatchRun): Promise<Caller | undefined> {
    const found = await findCaller(this.#services.rows, run.batch)
    if (!found?.isUsable && run.stopped === undefined) {
      await this.#services.store.cancel(run.batch, Date.now())
      this.#stopRun(run, 'cancelled')
    }
    // What a provider has finished is charged nevertheless.
    return found ? run.routed(found.caller) : run.caller
  }

  #endIfOver(run: BatchRun): void {
    if (!run.isOver || this.#isStopping) return
    run.isEnding = true
    this.#track(
      this.#guarded(async () => {
        try {
          await run.saving
          const { ledger } = this.#services
          if (!(await this.#isHeld(run))) await ledger.release(run.hold)
          // Until a charge is written, only the result of its line would have it after a crash, and the end removes that.
          else if (ledger.writes.repeating > 0) throw new StoreUnavailable('charges are not written yet')
          else await endBatch(this.#services, run.batch, run.stopped ?? 'completed', run.hold)
          this.#runs.delete(run.batch.id)
          await run.close()
        } catch (error) {
          // Tried again at the next look.
          run.isEnding = false
          throw error
        }
      }),
    )
  }

  async #renewDue(): Promise<void> {
    if (performance.now() - this.#renewedAt <= RENEW_MS) return
    if (this.#runs.size > 0) await this.#renew([...this.#runs.values()])
    if (this.#taken) await renewBatches(this.#services, [this.#taken])
    this.#renewedAt = performance.now()
  }

  /** Renews the lease of a batch. Resolves to false if another node has taken the batch over. */
  async #isHeld(run: BatchRun): Promise<boolean> {
    await this.#renew([run])
    return !run.isLost
  }

  /** Renews the leases of batches. Those that another node has taken over are left to it. */
  async #renew(runs: readonly BatchRun[]): Promise<void> {
    const batches = runs.map(({ batch }) => batch)
    const lost = new Set((await renewBatches(this.#services, batches)).map(({ id }) => id))
    for (const run of runs)
      if (lost.has(run.batch.id)) {
        run.isLost = true
        run.dropDelayed()
        run.provider?.stop()
      }
  }

  #look(): void {
    if (this.#isStopping) return
    // A look at a large batch without a node takes longer than a lease.
    this.#renewing ??= this.#guarded(() => this.#renewDue()).finally(() => (this.#renewing = undefined))
    this.#looking ??= this.#guarded(() => this.#lookAtAll()).finally(() => (this.#looking = undefined))
  }

  async #lookAtAll(): Promise<void> {
    const { store, ledger } = this.#services
    const looks = this.#looks
    this.#looks += 1
    if (looks % LOOKS_AT_ORPHANS === 0) await store.removeOrphans(Date.now() - ORPHAN_MS)
    const open = await store.open()
    for (const one of open) {
      // Charging the row of a line once more while that is repeated would charge the balances in memory twice.
      if (this.#runs.has(one.id) || this.#isStopping || ledger.writes.repeating > 0) continue
      // The files of other nodes are not found.
      if (!this.#services.hasSharedFiles() && !this.#holds.has(one.id)) continue
      await this.#guarded(() => this.#takeOver(one))
    }
    const ids = new Set(open.map(({ id }) => id))
    for (const [id, hold] of this.#holds) {
      // Its batch was never made, or another node has ended it.
      if (ids.has(id)) continue
      this.#holds.delete(id)
      await ledger.release(hold)
    }
    const runs = [...this.#runs.values()]
    const wishes =
      runs.length === 0 ? undefined : await store.wishesToCancel(runs.map(({ batch }) => batch.id))
    for (const run of runs) {
      const isCancelled = wishes?.has(run.batch.id) === true
      if (run.stopped === undefined && !run.isLost) await this.#guarded(() => this.#lookAt(run, isCancelled))
      run.noteLook()
      this.#endIfOver(run)
    }
    this.#pump()
  }

  async #lookAt(run: BatchRun, isCancelled: boolean): Promise<void> {
    if (isCancelled) this.#stopRun(run, 'cancelled')
    else if (Date.now() >= run.windowEndMs) this.#stopRun(run, 'expired')
    else if (run.looks % LOOKS_AT_KEYS === 0) run.caller = await this.#callerOf(run)
  }

  /** Continues with a batch that no node works on. */
  async #takeOver(one: LeasedBatch): Promise<void> {
    const { ledger } = this.#services
    const own = this.#holds.get(one.id)
    if (this.#unreturned.has(one.id)) await releaseBatch(this.#services, one)
    if (!(await claimBatch(this.#services, one))) {
      // Another node has taken the batch over, with a new hold.
      if (own) {
        this.#holds.delete(one.id)
        await ledger.release(own)
      }
      return
    }
    let run: BatchRun | undefined
    this.#taken = one
    try {
      run = await this.#continue(one, own)
    } finally {
      this.#taken = undefined
      if (!run) this.#unreturned.add(one.id)
      if (!run) await releaseBatch(this.#services, one)
      this.#unreturned.delete(one.id)
    }
    if (run) this.#add(run)
  }

  /** What is left of a batch; undefined if that is nothing, or not affordable now. */
  async #continue(one: LeasedBatch, own: OpenHold | undefined): Promise<BatchRun | undefined> {
    const { store, ledger } = this.#services
    const batch = await store.find(one.userId, one.id)
    if (!batch || batch.facts.endedMs !== undefined) {
      await closeBatch(this.#services, one, own)
      this.#holds.delete(one.id)
      return undefined
    }
    const { ended, unsettled, facts } = await resultsSoFar(this.#services, batch)
    const { ending } = batch.facts
    let rest = 0
    const missing: [amount: number, row: SettledCall][] = []
    for await (const { number, amount } of store.inputHeads(batch)) {
      const row = unsettled.get(number)
      if ((ending || ended.has(number)) && !row) continue
      rest += amount
      if (row) missing.push([amount, row])
    }
    const parts = await store.parts(batch)
    // What a provider has is read and charged in any case.
    const isAtProvider = !ending && parts.some((part) => part.isAtProvider)
    const again = own ?? ending?.how ?? (await holdAgain(this.#services, batch, rest, isAtProvider))
    if (again === undefined) return undefined
    const hold = typeof again === 'string' ? undefined : again
    // If anything below fails, the next attempt goes on with this hold.
    if (hold) this.#holds.set(one.id, hold)
    if (hold && hold.amount > rest) ledger.releasePart(hold, hold.amount - rest)
    for (const [amount, row] of missing)
      await (hold ? ledger.settlePart(hold, amount, row) : ledger.chargeWithoutHold(row))
    const counted = { ...batch, facts: { ...batch.facts, ...facts } }
    if (ending || !hold) {
      const how = ending?.how ?? (typeof again === 'string' ? again : 'completed')
      await endBatch(this.#services, counted, how, hold)
      this.#holds.delete(one.id)
      return undefined
    }
    const prices = await store.pricesOf(batch)
    this.#holds.delete(one.id)
    const run = new BatchRun(store, counted, hold, ended, prices)
    if (batch.cancelMs !== undefined) run.stopped = 'cancelled'
    else if (Date.now() >= run.windowEndMs) run.stopped = 'expired'
    if (prices.models.size > 0) this.#workAtProviders(run, { parts, ended })
    return run
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  // Errors are logged, because the next look repeats the work.
  async #guarded(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!this.#isStopping)
        this.#services.log.warn({ err: error }, 'a batch could not be looked after; tried again')
    }
  }
}
