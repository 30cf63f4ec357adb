import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type BudgetName, budgetOwnerOf } from '../../domain/budget.ts'
import type { TokenRow } from '../../domain/records/token.ts'
import type { ParkedHold, SettledCall } from '../../domain/records/usage.ts'
import type { UserRow } from '../../domain/records/user.ts'
import {
  type AccountName,
  accountsOfCall,
  type AccountState,
  type Bank,
  type BankStatement,
  type BudgetRequest,
  type HoldReport,
  type LoanResponse,
  type LoanRequest,
} from '../bank.ts'
import { tokenFromRow, userFromRow } from '../account-rows.ts'
import type { AccountChange } from './account-changes.ts'
import { PARKED_OWNER } from '../ledger-writes.ts'
import { BudgetRows } from './budget-rows.ts'
import { LeaseBook } from './lease-book.ts'
import { LoanQueue } from './loan-queue.ts'

/** Divisor: a loan is at most one eighth of the free quota, unless more is needed. */
const LOAN_SHARE = 8
const DISABLED = 2

/** The methods of `Bank`, made synchronous. The first parameter is the name of the borrower. */
export type BankOperations = {
  readonly [Name in keyof Bank]: (
    borrower: string,
    ...input: Parameters<Bank[Name]>
  ) => Awaited<ReturnType<Bank[Name]>>
}

/**
 * The bank for processes that share one SQLite file: lends quota to them by the same rules as the bank in
 * PostgreSQL (`postgres/bank`). `docs/ledger.md: Many nodes`, `docs/ledger.md: Accounts of budgets`. Its
 * methods run between transactions. It sees charges when they are committed, so borrowers need not report
 * them.
 */
export class LocalBank implements BankOperations {
  readonly #rows: AccountRows
  readonly #book = new LeaseBook()
  readonly #queue = new LoanQueue()
  readonly #announce: (account: AccountName, epoch: number) => void
  readonly #continuedBy: (holdId: string) => string | undefined
  readonly #nowMs: () => number

  /**
   * `announce` is called when an account was changed, with the account's epoch (how often its leases were
   * ended). `continuedBy` returns the borrower that continues the call of a parked hold, if any.
   */
  constructor(
    db: DatabaseSync,
    announce: (account: AccountName, epoch: number) => void,
    continuedBy: (holdId: string) => string | undefined,
    nowMs: () => number = Date.now,
  ) {
    this.#rows = new AccountRows(db)
    this.#announce = announce
    this.#continuedBy = continuedBy
    this.#nowMs = nowMs
  }

  acquire(
    borrower: string,
    requests: readonly LoanRequest[],
    left: readonly number[] = [],
  ): (LoanResponse | undefined)[] {
    for (const ticket of left) this.#queue.remove(borrower, ticket)
    return requests.map((request) => {
      const pair = this.#rows.pair(request.token)
      return pair && this.#lend(borrower, request, pair)
    })
  }

  /**
   * Returns the states of the accounts in a borrower's report: those in `accounts` (lists of account names as
   * JSON) and in `held`. The reported open holds are not recorded, because this database contains the holds.
   */
  apply(borrower: string, accounts: readonly string[], held: readonly HoldReport[]): BankStatement {
    const wanted = accounts.flatMap((list) => JSON.parse(list) as AccountName[])
    const names = new Set([...wanted, ...held.map(({ account }) => account)])
    return { states: this.#states(borrower, [...names]), locked: [] }
  }

  compare(borrower: string): AccountState[] {
    return this.#states(borrower, this.#book.accountsOf(borrower))
  }

  release(
    borrower: string,
    remainders: readonly { readonly account: AccountName; readonly keep: number }[],
  ): AccountState[] {
    for (const { account, keep } of remainders) this.#book.keep(account, borrower, keep)
    return this.#states(
      borrower,
      remainders.map(({ account }) => account),
    )
  }

