import { amountText } from '../domain/display-amount.ts'
import type { Options } from '../domain/settings.ts'
import type { Unaffordable } from '../ledger/unaffordable.ts'

/** The same refusal with its amounts in the display that the operator chose. */
export function withAmountText(refusal: Unaffordable, options: Options): Unaffordable {
  return refusal.showing((free, needed) => {
    const left = amountText(free, options, 'down')
    return left === undefined ? '' : ` (${left} of ${amountText(needed, options, 'up')})`
  })
}
