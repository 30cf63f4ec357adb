import { z } from 'zod'
import type { Token } from '../../domain/records/token.ts'
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

/** The usage and balance of a token; 0 for an unlimited one. `limits` are the models that it may call. */
export function tokenUsageObject(token: Token, limits: Iterable<string>): z.output<typeof tokenUsageSchema> {
  const { name, unlimited_quota, remain_quota, used_quota, model_limits_enabled } = token
  return {
    object: 'token_usage',
    name,
    total_granted: unlimited_quota ? 0 : remain_quota + used_quota,
    total_used: unlimited_quota ? 0 : used_quota,
    total_available: unlimited_quota ? 0 : remain_quota,
    unlimited_quota,
    model_limits_enabled,
    // `fromEntries` makes a model named `__proto__` an ordinary property.
    model_limits: Object.fromEntries([...limits].map((model) => [model, true])),
    expires_at: expiresAt(token),
  }
}
