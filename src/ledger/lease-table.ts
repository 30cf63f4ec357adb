import type { AccountName, HeldReport, AccountState } from '../store/bank.ts'
import type { OutboxEntry } from '../store/node-file.ts'
import { LeasedBalance } from './leased-balance.ts'
import type { OpenHold } from './open-hold.ts'

/** What a hold is taken to be before there was one. */
const FIRST_TYPICAL = 50_000
/** How long a lease may be unused before what is spare of it goes back. */
const IDLE_MS = 5_000

/** All that this node has borrowed, account by account. */
export class LeaseTable {
  readonly #balances = new Map<AccountName, LeasedBalance>()
  readonly #recalled = new Set<AccountName>()
  readonly #isCutOff: () => boolean

  /** `isCutOff` tells whether the bank may have given this node up. */
  constructor(isCutOff: () => boolean) {
    this.#isCutOff = isCutOff
  }

  get(account: AccountName): LeasedBalance | undefined {
    return this.#balances.get(account)
  }

  /** The balance of an account of which the bank has said where we stand. */
  getOrCreate({ account }: AccountState): LeasedBalance {
    let balance = this.#balances.get(account)
    if (!balance) {
      balance = new LeasedBalance(account, FIRST_TYPICAL, this.#isCutOff)
      this.#balances.set(account, balance)
    }
    return balance
  }

  /** Takes over what the bank said. */
  applyStates(standings: readonly AccountState[]): void {
    for (const standing of standings) this.#balances.get(standing.account)?.applyState(standing)
  }

  /** What the bank does not know yet of what is open here, or, with `all`, everything. */
  takeReports(open: Iterable<OpenHold>, all: boolean): HeldReport[] {
    const estimates = new Map<number, number>()
    for (const { account, expectedCost: expected } of open) {
      estimates.set(account.token.id, (estimates.get(account.token.id) ?? 0) + expected)
    }
    const reports: HeldReport[] = []
    for (const balance of this.#balances.values()) {
      if (all) balance.markUnsynced()
      const isToken = balance.account.startsWith('t:')
      const report = balance.takeReport(isToken ? (estimates.get(balance.id) ?? 0) : 0)
      if (report) reports.push(report)
    }
    return reports
  }

  /** What the bank was told did perhaps not reach it. */
  markUnsynced(reports: readonly HeldReport[]): void {
    for (const { account } of reports) this.#balances.get(account)?.markUnsynced()
  }

  /** The bank has counted these calls. */
  applyReported(entries: readonly OutboxEntry[]): void {
    for (const { tokenId, userId, quota } of entries) {
      this.#balances.get(`t:${tokenId}`)?.applyReported(quota)
      this.#balances.get(`u:${userId}`)?.applyReported(quota)
    }
  }

  /** Another node needs what this one does not. */
  requestRecall(account: AccountName): void {
    if (this.#balances.get(account)?.hasSpare) this.#recalled.add(account)
  }

  get hasRecalls(): boolean {
    return this.#recalled.size > 0
  }

  /**
   * What goes back now, all of it no longer spendable here: what was recalled, and what nobody has used for a
   * while.
   */
  releaseSpare(nowMs: number): { readonly account: AccountName; readonly keep: number }[] {
    const spare: { account: AccountName; keep: number }[] = []
    for (const balance of this.#balances.values()) {
      const isIdle = nowMs - balance.lastUsedMs > IDLE_MS
      if (!balance.hasSpare || !(isIdle || this.#recalled.has(balance.account))) continue
      spare.push({ account: balance.account, keep: balance.releaseSpare() })
    }
    this.#recalled.clear()
    return spare
  }

  /** Forgets accounts of which nothing is here any more; tells which. */
  evictIdle(nowMs: number): AccountName[] {
    const forgotten: AccountName[] = []
    for (const [account, balance] of this.#balances) {
      if (!balance.isIdle || balance.hasSpare || nowMs - balance.lastUsedMs <= IDLE_MS) continue
      this.#balances.delete(account)
      forgotten.push(account)
    }
    return forgotten
  }
}