  leave(borrower: string): void {
    this.#queue.drop(borrower)
    for (const account of this.#book.accountsOf(borrower)) this.#book.keep(account, borrower, 0)
  }

  /**
   * Keeps the borrowed amount of a parked hold for the process that will continue its call. Must be called
   * before the leases of the present borrower end.
   */
  setAside(borrower: string, hold: ParkedHold): void {
    for (const account of accountsOfCall(hold)) this.#book.move(account, borrower, nameOf(hold), hold.amount)
  }

  /** Lends a borrower the amount that was kept for a parked hold, because the borrower continues its call. */
  takeUp(borrower: string, hold: ParkedHold): void {
    for (const account of accountsOfCall(hold)) this.#book.move(account, nameOf(hold), borrower, hold.amount)
  }

  /** Ends all leases of a borrower whose process has ended. */
  drop(borrower: string): void {
    this.#queue.drop(borrower)
    this.#book.drop(borrower)
  }

  /** Pays a committed charge from the borrower's leases. */
  charge(borrower: string, call: SettledCall): void {
    if (call.quota === 0) return
    for (const account of accountsOfCall(call)) this.#book.spend(account, borrower, call.quota)
  }

  /** Ends the leases of changed accounts where necessary, and announces all changes that were committed. */
  applyChanges(changes: readonly AccountChange[]): void {
    for (const { account, recalls, recallsBudgets } of changes) {
      if (recallsBudgets) for (const budget of this.#book.budgetsOf(account)) this.#recallBudget(budget)
      this.#announce(account, recalls ? this.#recall(account) : this.#book.epoch(account))
    }
  }

  #lend(borrower: string, request: LoanRequest, pair: AccountPair): LoanResponse {
    const { need, max, budgets = [], place } = request
    for (const budget of budgets) this.#setBudget(budget, budgetAmount(budget, pair))
    const { token, user } = pair
    const wanted: Wanted[] = [
      { account: `u:${user.id}`, need: need.user, max: max.user },
      ...(token.unlimited_quota === 0
        ? [{ account: `t:${token.id}` as const, need: need.token, max: max.token }]
        : []),
      ...budgets,
    ]
    const needed = wanted.filter((one) => one.need > 0)
    const mayCall = request.isUnderWay === true || this.#isUsable(pair)
    const isFree = mayCall && needed.every((one) => this.#free(one.account) >= one.need)
    const granted = isFree && !(place && this.#queue.isBehind(place, needed, this.#freeNow()))
    if (granted) {
      if (place) this.#queue.remove(borrower, place.ticket)
      for (const { account, need: least, max: most } of wanted) {
        // While calls wait for quota of the account, only the required amount is lent; the rest is for these
        // calls.
        const useful = this.#queue.isAwaited(account) ? least : most
        this.#book.lend(account, borrower, share(this.#free(account), least, useful))
      }
    }
    const short = needed.map(({ account }) => account)
    return {
      granted,
      order: granted || !place ? undefined : this.#queue.put(borrower, place, short),
      isReturnable: !isFree && needed.every((one) => this.#returnable(borrower, one.account) >= one.need),
      token: tokenFromRow(token),
      user: userFromRow(user),
      tokenState: this.#state(borrower, `t:${token.id}`, {
        remain: token.remain_quota,
        used: token.used_quota,
      }),
      userState: this.#state(borrower, `u:${user.id}`, { remain: user.quota, used: user.used_quota }),
      budgetStates: this.#states(
        borrower,
        budgets.map(({ account }) => account),
      ),
    }
  }

  #isUsable({ token, user }: AccountPair): boolean {
    const isExpired = token.expired_time !== -1 && token.expired_time <= this.#nowMs() / 1000
    return [token, user].every((one) => one.status !== DISABLED && one.deleted_time === null) && !isExpired
  }

  #free(account: AccountName): number {
    return (this.#rows.find(account)?.remain ?? 0) - this.#book.leased(account)
  }

  #returnable(borrower: string, account: AccountName): number {
    return this.#free(account) + this.#book.spareOfOthers(account, borrower)
  }

  // Returns a function for the free quota of an account, which reads each account once.
  #freeNow(): (account: AccountName) => number {
    const known = new Map<AccountName, number>()
    return (account) => {
      const free = known.get(account) ?? this.#free(account)
      known.set(account, free)
      return free
    }
  }

  #states(borrower: string, accounts: readonly AccountName[]): AccountState[] {
    return accounts.flatMap((account) => {
      const balance = this.#rows.find(account)
      return balance ? [this.#state(borrower, account, balance)] : []
    })
  }

  #state(borrower: string, account: AccountName, { remain, used }: StoredBalance): AccountState {
    const [epoch, amount] = [this.#book.epoch(account), this.#book.amount(account, borrower)]
    const free = remain - this.#book.leased(account)
    return {
      account,
      epoch,
      remain,
      used,
      free,
      amount,
      counted: this.#book.takeUnreported(account, borrower),
    }
  }

  // If the amount of a budget becomes lower, its leases end, because they were lent under the higher amount.
  #setBudget({ account: name }: BudgetRequest, amount: number): void {
    const { budgets } = this.#rows
    const before = budgets.find(name).amount
    if (amount <= 0 || amount === before) return
    if (amount < before) this.#recallBudget(name)
    budgets.open({ name, amount })
  }

  #recallBudget(account: AccountName): void {
    if (this.#book.leased(account) === 0) return
    this.#announce(account, this.#recall(account))
  }

  // Ends the leases of an account, except for the amounts that the processes need for their open holds.
  #recall(account: AccountName): number {
    const held = new Map<string, number>()
    for (const { owner, parkedId, amount } of this.#rows.openHoldsOn(account)) {
      const borrower = parkedId === null ? owner : (this.#continuedBy(parkedId) ?? nameOf({ id: parkedId }))
      held.set(borrower, (held.get(borrower) ?? 0) + amount)
    }
    return this.#book.recall(account, held)
  }
}

