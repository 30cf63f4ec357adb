import type { BudgetName, PeriodBudget } from '../../domain/budget.ts'
import type { ManagedUser } from '../../domain/records/user.ts'
import type { TokenChange } from '../../store/operations/tokens.ts'
import type { UserChange } from '../../store/operations/users.ts'
import type { TokenWithKey } from '../../store/operations/find-accounts.ts'
import type { Store } from '../../store/store.ts'
import type { AccountSource, LoanOutcome, TokenWithAccount } from './account-source.ts'
import { type Account, Balance } from './balance.ts'
import { type ChargedBudget, NO_BUDGETS, type ChargedBalances } from './charged-balances.ts'

/** Maximum number of cached accounts; beyond it, idle ones are evicted, oldest first. */
const MAX_ACCOUNTS = 50_000

/**
 * Accounts of a node that has the database to itself. The first use of an account reads it through the
 * writer's queue, after all writes queued earlier. From then on the balances in memory are ahead of the
 * store, never behind it.
 */
export class LocalAccounts implements AccountSource {
  readonly lends = false
  readonly #store: Store
  readonly #accounts = new Map<number, Account>()
  readonly #users = new Map<number, Balance>()
  readonly #budgets: LocalBudgets
  readonly #loading = new Map<number, Promise<Account | undefined>>()

  constructor(store: Store) {
    this.#store = store
    this.#budgets = new LocalBudgets(store)
  }

  get(tokenId: number): Account | undefined {
    return this.#accounts.get(tokenId)
  }

  load(tokenId: number): Promise<Account | undefined> {
    const cached = this.#accounts.get(tokenId)
    if (cached) return Promise.resolve(cached)
    let loading = this.#loading.get(tokenId)
    if (!loading) {
      loading = this.#loadAccount(tokenId).finally(() => this.#loading.delete(tokenId))
      this.#loading.set(tokenId, loading)
    }
    return loading
  }

  async findByKeyHash(keyHash: string): Promise<TokenWithAccount | undefined> {
    const found = await this.#store.read('tokenByKeyHash', keyHash)
    const account = found && (await this.load(found.token.id))
    return found && account ? { ...found, account } : undefined
  }

  // There is no bank to borrow from, so nothing is done here; admission refuses and states what remains.
  ensureAffordable(payer: ChargedBalances): Promise<ChargedBalances> {
    return Promise.resolve(payer)
  }

  coverHolds(): Promise<void> {
    return Promise.resolve()
  }

  borrow(payer: ChargedBalances): Promise<LoanOutcome> {
    return Promise.resolve({ payer })
  }

  borrowForHold(hold: ChargedBalances): Promise<LoanOutcome> {
    return this.borrow(hold)
  }

  // No other process shares this database, so there is no queue to leave.
  leave(): void {}
  released(): void {}

  budgets(_: Account, periodBudgets: readonly PeriodBudget[]): readonly ChargedBudget[] | undefined {
    return this.#budgets.get(periodBudgets)
  }

  loadBudgets(periodBudgets: readonly PeriodBudget[]): Promise<void> {
    return this.#budgets.load(periodBudgets)
  }

