/** What a crash charges for a hold without a progress mark: the prompt of `factsOf`. */
const PROMPT = 5

/** A budget that is charged in one period: the name of its account, and its amount. */
export interface ModelBudget {
  readonly account: string
  readonly amount: number
}

interface OpenSum {
  readonly token: 0 | 1
  amount: number
  progress: number
  /** Accounts of budgets that it is held on. */
  readonly budgets: readonly string[]
  /** Group whose budget a crash charges. */
  readonly group: string
  /** Whether the call goes on without its process, so that a crash leaves the hold open. */
  isParked?: boolean
}

/**
 * A model of the ledger of one user with two tokens, as a few sums. The real ledger must agree with it at any
 * time. Its budgets follow `docs/ledger.md: Budgets`.
 */
export class LedgerModel {
  readonly remain: [number, number]
  readonly used: [number, number]
  readonly unlimited: [boolean, boolean] = [false, false]
  user: number
  userUsed: number
  /** The charges of each budget's account. */
  readonly spent = new Map<string, number>()
  readonly open = new Map<string, OpenSum>()

  constructor(remain: number, user: number) {
    this.remain = [remain, remain]
    this.used = [0, 0]
    this.user = user
    this.userUsed = 0
  }

  held(token?: number): number {
    return this.#sumOf((hold) => token === undefined || hold.token === token)
  }

  /** What is used and held of a budget. */
  charged(account: string): number {
    return (this.spent.get(account) ?? 0) + this.#sumOf((hold) => hold.budgets.includes(account))
  }

  /** The maximum further hold of the token, on these budgets. */
  free(token: 0 | 1, budgets: readonly ModelBudget[]): number {
    const ofBudgets = budgets.map(({ account, amount }) => amount - this.charged(account))
    const ofToken = this.unlimited[token] ? Infinity : this.remain[token] - this.held(token)
    return Math.min(ofToken, this.user - this.held(), ...ofBudgets)
  }

  /** The maximum growth of a hold, on the budgets that it is held on. */
  growth(id: string, amountOf: (account: string) => number): number {
    const hold = this.#hold(id)
    return this.free(
      hold.token,
      hold.budgets.map((account) => ({ account, amount: amountOf(account) })),
    )
  }

  settle(id: string, quota: number, group: string): void {
    const { token, budgets } = this.#hold(id)
    this.open.delete(id)
    this.remain[token] -= quota
    this.used[token] += quota
    this.user -= quota
    this.userUsed += quota
    for (const account of budgets)
      if (!account.includes(':g:') || account.endsWith(`:g:${group}`))
        this.spent.set(account, (this.spent.get(account) ?? 0) + quota)
  }

  mark(id: string, amount: number): void {
    const hold = this.open.get(id)
    if (hold) hold.progress = Math.max(hold.progress, amount)
  }

  park(id: string): void {
    this.#hold(id).isParked = true
  }

  /** Charges what a crash leaves; for a hold that was never written, nothing was delivered. */
  crash(isWritten: (id: string) => boolean): void {
    for (const [id, { amount, progress, group, isParked }] of this.open)
      if (!isParked) this.settle(id, isWritten(id) ? Math.min(amount, PROMPT + progress) : 0, group)
  }

  #hold(id: string): OpenSum {
    const hold = this.open.get(id)
    if (!hold) throw new Error(`${id} is settled twice`)
    return hold
  }

  #sumOf(counts: (hold: OpenSum) => boolean): number {
    return [...this.open.values()].filter(counts).reduce((sum, { amount }) => sum + amount, 0)
  }
}

/** Name of a budget's account for calls that begin at this time. */
export function accountAt(period: 'day' | 'week' | 'month', owner: string, atMs: number): string {
  const date = new Date(atMs)
  if (period === 'month') date.setUTCDate(1)
  if (period === 'week') while (date.getUTCDay() !== 1) date.setUTCDate(date.getUTCDate() - 1)
  return `b:${period}:${date.toISOString().slice(0, 10)}:${owner}`
}
