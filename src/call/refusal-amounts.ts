import type { Unaffordable } from '../accounts/ledger/quota-refusal.ts'
import { amountText } from '../domain/display-amount.ts'
import type { Options } from '../domain/options.ts'

/** Returns the refusal with its amounts also in the unit that the operator chose. */
export function withDisplayedAmounts(refusal: Unaffordable, options: Options): Unaffordable {
  return refusal.showing((amount, rounding) => amountText(amount, options, rounding))
}
