import type { BudgetOwner, PeriodBudget } from '../../domain/budget.ts'
import { GatewayError, type RefusedLimit } from '../../errors.ts'
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

  constructor(free: number, needed: number, limit?: RefusedLimit, shown = NOT_SHOWN) {
    super(
      'insufficient_quota',
      `quota is not enough for this request: ${free} remain, ${needed} are needed${shown(free, needed)}`,
      { limit },
    )
    this.#free = free
    this.#needed = needed
  }

  override showing(shown: ShownAmounts): InsufficientQuota {
    return new InsufficientQuota(this.#free, this.#needed, this.limit, shown)
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
    limit?: RefusedLimit,
    shown = NOT_SHOWN,
  ) {
    const [periodBudget] = exceeded
    super(
      'budget_exceeded',
      `${nameOf(periodBudget)} is not enough for this request: ${free} of ${periodBudget.amount} remain, ` +
        `${needed} are needed${shown(free, needed)}; it resets at ${resetText(periodBudget)}`,
      { retryAfter: Math.max(1, Math.ceil((periodBudget.resetsMs - nowMs) / 1000)), limit },
    )
    this.exceeded = exceeded
    this.#free = free
    this.#needed = needed
    this.#nowMs = nowMs
  }

  override showing(shown: ShownAmounts): BudgetExceeded {
    return new BudgetExceeded(this.exceeded, this.#free, this.#needed, this.#nowMs, this.limit, shown)
  }

  override get usedUp(): string {
    const [periodBudget] = this.exceeded
    return `${nameOf(periodBudget)} is used up; it resets at ${resetText(periodBudget)}`
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
    .toSorted((a, b) => b.periodBudget.resetsMs - a.periodBudget.resetsMs)
  if (!short || free < amount) return new InsufficientQuota(free, amount, quotaLimit(account, free, amount))
  const exceeded = [short.periodBudget, ...others.map(({ periodBudget }) => periodBudget)] as const
  const left = freeOf(short)
  return new BudgetExceeded(exceeded, left, amount, nowMs, budgetLimit(short, left, amount))
}

function quotaLimit({ token, user, unlimited }: Account, left: number, needed: number): RefusedLimit {
  const isOfToken = !unlimited && token.free <= user.free
  const { id, held } = isOfToken ? token : user
  const subject = isOfToken ? 'token' : 'user'
  return { subject, id, name: null, kind: 'quota', spent: null, held, left, needed, resets_at: null }
}

const SUBJECTS = { t: 'token', u: 'user', g: 'group' } as const

function budgetLimit({ periodBudget, balance }: ChargedBudget, left: number, needed: number): RefusedLimit {
  const { owner, amount, resetsMs } = periodBudget
  const subject = SUBJECTS[owner.slice(0, 1) as keyof typeof SUBJECTS]
  const name = owner.slice(2)
  const { held } = balance
  return {
    subject,
    id: subject === 'group' ? null : Number(name),
    name: subject === 'group' ? name : null,
    kind: 'budget',
    spent: amount - left - held,
    held,
    left,
    needed,
    resets_at: Math.floor(resetsMs / 1000),
  }
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
