import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { displayAmount } from '../../domain/display-amount.ts'
import type { Options } from '../../domain/settings.ts'
import type { Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import { exactNumber } from '../../protocols/json/exact-json.ts'
import { expiresAt } from '../users/account-figures.ts'

/** The limit shown for an unlimited token, in any display. */
const UNLIMITED = '100000000'

/** A number that is serialized to JSON with exact digits. */
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

/** The accounts of a key, in quota units; `token_stats` decides which of them is shown. */
interface Figures {
  readonly token: Token
  readonly user: User
}

/** The granted quota of the token, with its expiry, or of the user. */
export function subscriptionObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof subscriptionSchema> {
  const granted = options.token_stats ? token.remain_quota + token.used_quota : user.quota + user.used_quota
  const isUnlimited = options.token_stats && token.unlimited_quota
  const limit = exactNumber(isUnlimited ? UNLIMITED : decimalText(displayAmount(granted, options)))
  return {
    object: 'billing_subscription',
    has_payment_method: true,
    soft_limit_usd: limit,
    hard_limit_usd: limit,
    system_hard_limit_usd: limit,
    access_until: options.token_stats ? expiresAt(token) : 0,
  }
}

/** The consumption of the token or of the user, times 100. */
export function billingUsageObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof billingUsageSchema> {
  const used = options.token_stats ? token.used_quota : user.used_quota
  return { object: 'list', total_usage: exactNumber(decimalText(displayAmount(used, options, 100))) }
}