  /**
   * Changes a user; resolves to undefined for an unknown user. The balance changes only once the change is
   * durable, because a change that the store refuses must not have paid for a call. It changes by the
   * difference in the row, so that concurrent charges count. Writes resolve in queue order: a balance read
   * before this write is cached by then, and any other balance is read after it.
   */
  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    const changed = await this.#store.write('changeUser', change)
    const balance = this.#users.get(change.userId)
    if (changed && balance) {
      balance.remain += changed.quotaMoved
      balance.isUnlimited = changed.user.unlimited_quota
    }
    return changed?.user
  }

  /**
   * Changes a token; undefined if the user has no such token. Once durable, the balance changes by the
   * difference in the row: calls settled since the write was queued stay charged, and open holds are settled
   * against the new number.
   */
  async changeToken(change: TokenChange): Promise<TokenWithKey | undefined> {
    const changed = await this.#store.write('changeToken', change)
    if (!changed) return undefined
    const account = this.#accounts.get(change.tokenId)
    if (account) {
      // Subtracts first: the numbers of unlimited tokens are so large that their sum may be inexact.
      account.token.remain = account.token.remain - changed.remainBefore + changed.token.remain_quota
      account.token.isUnlimited = changed.token.unlimited_quota
    }
    return changed
  }

  async #loadAccount(tokenId: number): Promise<Account | undefined> {
    const row = await this.#store.write('loadAccount', { tokenId })
    if (!row) return undefined
    // A cached user is newer than the row, because calls of another token may have been charged since.
    let user = this.#users.get(row.user.id)
    if (!user) {
      user = new Balance(row.user.id, row.user.quota, row.user.used_quota, row.user.unlimited_quota)
      this.#users.set(user.id, user)
    }
    const { remain_quota, used_quota, unlimited_quota } = row.token
    const account = { token: new Balance(tokenId, remain_quota, used_quota, unlimited_quota), user }
    this.#accounts.set(tokenId, account)
    if (this.#accounts.size > MAX_ACCOUNTS) this.#evictIdle()
    return account
  }

  #evictIdle(): void {
    const users = new Set<number>()
    let excess = this.#accounts.size - MAX_ACCOUNTS
    for (const [tokenId, account] of this.#accounts) {
      if (excess > 0 && account.token.isIdle) {
        this.#accounts.delete(tokenId)
        excess -= 1
      } else users.add(account.user.id)
    }
    for (const [userId, user] of this.#users)
      if (user.isIdle && !users.has(userId)) this.#users.delete(userId)
  }
}

/** Maximum number of cached balances of budgets; beyond it, idle ones are evicted, oldest first. */
const MAX_BUDGETS = 50_000

/** Balance of a budget's account, and the budget's amount from which the balance was computed. */
interface LocalBudget {
  readonly balance: Balance
  amount: number
}

/**
 * Accounts of budgets on a node that has the database to itself; `docs/ledger.md: Accounts of budgets`. The
 * first use reads what was spent in the period, after every write queued earlier; from then on the balances
 * in memory are ahead of the store.
 */
class LocalBudgets {
  readonly #store: Pick<Store, 'write'>
  readonly #budgets = new Map<BudgetName, LocalBudget>()
  readonly #loading = new Map<BudgetName, Promise<void>>()

  constructor(store: Pick<Store, 'write'>) {
    this.#store = store
  }

  /** The cached accounts of these budgets, with the amounts that they state; undefined if one is missing. */
  get(periodBudgets: readonly PeriodBudget[]): readonly ChargedBudget[] | undefined {
    if (periodBudgets.length === 0) return NO_BUDGETS
    const charged: ChargedBudget[] = []
    for (const one of periodBudgets) {
      const budget = this.#budgets.get(one.name)
      if (!budget) return undefined
      if (one.amount > 0 && one.amount !== budget.amount) this.#changeAmount(budget, one)
      charged.push({ periodBudget: one, balance: budget.balance })
    }
    return charged
  }

  /** Loads the accounts of these budgets; resolves once all of them are cached. */
  async load(periodBudgets: readonly PeriodBudget[]): Promise<void> {
    await Promise.all(periodBudgets.map((one) => this.#loadOnce(one)))
  }

  #loadOnce(periodBudget: PeriodBudget): Promise<void> {
    const { name } = periodBudget
    if (this.#budgets.has(name)) return Promise.resolve()
    let loading = this.#loading.get(name)
    if (!loading) {
      loading = this.#load(periodBudget).finally(() => this.#loading.delete(name))
      this.#loading.set(name, loading)
    }
    return loading
  }

  async #load({ name, amount }: PeriodBudget): Promise<void> {
    const { used } = await this.#store.write('openBudget', { name, amount })
    this.#budgets.set(name, { balance: new Balance(0, amount - used, used), amount })
    if (this.#budgets.size > MAX_BUDGETS) this.#evictIdle()
  }

  // New calls are admitted by the new amount at once; charges and holds stay. The store needs the new amount
  // for its own sums. If this write fails, the next change or load repeats it.
  #changeAmount(budget: LocalBudget, { name, amount }: PeriodBudget): void {
    budget.balance.remain += amount - budget.amount
    budget.amount = amount
    this.#store.write('openBudget', { name, amount }).catch(() => {})
  }

  #evictIdle(): void {
    let excess = this.#budgets.size - MAX_BUDGETS
    for (const [name, { balance }] of this.#budgets) {
      if (excess === 0) return
      if (!balance.isIdle) continue
      this.#budgets.delete(name)
      excess -= 1
    }
  }
}
