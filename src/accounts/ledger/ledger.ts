import { setTimeout as delay } from 'node:timers/promises'
import { formatBudgetList, type BudgetName, parseBudgetList } from '../../domain/budget.ts'
import { DenseSet } from '../../domain/dense-set.ts'
import { isHoldOfBatch } from '../../domain/hold.ts'
import type { HoldFacts, ParkedHold, SettledCall, Settlement } from '../../domain/records/usage.ts'
import type { ManagedUser } from '../../domain/records/user.ts'
import type { TokenChange } from '../../store/operations/tokens.ts'
import type { UserChange } from '../../store/operations/users.ts'
import type { TokenWithKey } from '../../store/operations/find-accounts.ts'
import type { RowStore, Store } from '../../store/store.ts'
import type { AccountSource, LoanOutcome } from './account-source.ts'
import type { Account } from './balance.ts'
import { BankQueue, LOAN_RETURN_MS } from './bank-queue.ts'
import { type CallQueue, type QuotaWaitLimits, type QueuedQuotaRequest, waitForQuota } from './call-queue.ts'
import { findBalancesOfParkedHold } from './find-charged-balances.ts'
import { LedgerWriter } from './ledger-writer.ts'
import { LocalAccounts } from './local-accounts.ts'
import { OpenHold, type RaiseWaitLimits } from './open-hold.ts'
import { factsOfBatchHold } from './batch-hold.ts'
import {
  addHold,
  chargeBalances,
  commitHold,
  growHold,
  releaseHold,
  affordableAmountInTurn,
  affordableHoldGrowth,
  budgetNames,
  NO_BUDGETS,
  type ChargedBalances,
  balancesForGroup,
} from './charged-balances.ts'
import { PriceSets } from './price-sets.ts'
import {
  type BudgetExceeded,
  canHoldGrowWithoutOtherHolds,
  QuotaHeldByOtherCalls,
  refusalOfHold,
  createHoldGrowthRefusal,
  Unaffordable,
} from './quota-refusal.ts'
import { QuotaQueue } from './quota-queue.ts'
import { UnwrittenHolds } from './unwritten-holds.ts'

/** Interval between attempts to raise a hold while other holds take the quota. */
const RETRY_MS = 25

/**
 * Admits, grows and settles the holds of this node: the quota reserved for running calls. Described in
 * `docs/ledger.md`.
 */
export class Ledger {
  readonly accounts: AccountSource
  readonly priceSets: PriceSets
  /** Writes holds and settlements, and records whether the writes succeed. */
  readonly writes: LedgerWriter
  readonly exceededBudgets: ExceededBudgets
  /** Holds (reservations of quota) that are neither settled nor parked. */
  readonly openHolds = new DenseSet<OpenHold>()
  /** Holds of calls that continue at their upstreams, even if this process ends. */
  readonly parkedHolds = new DenseSet<OpenHold>()
  readonly #store: Store
  readonly #owner: string
  readonly #waiting = new UnwrittenHolds()
  /** Calls that wait until other calls release quota, and holds that wait to grow. */
  readonly #siblings: CallQueue
  readonly #growths = new Map<OpenHold, QueuedQuotaRequest>()
  /** Holds that could not grow, while quota for them is being borrowed. */
  readonly #borrowing = new Set<OpenHold>()
  /** The latest answer of the bank for each hold that is being raised. */
  readonly #answers = new Map<OpenHold, LoanOutcome | undefined>()

