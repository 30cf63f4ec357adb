import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { displayAmount } from '../../domain/display-amount.ts'
import type { Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import type { Options } from '../../domain/options.ts'
import { GatewayError } from '../../errors.ts'
import { exactNumber } from '@sluice/wire/json/exact-json'
import type { ManagementServices } from '../services.ts'

/** The limit that is shown for a token or a user with unlimited quota, in whichever unit amounts are displayed. */
const UNLIMITED = '100000000'

/** A number that is written to JSON with all its digits. */
const amount = z.custom<object>()

/**
 * The limits of a token or a user as the billing endpoints show them; `docs/api.md: Billing subscription
 * object`.
 */
export const subscriptionSchema = z.object({
  object: z.literal('billing_subscription'),
  has_payment_method: z.literal(true),
  soft_limit_usd: amount,
  hard_limit_usd: amount,
  system_hard_limit_usd: amount,
  access_until: z.int(),
})

/**
 * What a token or a user has spent, as the billing endpoints show it; `docs/api.md: Billing usage object`.
 */
export const billingUsageSchema = z.object({ object: z.literal('list'), total_usage: amount })

/**
 * A key's token and user, with balances in quota units. The option `token_stats` decides which of the two is
 * shown.
 */
interface Figures {
  readonly token: Token
  readonly user: User
}

/** The total quota of the token, with its expiry, or of the user. An unlimited token is unlimited in both. */
export function subscriptionObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof subscriptionSchema> {
  const granted = options.token_stats ? token.remain_quota + token.used_quota : user.quota + user.used_quota
  const isUnlimited = token.unlimited_quota || (!options.token_stats && user.unlimited_quota)
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

/** What the token or the user has spent, in hundredths of the displayed unit. */
export function billingUsageObject(
  { token, user }: Figures,
  options: Options,
): z.output<typeof billingUsageSchema> {
  const used = options.token_stats ? token.used_quota : user.used_quota
  return { object: 'list', total_usage: exactNumber(decimalText(displayAmount(used, options, 100))) }
}

/**
 * A token and its user with their balances: all charges so far are included, but not the quota that running
 * calls have reserved. Waits until all queued writes are done. Throws `token_deleted` if the token no longer
 * exists.
 */
export async function readTokenBalances(
  { store }: Pick<ManagementServices, 'store'>,
  tokenId: number,
): Promise<{ readonly token: Token; readonly user: User }> {
  const account = await store.write('loadAccount', { tokenId })
  if (!account) throw new GatewayError('token_deleted', 'this API key was deleted')
  return account
}

/** The expiry of a token in Unix seconds; 0 for never. */
export function expiresAt({ expired_time }: Token): number {
  return expired_time === -1 ? 0 : expired_time
}

/** The usage and the balance of a token as responses show them; `docs/api.md: Token usage object`. */
export const tokenUsageSchema = z.object({
  object: z.literal('token_usage'),
  name: z.string(),
  total_granted: z.int(),
  total_used: z.int(),
  total_available: z.int(),
  held_quota: z.int().describe('quota units held for calls under way, a part of total_available'),
  unlimited_quota: z.boolean(),
  model_limits_enabled: z.boolean(),
  model_limits: z.record(z.string(), z.literal(true)),
  expires_at: z.int(),
})

/**
 * The usage and the balance of a token; 0 if its quota is unlimited. `limits` are the models that it may
 * call, `held` is what running calls have reserved, in quota units.
 */
export function tokenUsageObject(
  token: Token,
  limits: Iterable<string>,
  held: number,
): z.output<typeof tokenUsageSchema> {
  const { name, unlimited_quota, remain_quota, used_quota, model_limits_enabled } = token
  return {
    object: 'token_usage',
    name,
    total_granted: unlimited_quota ? 0 : remain_quota + used_quota,
    total_used: unlimited_quota ? 0 : used_quota,
    total_available: unlimited_quota ? 0 : remain_quota,
    held_quota: held,
    unlimited_quota,
    model_limits_enabled,
    // `fromEntries` is used because it makes even a model named `__proto__` an ordinary property.
    model_limits: Object.fromEntries([...limits].map((model) => [model, true])),
    expires_at: expiresAt(token),
  }
}
