/** Periods of budgets, all in UTC. A week begins on Monday. */
export const BUDGET_PERIODS = ['day', 'week', 'month'] as const

/** Length of the periods in which a budget may be spent. */
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number]

/** The maximum that may be spent within each period; `docs/ledger.md: Budgets`. */
export interface Budget {
  /** Maximum that may be spent in a period, in quota units; at least 1. */
  readonly amount: number
  readonly period: BudgetPeriod
}

/** Owner of a budget: a user, a token or a group. */
export type BudgetOwner = `u:${number}` | `t:${number}` | `g:${string}`

/** Name under which the spending of a budget's owner in one period is counted: `b:month:2026-11-01:u:3`. */
export type BudgetName = `b:${BudgetPeriod}:${string}:${BudgetOwner}`

/** A budget in the period in which a particular call began. */
export interface PeriodBudget {
  readonly name: BudgetName
  readonly owner: BudgetOwner
  readonly period: BudgetPeriod
  /** Amount of the budget in quota units; 0 if unknown. */
  readonly amount: number
  /** Start of the next period, in Unix milliseconds. */
  readonly resetsMs: number
}

const DAY_MS = 86_400_000
const DAYS_PER_WEEK = 7
/** Number of days from the last Monday before 1970-01-01, which was a Thursday, to that day. */
const FIRST_DAY_OF_WEEK = 3

/** The budget in the period that contains the given time (Unix milliseconds). */
export function budgetInPeriodAt({ amount, period }: Budget, owner: BudgetOwner, atMs: number): PeriodBudget {
  const { startMs, endMs } = budgetPeriodAt(period, atMs)
  const date = new Date(startMs).toISOString().slice(0, 10)
  return { name: `b:${period}:${date}:${owner}`, owner, period, amount, resetsMs: endMs }
}

/**
 * Start of the period that contains the given time, and start of the next period, both in Unix milliseconds.
 */
export function budgetPeriodAt(
  period: BudgetPeriod,
  atMs: number,
): { readonly startMs: number; readonly endMs: number } {
  const day = Math.floor(atMs / DAY_MS)
  switch (period) {
    case 'day':
      return { startMs: day * DAY_MS, endMs: (day + 1) * DAY_MS }
    case 'week': {
      const first = day - ((((day + FIRST_DAY_OF_WEEK) % DAYS_PER_WEEK) + DAYS_PER_WEEK) % DAYS_PER_WEEK)
      return { startMs: first * DAY_MS, endMs: (first + DAYS_PER_WEEK) * DAY_MS }
    }
    case 'month': {
      const date = new Date(atMs)
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
      return { startMs: Date.UTC(year, month, 1), endMs: Date.UTC(year, month + 1, 1) }
    }
  }
}

export function budgetOwnerOf(name: string): BudgetOwner {
  return name.split(':').slice(3).join(':') as BudgetOwner
}

/**
 * The budget of a stored hold (a reservation of quota), reconstructed from its name. Its amount is unknown
 * (0) until the next call states it.
 */
export function budgetOfStoredHold(name: BudgetName): PeriodBudget {
  const [, period, date] = name.split(':') as [string, BudgetPeriod, string]
  const { endMs } = budgetPeriodAt(period, Date.parse(date))
  return { name, owner: budgetOwnerOf(name), period, amount: 0, resetsMs: endMs }
}

/** Formats names of budgets as text for a database column; empty if there are none. */
export function formatBudgetList(names: readonly BudgetName[]): string {
  return names.length === 0 ? '' : JSON.stringify(names)
}

/** Parses the text of `formatBudgetList`. */
export function parseBudgetList(list: string): readonly BudgetName[] {
  return list === '' ? [] : (JSON.parse(list) as BudgetName[])
}

/**
 * The budgets of a hold that the call counts against. A hold reserves quota in the budgets of all groups that
 * may serve the call; of these groups, only the one that served it is kept.
 */
export function chargedBudgets(names: readonly BudgetName[], group: string): readonly BudgetName[] {
  return names.filter((name) => {
    const owner = budgetOwnerOf(name)
    return !owner.startsWith('g:') || owner === `g:${group}`
  })
}

/** A budget from its database columns; undefined if there is none. */
export function budgetFromColumns(amount: number, period: string): Budget | undefined {
  const known = BUDGET_PERIODS.find((one) => one === period)
  return amount > 0 && known ? { amount, period: known } : undefined
}