  /** `owner` names this run of the process; a start recovers the holds of all other runs. */
  constructor(store: Store, owner: string, accounts: AccountSource = new LocalAccounts(store)) {
    this.#store = store
    this.priceSets = new PriceSets(store)
    this.#owner = owner
    this.writes = new LedgerWriter(store, this.#waiting)
    this.exceededBudgets = new ExceededBudgets(store)
    this.accounts = accounts
    this.#siblings = accounts.lends ? new BankQueue(accounts) : new QuotaQueue()
  }

  /** Number of calls whose charge is not durable yet: open holds, and settlements being written. */
  get unresolved(): number {
    return this.openHolds.size + this.writes.unresolved
  }

  /** Whether the last write of a hold or settlement succeeded. */
  get isWritable(): boolean {
    return this.writes.isWritable
  }

  /** Checks by a trial write whether calls can be charged. */
  probe(): Promise<boolean> {
    return this.writes.probe()
  }

  /** Stops repeating settlements that cannot be written; the next start settles them as after a crash. */
  stopRetrying(): void {
    this.writes.stopRetrying()
  }

  /** Settles the holds that earlier runs left open, each at its last known cost. */
  recover(): Promise<{ count: number; quota: number }> {
    return this.#store.write('recover', { owner: this.#owner, nowMs: Date.now() })
  }

  /**
   * Reserves `amount` synchronously on all balances that the call is charged to, or throws `Unaffordable`.
   * The upstream may be called at once, but nothing may be sent to the client before the hold is durable;
   * `UnwrittenHolds` delays that write.
   */
  admit(account: Account, amount: number, facts: HoldFacts, budgets = NO_BUDGETS): OpenHold {
    const payer = { account, budgets }
    const isOfBatch = isHoldOfBatch(facts)
    // What a provider has finished of a batch is charged in any case, with a hold of nothing if need be.
    if ((amount > 0 || !isOfBatch) && amount > affordableAmountInTurn(account, budgets))
      throw refusalOfHold(payer, amount, Date.now())
    addHold(payer, amount)
    if (isOfBatch) commitHold(payer, amount)
    const hold = new OpenHold(this, payer, facts, amount)
    this.openHolds.add(hold)
    this.#waiting.add(hold)
    // It counts as spent, so that a call which waits may have become unaffordable.
    if (isOfBatch) this.#siblings.released(payer)
    return hold
  }

  /**
   * Admits a call as `admit` does, after waiting for the holds of other calls if only these prevent it; see
   * `docs/ledger.md: Waiting for other calls`. Rejects with `Unaffordable`.
   */
  admitInTime(
    payer: ChargedBalances,
    amount: number,
    facts: HoldFacts,
    patience: QuotaWaitLimits,
  ): Promise<OpenHold> {
    if (!this.accounts.lends) {
      const refusal = refusalOfHold(payer, amount, Date.now())
      if (!(refusal instanceof QuotaHeldByOtherCalls) || patience.waitMs === 0) return Promise.reject(refusal)
    }
    return waitForQuota(this.#siblings, payer, amount, patience, (found) =>
      this.admit(found.account, amount, facts, found.budgets),
    )
  }

  /**
   * Writes a hold to the store; `OpenHold.whenDurable` calls it once. Resolves to undefined once the hold is
   * durable, otherwise to the error.
   */
  write(hold: OpenHold): Promise<Error | undefined> {
    const { facts, account, amount, budgets } = hold
    this.#waiting.delete(hold)
    this.#waiting.writeDue()
    return this.writes.write(
      hold,
      this.#store.write('hold', {
        ...facts,
        owner: this.#owner,
        token_id: account.token.id,
        user_id: account.user.id,
        amount,
        budgets: formatBudgetList(budgetNames(budgets)),
      }),
    )
  }

  /**
   * Changes a user's fields and quota. Resolves once that is durable and added quota can be spent; resolves
   * to undefined for an unknown user. Open holds are settled against the new quota.
   */
  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    const changed = await this.accounts.changeUser(change)
    this.#siblings.retryAll()
    return changed
  }

  /**
   * Changes a token. Resolves once that is durable and calls are admitted by it; resolves to undefined if the
   * user has no such token. The costs of open holds are still deducted from a new quota.
   */
  async changeToken(change: TokenChange): Promise<TokenWithKey | undefined> {
    const changed = await this.accounts.changeToken(change)
    this.#siblings.retryAll()
    return changed
  }

  /** Adds `by` quota units to a hold for `OpenHold.grow`; returns false if they are not free. */
  grow(hold: OpenHold, by: number): boolean {
    const { account, budgets } = hold
    if (by > affordableHoldGrowth(account, budgets)) {
      hold.refusal = createHoldGrowthRefusal(hold, by, Date.now())
      this.#growLater(hold, by)
      return false
    }
    this.#addTo(hold, by)
    if (isHoldOfBatch(hold)) this.#siblings.released(hold)
    return true
  }

  /** Raises a hold to `amount` for `OpenHold.raiseTo`, with repeated attempts until `waitMs` has passed. */
  async raise(
    hold: OpenHold,
    amount: number,
    { waitMs, isOver }: RaiseWaitLimits,
  ): Promise<Unaffordable | undefined> {
    const startMs = performance.now()
    this.#answers.set(hold, undefined)
    for (;;) {
      const by = amount - hold.taken
      const refusal =
        by <= 0 || hold.grow(by) ? undefined : createHoldGrowthRefusal(hold, amount - hold.amount, Date.now())
      if (!refusal || isOver() || this.#isFinal(hold, refusal, performance.now() - startMs, waitMs)) {
        this.#endGrowth(hold)
        hold.refusal = undefined
        return refusal
      }
      await delay(RETRY_MS)
    }
  }

  // Whether to stop trying to raise the hold. With borrowed quota, the bank must first have answered, and
  // other processes must have had time to return spare quota.
  #isFinal(hold: OpenHold, refusal: Unaffordable, waitedMs: number, waitMs: number): boolean {
    const isHeld = refusal instanceof QuotaHeldByOtherCalls
    if (!this.accounts.lends) return !isHeld || waitedMs >= waitMs
    if (waitedMs >= Math.max(waitMs, LOAN_RETURN_MS)) return true
    const answer = this.#answers.get(hold)
    return answer?.refusal !== undefined && (!isHeld || (waitedMs >= waitMs && !answer.isReturnable))
  }

  #endGrowth(hold: OpenHold): void {
    this.#growths.get(hold)?.leave()
    this.#growths.delete(hold)
    this.#answers.delete(hold)
  }

  #addTo(hold: OpenHold, by: number): void {
    hold.refusal = undefined
    growHold(hold, by)
    if (isHoldOfBatch(hold)) commitHold(hold, by)
    // A hold that is not written yet will be written with its current amount.
    if (hold.isUnwritten) return
    const { facts, account } = hold
    const userId = account.user.id
    void this.writes.write(hold, this.#store.write('growHold', { id: facts.id, user_id: userId, by }))
  }

  // A stream tries again with every frame, but only one of its growths may wait.
  #growLater(hold: OpenHold, by: number): void {
    if (this.accounts.lends) return this.#borrowFor(hold, by)
    if (this.#growths.has(hold) || !canHoldGrowWithoutOtherHolds(hold, by)) return
    const queued = this.#siblings.add(
      {
        amount: by,
        grown: hold,
        admit: () => {
          this.#growths.delete(hold)
          this.#addTo(hold, by)
          hold.addSpare(by)
        },
        refuse: () => {
          // The growth would stay unaffordable even if other calls ended.
          this.#growths.delete(hold)
          hold.refusal = createHoldGrowthRefusal(hold, by, Date.now())
        },
      },
      hold,
    )
    this.#growths.set(hold, queued)
  }

  // With borrowed quota a growth does not wait: it must take from the balances of its hold, and a loan may replace
  // these. The next frame tries again.
  #borrowFor(hold: OpenHold, by: number): void {
    if (this.#borrowing.has(hold)) return
    this.#borrowing.add(hold)
    this.accounts.borrowForHold(hold, by).then(
      (answer) => {
        this.#borrowing.delete(hold)
        if (this.#answers.has(hold)) this.#answers.set(hold, answer)
        if (answer.refusal) hold.refusal = createHoldGrowthRefusal(hold, by, Date.now())
      },
      () => this.#borrowing.delete(hold),
    )
  }

  /** Writes the cost of the output so far for `OpenHold.markProgress`. */
  markProgress(hold: OpenHold, amount: number): void {
    const { facts, account } = hold
    const userId = account.user.id
    void hold.whenDurable()
    void this.writes.write(hold, this.#store.write('markProgress', { id: facts.id, user_id: userId, amount }))
  }

  /**
   * Records for `OpenHold.park` that the hold outlives this process; resolves to false if that could not be
   * written.
   */
  async park(hold: OpenHold): Promise<boolean> {
    const { facts, account } = hold
    this.openHolds.delete(hold)
    this.parkedHolds.add(hold)
    void hold.whenDurable()
    const written = this.#store.write('parkHold', { id: facts.id, user_id: account.user.id })
    if (!(await this.writes.write(hold, written))) return true
    if (hold.isSettled) return false
    this.parkedHolds.delete(hold)
    this.openHolds.add(hold)
    return false
  }

  /**
   * Reserves the quota of the holds that an earlier run has parked, before anything is reported or returned to the
   * bank: what is lent for them stays lent.
   */
  async reserveParkedHolds(balancesOf: (parked: ParkedHold) => ChargedBalances): Promise<void> {
    for (const parked of await this.#store.write('parkedHolds')) this.#takeUp(balancesOf(parked), parked)
  }

  /**
   * Takes over the holds that an earlier run has parked, each with its account. Call it once, before any
   * call. `onUnowned` is called with the ids of calls whose tokens no longer exist.
   */
  async resumeParkedHolds(onUnowned: (callId: string) => void): Promise<OpenHold[]> {
    const reserved = new Map(Array.from(this.parkedHolds, (hold) => [hold.id, hold]))
    const holds: OpenHold[] = []
    for (const parked of await this.#store.write('parkedHolds')) {
      const { id, token_id: tokenId, budgets } = parked
      const hold = reserved.get(id)
      const payer = await findBalancesOfParkedHold(this.accounts, tokenId, parseBudgetList(budgets))
      if (payer) {
        holds.push(hold ?? this.#takeUp(payer, parked))
        // The hold is kept even if less is lent, because its call must be charged.
        await this.accounts.coverHolds(payer)
        continue
      }
      // Without its token no one can be charged; the row stays for an investigation.
      if (hold) this.#drop(hold)
      onUnowned(id)
    }
    return holds
  }

  #takeUp(payer: ChargedBalances, parked: ParkedHold): OpenHold {
    addHold(payer, parked.amount)
    if (isHoldOfBatch(parked)) commitHold(payer, parked.amount)
    const hold = OpenHold.takenUp(this, payer, parked)
    this.parkedHolds.add(hold)
    return hold
  }

  #drop(hold: OpenHold): void {
    releaseHold(hold, hold.amount)
    if (isHoldOfBatch(hold)) commitHold(hold, -hold.amount)
    this.#forget(hold)
  }

  // Without this, a growth that waits would be added to the balances after the hold has ended.
  #forget(hold: OpenHold): void {
    this.#waiting.delete(hold)
    ;(hold.isParked ? this.parkedHolds : this.openHolds).delete(hold)
    this.#endGrowth(hold)
  }

  /** Ends a hold that is parked, or could not be, without a charge; resolves once that is durable. */
  async release(hold: OpenHold): Promise<void> {
    if (hold.index === -1) return
    this.#drop(hold)
    hold.shrink(hold.amount)
    this.accounts.released(hold)
    this.#siblings.released(hold)
    const { id, account } = hold
    await this.writes.write(hold, this.#store.write('releaseHold', { id, user_id: account.user.id }))
  }

  /** Releases a part of a parked hold without a charge. */
  releasePart(hold: OpenHold, by: number): void {
    this.#shrink(hold, by)
    const { id, account } = hold
    void this.writes.write(hold, this.#store.write('growHold', { id, user_id: account.user.id, by: -by }))
  }

  /**
   * Releases a part of a parked hold and charges the call that it was reserved for, in one transaction; resolves once that
   * is durable. Repeating it for a call that the store has charged must be avoided: the balances in memory would be charged
   * twice.
   */
  settlePart(hold: OpenHold, by: number, call: SettledCall): Promise<void> {
    this.#shrink(hold, by)
    const payer = balancesForGroup(hold, call.group)
    chargeBalances(payer, call.quota)
    return this.writes.settle(hold, payer, { ...call, part: { hold: hold.id, amount: by } })
  }

  /** Charges a call of a batch for which nothing is held any more, as `settlePart` does. */
  async chargeWithoutHold(call: SettledCall): Promise<void> {
    const payer = await findBalancesOfParkedHold(this.accounts, call.token_id, parseBudgetList(call.budgets))
    if (!payer) return
    chargeBalances(payer, call.quota)
    const facts = factsOfBatchHold(call.id, call.ended_ms)
    await this.writes.settle(OpenHold.unrecorded(payer.account, facts), payer, call)
  }

  // Never releases more than is held, also if the growth of a hold was not written before a crash.
  #shrink(hold: OpenHold, by: number): void {
    const released = Math.min(by, hold.amount)
    hold.shrink(released)
    growHold(hold, -released)
    commitHold(hold, -released)
    this.accounts.released(hold)
    this.#siblings.released(hold)
  }

  /** Releases the hold and charges the call for `OpenHold.settle`; resolves once the charge is durable. */
  settle(hold: OpenHold, settlement: Settlement): Promise<void> {
    releaseHold(hold, hold.amount)
    const payer = balancesForGroup(hold, settlement.group)
    chargeBalances(payer, settlement.quota)
    this.#forget(hold)
    this.accounts.released(hold)
    this.#siblings.released(hold)
    return this.#settleUntilWritten(hold, payer, settlement)
  }

  #settleUntilWritten(hold: OpenHold, payer: ChargedBalances, settlement: Settlement): Promise<void> {
    return this.writes.settle(hold, payer, settledCall(hold, settlement, payer))
  }
}

