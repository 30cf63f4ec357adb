import type { BudgetOwner, PeriodBudget } from '../../domain/budget.ts'
import { GatewayError } from '../../errors.ts'
import type { Account } from './balance.ts'
import { affordableAmount, type ChargedBudget } from './payer.ts'

/** Formats the amounts of a refusal in the operator's display: ` ($0.10 of $0.25)`. */
type ShownAmounts = (free: number, needed: number) => string

const NOT_SHOWN: ShownAmounts = () => ''

/** Refusal of a call that may cost more quota units than are free. */
export abstract class Unaffordable extends GatewayError {
  /** The same refusal, with its amounts shown in another unit as well. */
  abstract showing(shown: ShownAmounts): Unaffordable

  /** The reason given when a response ends because its hold cannot grow any more. */
  abstract get usedUp(): string
}

/** Refusal of a call that costs more than its token or its user has. */
export class InsufficientQuota extends Unaffordable {
  readonly #free: number
  readonly #needed: number

  constructor(free: number, needed: number, shown = NOT_SHOWN) {
    super(
      'insufficient_quota',
      `quota is not enough for this request: ${free} remain, ${needed} are needed${shown(free, needed)}`,
    )
    this.#free = free
    this.#needed = needed
  }

  override showing(shown: ShownAmounts): InsufficientQuota {
    return new InsufficientQuota(this.#free, this.#needed, shown)
  }

  override get usedUp(): string {
    return 'the quota held for this response is used up'
  }
}

/** Refusal of a call that costs more than what is left of a budget in the period in which the call began. */
export class BudgetExceeded extends Unaffordable {
  /** All budgets that are too low; the message names the first. */
  readonly exceeded: readonly [PeriodBudget, ...PeriodBudget[]]
  readonly #free: number
  readonly #needed: number
  readonly #nowMs: number

  /** `nowMs` is the time from which `retry-after` counts. */
  constructor(
    exceeded: readonly [PeriodBudget, ...PeriodBudget[]],
    free: number,
    needed: number,
    nowMs: number,
    shown = NOT_SHOWN,
  ) {
    const [terms] = exceeded
    super(
      'budget_exceeded',
      `${nameOf(terms)} is not enough for this request: ${free} of ${terms.amount} remain, ` +
        `${needed} are needed${shown(free, needed)}; it resets at ${resetText(terms)}`,
      { retryAfter: Math.max(1, Math.ceil((terms.resetsMs - nowMs) / 1000)) },
    )
    this.exceeded = exceeded
    this.#free = free
    this.#needed = needed
    this.#nowMs = nowMs
  }

  override showing(shown: ShownAmounts): BudgetExceeded {
    return new BudgetExceeded(this.exceeded, this.#free, this.#needed, this.#nowMs, shown)
  }

  override get usedUp(): string {
    const [terms] = this.exceeded
    return `${nameOf(terms)} is used up; it resets at ${resetText(terms)}`
  }
}

/**
 * Builds the refusal of a hold. Insufficient quota comes first, because no new period restores it; among
 * budgets, the one that resets last. `freeOf` returns the free quota of a budget.
 */
export function refusalOf(
  account: Account,
  budgets: readonly ChargedBudget[],
  amount: number,
  nowMs: number,
  free = affordableAmount(account),
  freeOf = ({ balance }: ChargedBudget): number => balance.free,
): Unaffordable {
  const [short, ...others] = budgets
    .filter((budget) => freeOf(budget) < amount)
    .toSorted((a, b) => b.terms.resetsMs - a.terms.resetsMs)
  if (!short || free < amount) return new InsufficientQuota(free, amount)
  const exceeded = [short.terms, ...others.map(({ terms }) => terms)] as const
  return new BudgetExceeded(exceeded, freeOf(short), amount, nowMs)
}

const ADJECTIVES = { day: 'daily', week: 'weekly', month: 'monthly' } as const

function nameOf({ owner, period }: PeriodBudget): string {
  return `the ${ADJECTIVES[period]} budget of ${ownerName(owner)}`
}

function resetText({ resetsMs }: PeriodBudget): string {
  return new Date(resetsMs).toISOString().replace('.000', '')
}

function ownerName(owner: BudgetOwner): string {
  if (owner.startsWith('t:')) return 'this API key'
  return owner.startsWith('u:') ? 'its user' : `the group ${owner.slice(2)}`
}
