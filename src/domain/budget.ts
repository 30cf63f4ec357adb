/** Periods of budgets. All are of UTC; a week begins on Monday. */
export const BUDGET_PERIODS = ['day', 'week', 'month'] as const

/** Period of a budget. */
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number]

/** Most that may be spent within each period; `docs/ledger.md: Budgets`. */
export interface Budget {
  /** Quota units, at least 1. */
  readonly amount: number
  readonly period: BudgetPeriod
}

/** Owner of a budget: a user, a token or a group. */
export type BudgetOwner = `u:${number}` | `t:${number}` | `g:${string}`

/** Name of the account of a budget in one period: `b:month:2026-11-01:u:3`. */
export type BudgetName = `b:${BudgetPeriod}:${string}:${BudgetOwner}`

/** A budget in the period of one call. */
export interface PeriodBudget {
  readonly name: BudgetName
  readonly owner: BudgetOwner
  readonly period: BudgetPeriod
  /** Quota units; 0 = unknown. */
  readonly amount: number
  /** Start of the next period. */
  readonly resetsMs: number
}

const DAY_MS = 86_400_000
const DAYS_PER_WEEK = 7
/** 1970-01-01 was a Thursday: days since the Monday before it. */
const FIRST_DAY_OF_WEEK = 3

/** The budget's account for calls that begin at that time. */
export function budgetAt({ amount, period }: Budget, owner: BudgetOwner, atMs: number): PeriodBudget {
  const { startMs, endMs } = periodAt(period, atMs)
  const date = new Date(startMs).toISOString().slice(0, 10)
  return { name: `b:${period}:${date}:${owner}`, owner, period, amount, resetsMs: endMs }
}

/** Start of the period that includes this time, and of the next one. */
export function periodAt(
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

/** The owner of a budget's account. */
export function ownerOf(name: string): BudgetOwner {
  return name.split(':').slice(3).join(':') as BudgetOwner
}

/** The terms of a stored hold's budget. Its amount is unknown (0) until the next call states it. */
export function storedTerms(name: BudgetName): PeriodBudget {
  const [, period, date] = name.split(':') as [string, BudgetPeriod, string]
  const { endMs } = periodAt(period, Date.parse(date))
  return { name, owner: ownerOf(name), period, amount: 0, resetsMs: endMs }
}

/** Lists accounts as text, for a column; empty for none. */
export function budgetList(names: readonly BudgetName[]): string {
  return names.length === 0 ? '' : JSON.stringify(names)
}

/** Reads what `budgetList` wrote. */
export function budgetsIn(list: string): readonly BudgetName[] {
  return list === '' ? [] : (JSON.parse(list) as BudgetName[])
}

/**
 * The accounts of a hold that its call is charged to. A hold reserves the budgets of all groups that may
 * answer; the call counts for the one that did.
 */
export function chargedBudgets(names: readonly BudgetName[], group: string): readonly BudgetName[] {
  return names.filter((name) => {
    const owner = ownerOf(name)
    return !owner.startsWith('g:') || owner === `g:${group}`
  })
}

/** A stored budget; undefined for one that is off. */
export function budgetFrom(amount: number, period: string): Budget | undefined {
  const known = BUDGET_PERIODS.find((one) => one === period)
  return amount > 0 && known ? { amount, period: known } : undefined
}
