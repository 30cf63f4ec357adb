import { z } from 'zod'
import type { Token } from '../../domain/token.ts'
import { expiresAt } from '../users/account-figures.ts'

/** `docs/api.md: Token usage object`. */
export const tokenUsageSchema = z.object({
  object: z.literal('token_usage'),
  name: z.string(),
  total_granted: z.int(),
  total_used: z.int(),
  total_available: z.int(),
  unlimited_quota: z.boolean(),
  model_limits_enabled: z.boolean(),
  model_limits: z.record(z.string(), z.literal(true)),
  expires_at: z.int(),
})

/**
 * What a token has used and has left. The numbers of an unlimited one are 0; `limits` are the models that it
 * is held to.
 */
export function tokenUsageObject(token: Token, limits: Iterable<string>): z.output<typeof tokenUsageSchema> {
  const { name, unlimitedQuota, remainQuota, usedQuota, modelLimitsEnabled } = token
  return {
    object: 'token_usage',
    name,
    total_granted: unlimitedQuota ? 0 : remainQuota + usedQuota,
    total_used: unlimitedQuota ? 0 : usedQuota,
    total_available: unlimitedQuota ? 0 : remainQuota,
    unlimited_quota: unlimitedQuota,
    model_limits_enabled: modelLimitsEnabled,
    // A name from outside may be `__proto__`: this makes it a field like any other.
    model_limits: Object.fromEntries([...limits].map((model) => [model, true])),
    expires_at: expiresAt(token),
  }
}
