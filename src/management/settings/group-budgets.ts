import type { Budget } from '../../domain/budget.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Json, JsonObject } from '../../domain/json.ts'

/** A budget in the form of gateway.yaml; empty if there is none. */
export function groupBudgetJson(budget: Budget | undefined): JsonObject {
  return budget ? { budget: budget.amount, budget_period: budget.period } : {}
}

/** Whether a given value equals the budget of a group. */
export function isSameBudget(budget: Budget | undefined, given: Json | undefined): boolean {
  const now = groupBudgetJson(budget)
  const { budget: amount, budget_period: period, ...others } = isObject(given) ? given : {}
  if (given !== undefined && (!isObject(given) || Object.keys(others).length > 0)) return false
  return amount === now['budget'] && period === now['budget_period']
}

/** The budgets of all groups, as JSON. */
export function groupBudgetsText(groups: ReadonlyMap<string, Group>): string {
  const budgets = [...groups.values()].filter(({ budget }) => budget)
  return JSON.stringify(
    Object.fromEntries(budgets.map(({ name, budget }) => [name, groupBudgetJson(budget)])),
  )
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
