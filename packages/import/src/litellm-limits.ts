import { type RowReader, UnreadableValue } from './row-reader.ts'
import type { SourceRow } from './source.ts'

/** An amount in micro-dollars that may be spent in each period. */
export interface LitellmBudget {
  readonly amount: number
  readonly period: 'day' | 'week' | 'month'
  /** Spent in the present period, in micro-dollars. */
  readonly used: number
}

/** The limits that a row states, or else the budget to which it refers. */
export class Limits {
  /** Micro-dollars of `max_budget`; undefined if it is not stated. */
  readonly amount: number | undefined
  readonly rateColumns: SourceRow
  /** Why LiteLLM refuses every call; undefined if no limit is 0. */
  readonly closed: string | undefined
  readonly #duration: string
  /** The budget of `budget_limits` in a period that this gateway has. */
  readonly #listed: LitellmBudget | undefined

  constructor(row: RowReader, budget?: RowReader) {
    const holder = (column: string): RowReader => (row.isAbsent(column) && budget ? budget : row)
    const amounts = holder('max_budget')
    this.amount = amounts.isAbsent('max_budget') ? undefined : microDollars(amounts, 'max_budget')
    this.#duration = holder('budget_duration').text('budget_duration').trim()
    const rates = RATES.flatMap(([from, column]) => {
      const cells = holder(from)
      const stated = cells.isAbsent(from) ? undefined : cells.lenient(() => cells.integer(from), undefined)
      return stated === undefined ? [] : [{ from, column, stated }]
    })
    this.rateColumns = Object.fromEntries(
      rates.filter(({ stated }) => stated > 0).map(({ column, stated }) => [column, stated]),
    )
    const text = holder('budget_limits').text('budget_limits')
    const list = listedBudgets(text)
    const budgets = list.map(({ amount }) => ({ from: 'budget_limits', stated: amount / 1_000_000 }))
    const none = [...rates, ...budgets].find(({ stated }) => stated <= 0)
    this.closed = none && noCall(none.from, none.stated)
    this.#listed = this.#isRenewed ? undefined : list.flatMap(inPeriod)[0]
    if (this.#listed) {
      const { period } = this.#listed
      row.note(`budget_limits: the budget of the present ${period} begins unspent`)
      if (list.length > 1) row.note(`budget_limits: budgets beside that of a ${period} have no effect here`)
    } else if (!['', '{}', '[]', 'null'].includes(text) && !this.closed)
      row.note('budget_limits: has no effect here')
  }

  /** Whether the amount may be spent again after a time that is no period here. */
  get hasOtherPeriod(): boolean {
    return this.#duration !== '' && !PERIODS.has(this.#duration)
  }

  /** Why the amount is no budget with a period. */
  get unlike(): string {
    return this.hasOtherPeriod
      ? `a period of ${JSON.stringify(this.#duration)} is not a day, a week or a month`
      : 'it has no period'
  }

  /** The budget; undefined if there is none, or none with a period that this gateway has. */
  budget(used: number): LitellmBudget | undefined {
    const period = PERIODS.get(this.#duration)
    return this.#isRenewed && period && this.amount !== undefined
      ? { amount: this.amount, period, used }
      : this.#listed
  }

  /** What is left of an amount that is no budget with a period; undefined if there is none. */
  once(spent: number): number | undefined {
    return this.amount === undefined || this.#isRenewed ? undefined : Math.max(0, this.amount - spent)
  }

  get #isRenewed(): boolean {
    return this.amount !== undefined && this.amount > 0 && PERIODS.has(this.#duration)
  }
}

/** A budget in a list, in micro-dollars. */
interface ListedBudget {
  readonly amount: number
  readonly duration: string
}

/** Reads the budgets in `budget_limits`, a list in JSON; none if the text is not such a list. */
function listedBudgets(text: string): readonly ListedBudget[] {
  const list = parsedList(text)?.map((entry) => {
    const { max_budget: dollars, budget_duration: duration } = Object(entry) as Record<string, unknown>
    const amount = typeof dollars === 'number' ? Math.round(dollars * 1_000_000) : Number.NaN
    return { amount, duration: typeof duration === 'string' ? duration.trim() : '' }
  })
  return list?.every(({ amount, duration }) => Number.isSafeInteger(amount) && duration !== '') ? list : []
}

function parsedList(text: string): readonly unknown[] | undefined {
  try {
    const value = JSON.parse(text) as unknown
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The budget with a period of this gateway. The row does not say what was spent in the present one. */
function inPeriod({ amount, duration }: ListedBudget): readonly LitellmBudget[] {
  const period = PERIODS.get(duration)
  return period && amount > 0 ? [{ amount, period, used: 0 }] : []
}

/** Says that a limit of 0 allows no call. */
export function noCall(column: string, stated: number): string {
  return `${column}: ${stated} there, which allows no call`
}

const RATES = [
  ['rpm_limit', 'rate_limit_requests'],
  ['tpm_limit', 'rate_limit_tokens'],
  ['max_parallel_requests', 'rate_limit_parallel'],
] as const

/** Durations of LiteLLM that have a period here; a month is one of the calendar. */
const PERIODS: ReadonlyMap<string, LitellmBudget['period']> = new Map([
  ['24h', 'day'],
  ['1d', 'day'],
  ['daily', 'day'],
  ['7d', 'week'],
  ['weekly', 'week'],
  ['30d', 'month'],
  ['31d', 'month'],
  ['1mo', 'month'],
  ['monthly', 'month'],
])

/** Reads an amount of dollars as micro-dollars, rounded. */
export function microDollars(row: RowReader, column: string): number {
  if (row.isAbsent(column)) return 0
  const text = row.text(column)
  const value = Math.round(Number(text) * 1_000_000)
  if (text.trim() === '' || !Number.isSafeInteger(value))
    throw new UnreadableValue(column, 'an amount of dollars')
  return value
}
