/** Periods of budgets, all in UTC. A week begins on Monday. */
export const BUDGET_PERIODS = ['day', 'week', 'month'] as const

/** Period of a budget. */
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number]

/** Maximum that may be spent within each period; `docs/ledger.md: Budgets`. */
export interface Budget {
  /** Quota units, at least 1. */
  readonly amount: number
  readonly period: BudgetPeriod
}

/** Owner of a budget: a user, a token or a group. */
export type BudgetOwner = `u:${number}` | `t:${number}` | `g:${string}`

/** Name of the account of a budget for one period: `b:month:2026-11-01:u:3`. */
export type BudgetName = `b:${BudgetPeriod}:${string}:${BudgetOwner}`

/** A budget in the period of a particular call. */
export interface PeriodBudget {
  readonly name: BudgetName
  readonly owner: BudgetOwner
  readonly period: BudgetPeriod
  /** Quota units; 0 if unknown. */
  readonly amount: number
  /** Start of the next period. */
  readonly resetsMs: number
}

const DAY_MS = 86_400_000
const DAYS_PER_WEEK = 7
/** 1970-01-01 was a Thursday: the number of days since the Monday before it. */
const FIRST_DAY_OF_WEEK = 3

/** The budget's account for calls that begin at the given time. */
export function budgetAt({ amount, period }: Budget, owner: BudgetOwner, atMs: number): PeriodBudget {
  const { startMs, endMs } = periodAt(period, atMs)
  const date = new Date(startMs).toISOString().slice(0, 10)
  return { name: `b:${period}:${date}:${owner}`, owner, period, amount, resetsMs: endMs }
}

/** Start of the period that includes the given time, and of the period after it. */
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

/** The owner to which a budget's account belongs. */
export function ownerOf(name: string): BudgetOwner {
  return name.split(':').slice(3).join(':') as BudgetOwner
}

/**
 * The budget of a stored hold, reconstructed from its name. Its amount is unknown (0) until the next call
 * states it.
 */
export function budgetOfStoredHold(name: BudgetName): PeriodBudget {
  const [, period, date] = name.split(':') as [string, BudgetPeriod, string]
  const { endMs } = periodAt(period, Date.parse(date))
  return { name, owner: ownerOf(name), period, amount: 0, resetsMs: endMs }
}

/** Formats accounts as text for a column; empty if there are none. */
export function budgetList(names: readonly BudgetName[]): string {
  return names.length === 0 ? '' : JSON.stringify(names)
}

/** Parses the text of `budgetList`. */
export function budgetsIn(list: string): readonly BudgetName[] {
  return list === '' ? [] : (JSON.parse(list) as BudgetName[])
}

/**
 * The accounts of a hold that the call is charged to. A hold reserves the budgets of all groups whose
 * channels may answer; the call counts against that of the one that did.
 */
export function chargedBudgets(names: readonly BudgetName[], group: string): readonly BudgetName[] {
  return names.filter((name) => {
    const owner = ownerOf(name)
    return !owner.startsWith('g:') || owner === `g:${group}`
  })
}

/** A stored budget; undefined if it is off. */
export function budgetFrom(amount: number, period: string): Budget | undefined {
  const known = BUDGET_PERIODS.find((one) => one === period)
  return amount > 0 && known ? { amount, period: known } : undefined
}
