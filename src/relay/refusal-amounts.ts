import { amountText } from '../domain/display-amount.ts'
import type { Options } from '../domain/settings.ts'
import { InsufficientQuota } from '../ledger/balance.ts'

/** The same refusal with its amounts in the display that the operator chose. */
export function withAmountText({ free, needed }: InsufficientQuota, options: Options): InsufficientQuota {
  const left = amountText(free, options, 'down')
  const price = amountText(needed, options, 'up')
  return new InsufficientQuota(free, needed, left === undefined ? '' : ` (${left} of ${price})`)
}
