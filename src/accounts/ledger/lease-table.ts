import { chargedBudgets } from '../../domain/budget.ts'
import { type AccountName, accountsOfCall, type AccountState, type HoldReport } from '../../store/bank.ts'
import type { OutboxEntry } from '../../store/node-file.ts'
import { LeasedBalance } from './leased-balance.ts'
import type { OpenHold } from './open-hold.ts'
import { budgetNames } from './charged-balances.ts'

/** Quota units that an account's first hold is assumed to need. */
const INITIAL_TYPICAL_HOLD = 50_000
/** Time without use after which the unneeded part of the quota that the bank has lent is returned. */
const IDLE_MS = 5_000

/** An account whose spare quota this node returns to the bank, and the quota units that it keeps and returns. */
interface Released {
  readonly account: AccountName
  readonly keep: number
  readonly spare: number
}

/** Quota that the bank has lent to this node (leases), by account. */
export class LeaseTable {
  readonly #balances = new Map<AccountName, LeasedBalance>()
  readonly #recalled = new Set<AccountName>()
  readonly #mayBeFenced: () => boolean
  #onRecalled: (account: AccountName) => void = () => {}

  /** `mayBeFenced` returns whether the bank may have taken back this node's leases. */
  constructor(mayBeFenced: () => boolean) {
    this.#mayBeFenced = mayBeFenced
  }

  get(account: AccountName): LeasedBalance | undefined {
    return this.#balances.get(account)
  }

  /** The balance of an account; a new one is created without a lease. */
  getOrCreate(account: AccountName): LeasedBalance {
    let balance = this.#balances.get(account)
    if (!balance) {
      balance = new LeasedBalance(account, INITIAL_TYPICAL_HOLD, this.#mayBeFenced)
      this.#balances.set(account, balance)
    }
    return balance
  }

  /** Whether open holds reserve quota of any account. */
  get hasHolds(): boolean {
    return [...this.#balances.values()].some(({ held }) => held > 0)
  }

  /** Called with each account whose lease the bank has recalled, or whose open holds no lease covers. */
  set onRecalled(listener: (account: AccountName) => void) {
    this.#onRecalled = listener
  }

  /** Applies the states of accounts that the bank has sent. Unknown accounts are left out. */
  applyStates(states: readonly AccountState[]): void {
    for (const state of states)
      if (this.#balances.get(state.account)?.applyState(state)) this.#onRecalled(state.account)
  }

  /** The same for states of all accounts that the bank has lent to this node; unknown ones are added. */
  applyLoans(states: readonly AccountState[]): void {
    for (const { account } of states) this.getOrCreate(account)
    this.applyStates(states)
  }

  /**
   * Applies the states of all accounts that the bank has lent to this node, and ends all other leases: those of a
   * node that was lost are gone, also where the account is locked and no report can name it.
   */
  applyAll(states: readonly AccountState[]): void {
    this.applyLoans(states)
    const lent = new Set(states.map(({ account }) => account))
    for (const [account, balance] of this.#balances)
      if (!lent.has(account) && balance.endLease()) this.#onRecalled(account)
  }

  /** Prepares for answers of a bank whose database was restored from an older copy. */
  expectRestored(): void {
    for (const balance of this.#balances.values()) balance.expectRestored()
  }

  /** Returns reports of held amounts that the bank does not know yet; with `all`, of all held amounts. */
  takeReports(open: Iterable<OpenHold>, all: boolean): HoldReport[] {
    const estimates = new Map<AccountName, number>()
    for (const { account, budgets, facts, expectedCost } of open) {
      const names = chargedBudgets(budgetNames(budgets), facts.group)
      for (const name of [`t:${account.token.id}` as const, ...names])
        estimates.set(name, (estimates.get(name) ?? 0) + expectedCost)
    }
    const reports: HoldReport[] = []
    for (const balance of this.#balances.values()) {
      if (all) balance.markUnsynced()
      const report = balance.takeReport(estimates.get(balance.account) ?? 0)
      if (report) reports.push(report)
    }
    return reports
  }

  /** Marks accounts whose held amounts may not have reached the bank, so that they are reported again. */
  markUnsynced(accounts: Iterable<AccountName>): void {
    for (const account of accounts) this.#balances.get(account)?.markUnsynced()
  }

  /** Subtracts from the leases the charges of an earlier run's calls, which the bank has not counted yet. */
  chargeUnreported(entries: readonly OutboxEntry[]): void {
    for (const entry of entries)
      for (const name of accountsOfCall(entry)) this.getOrCreate(name).charge(entry.quota)
  }

  /** Records that the bank has counted these calls. */
  applyReported(entries: readonly OutboxEntry[]): void {
    for (const entry of entries)
      for (const name of accountsOfCall(entry)) this.#balances.get(name)?.applyReported(entry.quota)
  }

  /**
   * Marks an account whose spare quota another node has asked for, because a call of that node may wait for
   * it.
   */
  requestRecall(account: AccountName): void {
    const balance = this.#balances.get(account)
    if (!balance) return
    balance.markAwaited()
    this.#recalled.add(account)
  }

  /**
   * Takes spare quota out of the leases, to be returned to the bank: quota that was recalled, that calls wait
   * for, or that has been idle. A recalled account is included even without spare quota, so that the bank
   * learns what this node keeps.
   */
  releaseSpare(nowMs: number): Released[] {
    const spare: Released[] = []
    for (const balance of this.#balances.values()) {
      const { account, hasSpare } = balance
      const isIdle = nowMs - balance.lastUsedMs > IDLE_MS
      const isDue = this.#recalled.has(account) || (hasSpare && (isIdle || balance.isAwaited))
      if (isDue) spare.push({ account, ...balance.releaseSpare() })
    }
    this.#recalled.clear()
    return spare
  }

  /**
   * Takes the spare quota out of the leases on these accounts if calls wait for it, so that the bank can lend
   * it to the first of these calls.
   */
  releaseAwaited(accounts: Iterable<AccountName>): Released[] {
    const spare: Released[] = []
    for (const account of new Set(accounts)) {
      const balance = this.#balances.get(account)
      if (balance?.isAwaited && balance.hasSpare) spare.push({ account, ...balance.releaseSpare() })
    }
    return spare
  }

  /**
   * Applies the bank's answer to returned quota. The bank states nothing about an account whose row another database
   * session has locked: it has taken nothing back, so this node can go on to spend that quota.
   */
  applyReleased(released: readonly Released[], states: readonly AccountState[]): void {
    const taken = new Set(states.map(({ account }) => account))
    for (const { account, spare } of released)
      if (!taken.has(account)) this.#balances.get(account)?.keepSpare(spare)
    this.applyStates(states)
  }

  /** Evicts accounts that have not been used for a while, and returns their names. */
  evictIdle(nowMs: number): AccountName[] {
    const evicted: AccountName[] = []
    for (const [account, balance] of this.#balances) {
      if (!balance.isIdle || balance.hasSpare || nowMs - balance.lastUsedMs <= IDLE_MS) continue
      this.#balances.delete(account)
      evicted.push(account)
    }
    return evicted
  }
}
