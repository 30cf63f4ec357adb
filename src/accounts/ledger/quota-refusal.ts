import type { BudgetOwner, PeriodBudget } from '../../domain/budget.ts'
import { TOKEN_QUOTA_RAISED_BY } from '../../domain/api-key.ts'
import { type Hold, isHoldOfBatch } from '../../domain/hold.ts'
import { GatewayError, type RefusedLimit } from '../../errors.ts'
import type { Balance } from './balance.ts'
import type { ChargedBudget, ChargedBalances } from './charged-balances.ts'

/**
 * Amounts of the balance or budget that is too low, in quota units; `left` is neither spent nor held,
 * `needed` is what the call asked for.
 */
export interface ShortfallAmounts {
  readonly spent: number
  readonly held: number
  readonly left: number
  readonly needed: number
}

/** Formats an amount in the unit that the operator displays; undefined if that is quota units. */
type AmountText = (amount: number, rounding: 'up' | 'down') => string | undefined

const NOT_SHOWN: AmountText = () => undefined

/** Refusal of a call that may cost more quota units than are free. */
export abstract class Unaffordable extends GatewayError {
  /** The same refusal, with its amounts also formatted by `text`. */
  abstract showing(text: AmountText): Unaffordable

  /** Text for a client whose response was cut off because its hold could not grow any more. */
  abstract get usedUp(): string
}

/** Who can raise a quota that is too low; a client is often used by somebody who has never seen the gateway. */
const RAISED_BY = {
  user: 'an administrator of the gateway can raise the quota of this user',
  token: TOKEN_QUOTA_RAISED_BY,
} as const

/** Refusal of a call that costs more than its token or its user has. */
export class InsufficientQuota extends Unaffordable {
  readonly #funds: ShortfallAmounts

  constructor(funds: ShortfallAmounts, limit?: RefusedLimit, text = NOT_SHOWN) {
    const { left, needed } = funds
    super(
      'insufficient_quota',
      `quota is not enough for this request: ${left} remain, ${needed} are needed` +
        `${shownOf(funds, text)}; ${othersOf(funds, text)}; ${RAISED_BY[limit?.subject === 'token' ? 'token' : 'user']}`,
      { limit },
    )
    this.#funds = funds
  }

  override showing(text: AmountText): InsufficientQuota {
    return new InsufficientQuota(this.#funds, this.limit, text)
  }

  override get usedUp(): string {
    return 'the quota held for this response is used up'
  }
}

/** Refusal of a call that costs more than what is left of a budget in the period in which the call began. */
export class BudgetExceeded extends Unaffordable {
  /** All budgets that are too low; the message names the first. */
  readonly exceeded: readonly [PeriodBudget, ...PeriodBudget[]]
  readonly #funds: ShortfallAmounts
  readonly #nowMs: number

  /** `nowMs` is the time from which `retry-after` counts. */
  constructor(
    exceeded: readonly [PeriodBudget, ...PeriodBudget[]],
    funds: ShortfallAmounts,
    nowMs: number,
    limit?: RefusedLimit,
    text = NOT_SHOWN,
  ) {
    const [periodBudget] = exceeded
    const { spent, held, left, needed } = funds
    super(
      'budget_exceeded',
      `${nameOf(periodBudget)} is not enough for this request: ${left} of ${spent + held + left} remain, ` +
        `${needed} are needed${shownOf(funds, text)}; ${othersOf(funds, text)}; ` +
        `it resets at ${resetText(periodBudget)}`,
      { retryAfter: Math.max(1, Math.ceil((periodBudget.resetsMs - nowMs) / 1000)), limit },
    )
    this.exceeded = exceeded
    this.#funds = funds
    this.#nowMs = nowMs
  }

