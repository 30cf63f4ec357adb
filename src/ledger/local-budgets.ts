import type { BudgetName, PeriodBudget } from '../domain/budget.ts'
import type { Store } from '../store/store.ts'
import { Balance } from './balance.ts'
import { type ChargedBudget, NO_BUDGETS } from './payer.ts'

/** Maximum number of cached accounts; beyond it, idle ones are evicted, oldest first. */
const MAX_BUDGETS = 50_000

/** Balance of a budget's account, and the amount of the budget that it was computed with. */
interface LocalBudget {
  readonly balance: Balance
  amount: number
}

/**
 * Accounts of budgets on a node that has the database to itself. The first use reads what is used in the
 * period behind every write queued earlier; from then on the balances here are ahead of the store.
 */
export class LocalBudgets {
  readonly #store: Pick<Store, 'write'>
  readonly #budgets = new Map<BudgetName, LocalBudget>()
  readonly #loading = new Map<BudgetName, Promise<void>>()

  constructor(store: Pick<Store, 'write'>) {
    this.#store = store
  }

  /** The cached accounts, with the amounts that the terms state, if any; undefined where one is missing. */
  get(terms: readonly PeriodBudget[]): readonly ChargedBudget[] | undefined {
    if (terms.length === 0) return NO_BUDGETS
    const charged: ChargedBudget[] = []
    for (const one of terms) {
      const budget = this.#budgets.get(one.name)
      if (!budget) return undefined
      if (one.amount > 0 && one.amount !== budget.amount) this.#changeAmount(budget, one)
      charged.push({ terms: one, balance: budget.balance })
    }
    return charged
  }

  /** Resolves once all of them are cached. */
  async load(terms: readonly PeriodBudget[]): Promise<void> {
    await Promise.all(terms.map((one) => this.#loadOnce(one)))
  }

  #loadOnce(terms: PeriodBudget): Promise<void> {
    const { name } = terms
    if (this.#budgets.has(name)) return Promise.resolve()
    let loading = this.#loading.get(name)
    if (!loading) {
      loading = this.#load(terms).finally(() => this.#loading.delete(name))
      this.#loading.set(name, loading)
    }
    return loading
  }

  async #load({ name, amount }: PeriodBudget): Promise<void> {
    const { used } = await this.#store.write('openBudget', { name, amount })
    this.#budgets.set(name, { balance: new Balance(0, amount - used), amount })
    if (this.#budgets.size > MAX_BUDGETS) this.#evictIdle()
  }

  // Calls are admitted by the new amount at once; what was charged and what is held stays. The store learns
  // of it for its own sums, and again with the next change or load.
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
