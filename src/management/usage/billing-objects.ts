import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { displayAmount } from '../../domain/display-amount.ts'
import type { Options } from '../../domain/settings.ts'
import type { Token } from '../../domain/token.ts'
import type { User } from '../../domain/user.ts'
import { exactNumber } from '../../protocols/json/exact-json.ts'
import { expiresAt } from '../users/account-figures.ts'

/** What an unlimited token shows for a limit, in whatever display. */
const UNLIMITED = '100000000'

/** A number whose digits are exact when it is written as JSON. */
const amount = z.custom<object>()

/** `docs/api.md: Billing subscription object`. */
export const subscriptionSchema = z.object({
  object: z.literal('billing_subscription'),
  has_payment_method: z.literal(true),
  soft_limit_usd: amount,
  hard_limit_usd: amount,
  system_hard_limit_usd: amount,
  access_until: z.int(),
})

/** `docs/api.md: Billing usage object`. */
export const billingUsageSchema = z.object({ object: z.literal('list'), total_usage: amount })

/** Whose figures are shown is for `token_stats` to say; all quota is in whole units. */
interface Figures {
  readonly token: Token
  readonly user: User
}

/** What was granted: to the token, with its time of expiry, or to the user. */
export function subscriptionObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof subscriptionSchema> {
  const granted = options.tokenStats ? token.remainQuota + token.usedQuota : user.quota + user.usedQuota
  const isUnlimited = options.tokenStats && token.unlimitedQuota
  const limit = exactNumber(isUnlimited ? UNLIMITED : decimalText(displayAmount(granted, options)))
  return {
    object: 'billing_subscription',
    has_payment_method: true,
    soft_limit_usd: limit,
    hard_limit_usd: limit,
    system_hard_limit_usd: limit,
    access_until: options.tokenStats ? expiresAt(token) : 0,
  }
}

/** What was consumed, by the token or by the user, a hundredfold. */
export function billingUsageObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof billingUsageSchema> {
  const used = options.tokenStats ? token.usedQuota : user.usedQuota
  return { object: 'list', total_usage: exactNumber(decimalText(displayAmount(used, options, 100))) }
}