/** The row of a call that was settled. */
export function settledCall(
  hold: OpenHold,
  settlement: Settlement,
  payer = balancesForGroup(hold, settlement.group),
): SettledCall {
  const { account, facts } = hold
  const { id, requested_model, stream, price_version, kind, session } = facts
  return {
    ...settlement,
    id,
    requested_model,
    stream,
    price_version,
    kind,
    session,
    token_id: account.token.id,
    user_id: account.user.id,
    duration_ms: settlement.ended_ms - facts.started_ms,
    budgets: formatBudgetList(budgetNames(payer.budgets)),
  }
}

/** Maximum number of budgets of which this process remembers that the store has recorded them. */
const MAX_NOTED = 10_000

/** Records in the store the budgets for which calls were refused, each at its first refusal in a period. */
class ExceededBudgets {
  readonly #rows: Pick<RowStore, 'write'>
  /** Names of budgets that are recorded in the store or are being written to it. */
  readonly #noted = new Set<BudgetName>()

  constructor(rows: Pick<RowStore, 'write'>) {
    this.#rows = rows
  }

  /** Records the budgets for which a call was refused, unless the store already has them. */
  note({ exceeded }: BudgetExceeded): void {
    for (const { name, amount } of exceeded) {
      if (this.#noted.has(name)) continue
      if (this.#noted.size >= MAX_NOTED) this.#noted.clear()
      this.#noted.add(name)
      // If this write fails, the next refusal repeats it.
      this.#rows.write('recordExceededBudget', { name, amount }).catch(() => this.#noted.delete(name))
    }
  }
}