  override showing(text: AmountText): BudgetExceeded {
    return new BudgetExceeded(this.exceeded, this.#funds, this.#nowMs, this.limit, text)
  }

  override get usedUp(): string {
    const [periodBudget] = this.exceeded
    return `${nameOf(periodBudget)} is used up; it resets at ${resetText(periodBudget)}`
  }
}

/**
 * Refusal of a call that other calls' open holds prevent: it would be affordable if they ended without a
 * charge.
 */
export class QuotaHeldByOtherCalls extends Unaffordable {
  readonly #funds: ShortfallAmounts
  readonly #of: string

  /** `of` names the balance or budget that is too low. */
  constructor(of: string, funds: ShortfallAmounts, limit?: RefusedLimit, text = NOT_SHOWN) {
    const { left, needed } = funds
    super(
      'quota_held',
      `calls under way hold what this request needs of ${of}: ${left} remain, ${needed} are needed` +
        `${shownOf(funds, text)}; ${othersOf(funds, text)}; try again when they have ended`,
      { retryAfter: 1, limit },
    )
    this.#funds = funds
    this.#of = of
  }

  override showing(text: AmountText): QuotaHeldByOtherCalls {
    return new QuotaHeldByOtherCalls(this.#of, this.#funds, this.limit, text)
  }

  override get usedUp(): string {
    return `the quota held for this response is used up, and ${this.message}`
  }
}

/** Returns the amounts in the displayed unit, such as ` ($0.10 of $0.25)`; empty if that is quota units. */
function shownOf({ left, needed }: ShortfallAmounts, text: AmountText): string {
  const shown = text(left, 'down')
  return shown === undefined ? '' : ` (${shown} of ${text(needed, 'up')})`
}

function othersOf({ spent, held }: ShortfallAmounts, text: AmountText): string {
  const shown = text(spent, 'up')
  const amounts = shown === undefined ? '' : ` (${shown} and ${text(held, 'up')})`
  return `${spent} are spent, ${held} are held by calls under way${amounts}`
}

/**
 * Returns how many quota units of a balance count as available, with or without those that open holds need.
 */
type Available = (balance: Balance) => number

const WITH_HOLDS: Available = ({ isUnlimited, holdable, accountFree }) =>
  isUnlimited ? holdable : accountFree
// No call waits until an unlimited balance holds less.
const WITHOUT_HOLDS: Available = ({ isUnlimited, holdable, accountRemain, committed }) =>
  isUnlimited ? holdable : accountRemain - committed

/** Whether the amount would be affordable if all open holds except those of batches were released without a charge. */
export function isAffordableWithoutOtherHolds(payer: ChargedBalances, amount: number): boolean {
  return !isShort(payer, amount, WITHOUT_HOLDS)
}

/**
 * Builds the refusal of a hold: `QuotaHeldByOtherCalls` if only open holds prevent it. Otherwise `InsufficientQuota`
 * takes precedence over `BudgetExceeded`, because no new period restores quota. Of several budgets, the one
 * that resets last is named.
 */
export function refusalOfHold(payer: ChargedBalances, amount: number, nowMs: number): Unaffordable {
  if (!isAffordableWithoutOtherHolds(payer, amount)) return usedUpBy(payer, amount, nowMs, WITHOUT_HOLDS)
  return refusalByOpenHolds(payer, amount)
}

/** Builds the refusal of a hold that only open holds prevent. */
export function refusalByOpenHolds(payer: ChargedBalances, amount: number): QuotaHeldByOtherCalls {
  const quota = shortQuota(payer, amount, WITH_HOLDS)
  const [budget] = shortBudgets(payer, amount, WITH_HOLDS)
  if (quota === undefined && budget)
    return new QuotaHeldByOtherCalls(
      nameOf(budget.periodBudget),
      fundsOf(budget.balance, amount),
      budgetLimit(budget, amount),
    )
  const subject = quota ?? (isOfToken(payer, WITH_HOLDS) ? 'token' : 'user')
  const funds = fundsOf(payer.account[subject], amount)
  return new QuotaHeldByOtherCalls('the quota', funds, quotaLimit(payer, subject, funds))
}

/** An open hold: its balances, and the quota units that it holds. */
type HeldAmount = ChargedBalances & Pick<Hold, 'id'> & { readonly amount: number }

/** Whether a hold could grow by this amount if all other holds except those of batches were released without a charge. */
export function canHoldGrowWithoutOtherHolds(hold: HeldAmount, by: number): boolean {
  // What batches hold counts as spent already.
  return isAffordableWithoutOtherHolds(hold, isHoldOfBatch(hold) ? by : hold.amount + by)
}

/** Builds the refusal of the growth of a hold: `QuotaHeldByOtherCalls` if only the holds of other calls prevent it. */
export function createHoldGrowthRefusal(hold: HeldAmount, by: number, nowMs: number): Unaffordable {
  return canHoldGrowWithoutOtherHolds(hold, by)
    ? refusalByOpenHolds(hold, by)
    : usedUpBy(hold, by, nowMs, WITH_HOLDS)
}

function usedUpBy(payer: ChargedBalances, amount: number, nowMs: number, available: Available): Unaffordable {
  const [short, ...others] = shortBudgets(payer, amount, available)
  const quota = shortQuota(payer, amount, available)
  if (!short || quota !== undefined) {
    const subject = quota ?? (isOfToken(payer, available) ? 'token' : 'user')
    const funds = fundsOf(payer.account[subject], amount)
    return new InsufficientQuota(funds, quotaLimit(payer, subject, funds))
  }
  const exceeded = [short.periodBudget, ...others.map(({ periodBudget }) => periodBudget)] as const
  return new BudgetExceeded(exceeded, fundsOf(short.balance, amount), nowMs, budgetLimit(short, amount))
}

function isShort(payer: ChargedBalances, amount: number, available: Available): boolean {
  if (shortQuota(payer, amount, available) !== undefined) return true
  return payer.budgets.some(({ balance }) => available(balance) < amount)
}

/** Which of the token's and the user's balances is too low; if both are, the one that lacks more. */
function shortQuota(
  payer: ChargedBalances,
  amount: number,
  available: Available,
): 'token' | 'user' | undefined {
  const subject = isOfToken(payer, available) ? 'token' : 'user'
  return available(payer.account[subject]) < amount ? subject : undefined
}

function isOfToken({ account: { token, user } }: ChargedBalances, available: Available): boolean {
  return !token.isUnlimited && available(token) <= available(user)
}

/** The budgets that are too low; the one that resets last comes first. */
function shortBudgets(
  { budgets }: ChargedBalances,
  amount: number,
  available: Available,
): readonly ChargedBudget[] {
  return budgets
    .filter(({ balance }) => available(balance) < amount)
    .toSorted((a, b) => b.periodBudget.resetsMs - a.periodBudget.resetsMs)
}

function fundsOf(balance: Balance, needed: number): ShortfallAmounts {
  const { accountUsed, accountRemain, committed, isUnlimited } = balance
  const left = WITH_HOLDS(balance)
  const held = isUnlimited ? balance.held - committed : Math.max(0, accountRemain - committed - left)
  return { spent: accountUsed + committed, held, left, needed }
}

function quotaLimit(
  { account }: ChargedBalances,
  subject: 'token' | 'user',
  funds: ShortfallAmounts,
): RefusedLimit {
  return { subject, id: account[subject].id, name: null, kind: 'quota', ...funds, resets_at: null }
}

const SUBJECTS = { t: 'token', u: 'user', g: 'group' } as const

function budgetLimit(budget: ChargedBudget, needed: number): RefusedLimit {
  const { owner, resetsMs } = budget.periodBudget
  const subject = SUBJECTS[owner.slice(0, 1) as keyof typeof SUBJECTS]
  const name = owner.slice(2)
  return {
    subject,
    id: subject === 'group' ? null : Number(name),
    name: subject === 'group' ? name : null,
    kind: 'budget',
    ...fundsOf(budget.balance, needed),
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
