import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { factsOfBatchHold } from '../../accounts/ledger/batch-hold.ts'
import type { QuotaWaitLimits } from '../../accounts/ledger/call-queue.ts'
import { affordableAmount } from '../../accounts/ledger/charged-balances.ts'
import { findChargedBalances } from '../../accounts/ledger/find-charged-balances.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { refuseUnusableKey } from '../../domain/api-key.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import { asGatewayError } from '../../errors.ts'
import type { RowStore } from '../../store/store.ts'
import { type Batch, type BatchEnd, WINDOW_MS } from './batch.ts'
import { claimBatch, releaseBatch, renewBatches } from './batch-leases.ts'
import { isAnswered } from './batch-results.ts'
import { BatchRun, type WaitingLine } from './batch-run.ts'
import { closeBatch, endBatch, type EndServices, resultsSoFar } from './end-batch.ts'
import { callForLine, type LineAnswer, type LineCallServices } from './line-call.ts'

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
/** Age in milliseconds at which stored lines without a batch are those of a submission that broke off. */
const ORPHAN_MS = 3_600_000

/** Services that the work on batches needs. */
export interface BatchRunServices extends LineCallServices, EndServices {
  readonly settings: () => Settings
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
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #renewedAt = performance.now()
  #busy = 0
  /** Pending while a batch is created. One at a time, so that the open batches of a user are counted. */
  #creating: Promise<void> = Promise.resolve()
  #isStopping = false
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
    void this.#guarded(() => this.#services.store.removeOrphans(Date.now() - ORPHAN_MS))
  }

  /** Begins no more calls. What is not stored is done again by the node that continues with the batch. */
  stop(): void {
    this.#isStopping = true
    clearInterval(this.#timer)
    for (const run of this.#runs.values()) run.dropDelayed()
  }

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.stop()
    await this.#looking
    await Promise.all(this.#work)
    await Promise.all([...this.#runs.values()].map((run) => run.close()))
  }

  /** Makes a batch whose hold is durable, unless its user has `most` open ones already, and works on it. */
  async begin(batch: Batch, hold: OpenHold, most: number): Promise<void> {
    const { store, ledger } = this.#services
    try {
      const creating = this.#creating.then(async () => {
        await store.refuseFurther(batch.userId, most)
        await claimBatch(this.#services, batch)
        await store.create(batch)
      })
      this.#creating = creating.catch(() => {})
      await creating
    } catch (error) {
      await ledger.release(hold)
      await this.#guarded(async () => {
        await store.remove(batch)
        await closeBatch(this.#services, batch, undefined)
      })
      throw error
    }
    this.#add(new BatchRun(store, batch, hold, new Set()))
  }

  /** Reserves quota for a batch; resolves once that is durable. Rejects with `Unaffordable`. */
  async hold(
    { id, createdMs, facts }: Pick<Batch, 'id' | 'createdMs' | 'facts'>,
    caller: Caller,
    amount: number,
    waiting?: QuotaWaitLimits,
  ): Promise<OpenHold> {
    const { ledger, settings } = this.#services
    const groups = facts.groups.flatMap((name) => settings().groups.get(name) ?? [])
    const found = await findChargedBalances(ledger.accounts, { ...caller, groups, startedMs: createdMs })
    // What does not wait has to borrow the quota itself.
    const payer = waiting ? found : await ledger.accounts.ensureAffordable(found, amount)
    const holdFacts = factsOfBatchHold(id, createdMs)
    const { account, budgets } = payer
    const hold =
      amount <= affordableAmount(account, budgets) || !waiting
        ? ledger.admit(account, amount, holdFacts, budgets)
        : await ledger.admitInTime(payer, amount, holdFacts, waiting)
    if (await hold.park()) return hold
    const failure = hold.writeFailure ?? new Error('the hold of a batch could not be stored')
    await ledger.release(hold)
    throw failure
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
    this.#endIfOver(run)
  }

  /** Starts calls while there are lines and fewer calls than allowed. Batches take turns. */
  #pump(): void {
    const { parallel } = this.#services.settings().options.batches
    while (this.#busy < parallel && !this.#isStopping) {
      const run = [...this.#runs.values()].find(({ mayTake }) => mayTake)
      if (!run) return
      this.#runs.delete(run.batch.id)
      this.#runs.set(run.batch.id, run)
      this.#busy += 1
      run.underWay += 1
      this.#track(
        this.#guarded(() => this.#makeNext(run)).finally(() => {
          this.#busy -= 1
          run.underWay -= 1
          this.#pump()
          this.#endIfOver(run)
        }),
      )
    }
  }

  async #makeNext(run: BatchRun): Promise<void> {
    const waiting = await this.#take(run)
    if (!waiting) return
    let answer: LineAnswer
    try {
      run.caller ??= await this.#callerOf(run)
      if (!run.caller) return
      answer = await callForLine(this.#services, run.batch, run.caller, waiting.line, waiting.reserve)
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
    await this.#settle(run, waiting, answer)
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

  /** Stores how a line ended, then charges it. */
  async #settle(run: BatchRun, { line, reserve }: WaitingLine, answer: LineAnswer): Promise<void> {
    const { store, ledger, metrics } = this.#services
    const { id: requestId, status, dropped, row, body } = answer
    const result = { status, requestId, dropped, row }
    for (;;) {
      try {
        await store.storeResult(run.batch, line.number, result, body)
        break
      } catch (error) {
        // The call was made, so it is not made again while this process runs.
        if (this.#isStopping) throw error
        await delay(RETRY_MS)
        if (run.isLost) return
      }
    }
    // If the charge cannot be written now, the ledger repeats it, and after a crash the next run of the batch does.
    await reserve.settle(ledger, row).catch(() => {})
    const outcome = isAnswered(answer) ? 'completed' : 'failed'
    run.count(outcome, row)
    metrics.add('batchLines', 1, outcome)
    this.#saveSoon(run)
  }

  #saveSoon(run: BatchRun): void {
    run.saving ??= this.#guarded(async () => {
      await delay(SAVE_MS, undefined, { ref: false })
      // The end of the batch is stored with its last counts.
      if (!run.isEnding && !run.isLost && !this.#isStopping) await this.#services.store.save(run.batch)
    }).finally(() => (run.saving = undefined))
  }

  /** The key and the user of a batch as they are now; undefined if they were disabled or deleted, which cancels it. */
  async #callerOf(run: BatchRun): Promise<Caller | undefined> {
    const caller = await findCaller(this.#services.rows, run.batch)
    if (!caller && run.stopped === undefined) {
      await this.#services.store.cancel(run.batch, Date.now())
      this.#stopRun(run, 'cancelled')
    }
    return caller
  }

  #endIfOver(run: BatchRun): void {
    if (!run.isOver || this.#isStopping) return
    run.isEnding = true
    this.#track(
      this.#guarded(async () => {
        try {
          await run.saving
          await this.#renew([run])
          if (run.isLost) await this.#services.ledger.release(run.hold)
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
    if (this.#runs.size === 0 || performance.now() - this.#renewedAt <= RENEW_MS) return
    await this.#renew([...this.#runs.values()])
    this.#renewedAt = performance.now()
  }

  /** Renews the leases of batches. Those that another node has taken over are left to it. */
  async #renew(runs: readonly BatchRun[]): Promise<void> {
    const batches = runs.map(({ batch }) => batch)
    const lost = new Set((await renewBatches(this.#services, batches)).map(({ id }) => id))
    for (const run of runs)
      if (lost.has(run.batch.id)) {
        run.isLost = true
        run.dropDelayed()
      }
  }

  #look(): void {
    if (this.#isStopping || this.#looking) return
    this.#looking = this.#guarded(() => this.#lookAtAll()).finally(() => (this.#looking = undefined))
  }

  async #lookAtAll(): Promise<void> {
    const { store, ledger } = this.#services
    await this.#renewDue()
    const open = await store.open()
    for (const one of open) {
      if (this.#runs.has(one.id) || this.#isStopping) continue
      await this.#guarded(() => this.#takeOver(one))
      // Reading what is left of a large batch takes long.
      await this.#renewDue()
    }
    const ids = new Set(open.map(({ id }) => id))
    for (const [id, hold] of this.#holds) {
      // Its batch was never made, or another node has ended it.
      if (ids.has(id)) continue
      this.#holds.delete(id)
      await ledger.release(hold)
    }
    for (const run of this.#runs.values()) await this.#guarded(() => this.#lookAt(run))
    this.#pump()
  }

  async #lookAt(run: BatchRun): Promise<void> {
    const { store } = this.#services
    if (run.stopped === undefined && !run.isLost) {
      const found = await store.find(run.batch.userId, run.batch.id)
      if (!found || found.cancelMs !== undefined) this.#stopRun(run, 'cancelled')
      else if (Date.now() >= run.windowEndMs) this.#stopRun(run, 'expired')
      else run.caller = await this.#callerOf(run)
    }
    this.#endIfOver(run)
  }

  /** Continues with a batch that no node works on. */
  async #takeOver(one: { readonly id: string; readonly userId: number }): Promise<void> {
    const { ledger } = this.#services
    const own = this.#holds.get(one.id)
    if (!(await claimBatch(this.#services, one))) {
      // Another node has taken the batch over, with a new hold.
      if (own) {
        this.#holds.delete(one.id)
        await ledger.release(own)
      }
      return
    }
    try {
      const run = await this.#continue(one, own)
      if (run) return this.#add(run)
    } catch (error) {
      await releaseBatch(this.#services, one)
      throw error
    }
    await releaseBatch(this.#services, one)
  }

  /** What is left of a batch; undefined if that is nothing, or not affordable now. */
  async #continue(
    one: { readonly id: string; readonly userId: number },
    own: OpenHold | undefined,
  ): Promise<BatchRun | undefined> {
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
    for await (const { number, amount } of store.input(batch)) {
      const row = unsettled.get(number)
      if ((ending || ended.has(number)) && !row) continue
      rest += amount
      if (row) missing.push([amount, row])
    }
    const again = own ?? ending?.how ?? (await this.#holdAgain(batch, rest))
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
    this.#holds.delete(one.id)
    const run = new BatchRun(store, counted, hold, ended)
    if (batch.cancelMs !== undefined) run.stopped = 'cancelled'
    else if (Date.now() >= run.windowEndMs) run.stopped = 'expired'
    return run
  }

  /**
   * A hold for what is left of a batch whose node is gone; undefined if that is not affordable now. Resolves to how the batch
   * ends if nothing more of it may be made.
   */
  async #holdAgain(batch: Batch, amount: number): Promise<OpenHold | BatchEnd | undefined> {
    const caller = await findCaller(this.#services.rows, batch)
    if (!caller || batch.cancelMs !== undefined) return 'cancelled'
    if (Date.now() >= batch.createdMs + WINDOW_MS) return 'expired'
    try {
      return await this.hold(batch, caller, amount)
    } catch (error) {
      if (!asGatewayError(error)) throw error
      return undefined
    }
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

/** The key and the user of a batch; undefined if they may not be used any more. A key that has expired may. */
async function findCaller(
  rows: Pick<RowStore, 'read'>,
  { tokenId }: Pick<Batch, 'tokenId'>,
): Promise<Caller | undefined> {
  const found = await rows.read('accountOfToken', { tokenId })
  if (!found) return undefined
  const { token, user } = found
  try {
    refuseUnusableKey(token, user, token.status, 'read')
    return { token, user }
  } catch {
    return undefined
  }
}