/** Name under which the borrowed amount of a parked hold is kept while no process continues its call. */
function nameOf({ id }: Pick<ParkedHold, 'id'>): string {
  return `parked ${id}`
}

/**
 * What a loan request requires from one account: at least `need` quota units, and up to `max` if they are
 * free.
 */
interface Wanted {
  readonly account: AccountName
  readonly need: number
  readonly max: number
}

function share(free: number, need: number, max: number): number {
  return Math.max(0, Math.min(free, Math.max(need, Math.min(max, Math.trunc(free / LOAN_SHARE)))))
}

/** The rows of a token and its user. */
interface AccountPair {
  readonly token: TokenRow
  readonly user: UserRow
}

/** What is left of an account and what was charged to it, in quota units. */
interface StoredBalance {
  readonly remain: number
  readonly used: number
}

/** Open holds on an account, in quota units. */
interface HeldByOwner {
  readonly owner: string
  /** Id of the hold if it is parked; its owner then names no process. */
  readonly parkedId: string | null
  readonly amount: number
}

/** Reads the committed rows of accounts, between transactions. */
class AccountRows {
  readonly #tokenById: StatementSync
  readonly #tokenByHash: StatementSync
  readonly #userById: StatementSync
  readonly #tokenBalance: StatementSync
  readonly #userBalance: StatementSync
  readonly #openHoldsOnBudget: StatementSync
  readonly #openHoldsOnToken: StatementSync
  readonly #openHoldsOnUser: StatementSync
  readonly budgets: BudgetRows

  constructor(db: DatabaseSync) {
    this.budgets = new BudgetRows(db)
    this.#tokenById = db.prepare('SELECT * FROM tokens WHERE id = ?')
    this.#tokenByHash = db.prepare('SELECT * FROM tokens WHERE key_hash = ?')
    this.#userById = db.prepare('SELECT * FROM users WHERE id = ?')
    this.#tokenBalance = db.prepare(
      'SELECT remain_quota AS remain, used_quota AS used FROM tokens WHERE id = ?',
    )
    this.#userBalance = db.prepare('SELECT quota AS remain, used_quota AS used FROM users WHERE id = ?')
    const held = (where: string): StatementSync =>
      db.prepare(
        `SELECT owner, CASE owner WHEN '${PARKED_OWNER}' THEN id END AS parkedId, sum(amount) AS amount
         FROM holds WHERE ${where} GROUP BY 1, 2`,
      )
    this.#openHoldsOnBudget = held('instr(budgets, json_quote(?)) > 0')
    this.#openHoldsOnToken = held('token_id = ?')
    this.#openHoldsOnUser = held('user_id = ?')
  }

  /** Finds the token of a loan request, with its user; undefined if the token is unknown. */
  pair(of: LoanRequest['token']): AccountPair | undefined {
    const row = typeof of === 'number' ? this.#tokenById.get(of) : this.#tokenByHash.get(of.keyHash)
    const token = row as TokenRow | undefined
    if (!token) return undefined
    return { token, user: this.#userById.get(token.user_id) as unknown as UserRow }
  }

  /** Balance of an account, including lent amounts; undefined if the account is unknown. */
  find(account: AccountName): StoredBalance | undefined {
    if (account.startsWith('b:')) {
      const { amount, used } = this.budgets.find(account as BudgetName)
      return { remain: amount - used, used }
    }
    const rows = account.startsWith('u:') ? this.#userBalance : this.#tokenBalance
    return rows.get(Number(account.slice(2))) as StoredBalance | undefined
  }

  /** The open holds on an account: a sum for each process that owns holds, and each parked hold. */
  openHoldsOn(account: AccountName): HeldByOwner[] {
    return this.#holdsOn(account) as unknown as HeldByOwner[]
  }

  #holdsOn(account: AccountName): unknown[] {
    if (account.startsWith('b:')) return this.#openHoldsOnBudget.all(account)
    const holds = account.startsWith('u:') ? this.#openHoldsOnUser : this.#openHoldsOnToken
    return holds.all(Number(account.slice(2)))
  }
}

/**
 * Amount of a budget in quota units. Budgets of the token and the user are read from their rows; for any
 * other, the amount in the request is used (0 if unknown).
 */
function budgetAmount({ account, amount }: BudgetRequest, { token, user }: AccountPair): number {
  const period = account.split(':')[1]
  const owner = budgetOwnerOf(account)
  if (owner === `t:${token.id}` && token.budget_period === period) return token.budget
  if (owner === `u:${user.id}` && user.budget_period === period) return user.budget
  return amount
}
