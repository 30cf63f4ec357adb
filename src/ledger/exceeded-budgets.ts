import type { BudgetName } from '../domain/budget.ts'
import type { Rows } from '../store/store.ts'
import type { BudgetExceeded } from './unaffordable.ts'

/** Budgets that are remembered at once. */
const MAX_NOTED = 10_000

/** Notes in the store which budgets calls were refused for: each at its first refusal in a period. */
export class ExceededBudgets {
  readonly #rows: Pick<Rows, 'write'>
  /** Names that are in the store, or on their way to it. */
  readonly #noted = new Set<BudgetName>()

  constructor(rows: Pick<Rows, 'write'>) {
    this.#rows = rows
  }

  /** Notes the budgets that a call was refused for. */
  note({ exceeded }: BudgetExceeded): void {
    for (const { name, amount } of exceeded) {
      if (this.#noted.has(name)) continue
      if (this.#noted.size >= MAX_NOTED) this.#noted.clear()
      this.#noted.add(name)
      // The next refusal does what this one could not.
      this.#rows.write('noteExceededBudget', { name, amount }).catch(() => this.#noted.delete(name))
    }
  }
}
