import { z } from 'zod'
import type { AdministrationServices } from '../services.ts'
import type { StatedLimitCount } from '../../upstreams/stated-limits.ts'

const statedCount = z.object({
  limit: z.int().optional(),
  remaining: z.int(),
  resets_at: z.int().optional(),
})

/** What the provider stated about a key's limits, for the model with the fewest units left. */
export const keyLimitsSchema = z.object({
  model: z.string().optional().describe("The upstream's name"),
  requests: statedCount.optional(),
  tokens: statedCount.optional(),
  rests_until: z.int().optional(),
})

type LimitServices = Pick<AdministrationServices, 'channels' | 'nowMs'>

/**
 * Returns a function that shows what this node knows about the limits of a channel's key. Times are in Unix
 * seconds.
 */
export function keyLimitsObject(
  { channels: { keyRings, providerLimits }, nowMs }: LimitServices,
  channel: string,
): (key: string) => z.output<typeof keyLimitsSchema> {
  const limits = providerLimits.ofChannel(channel)
  const readMs = performance.now()
  return (key) => {
    const stated = limits.get(key)
    const rest = keyRings.rests.shownRest(channel, key, readMs)
    const restsMs = Math.max(stated?.restsUntilMs ?? 0, rest ? nowMs() + rest.endMs - readMs : 0)
    return {
      ...(stated && { model: stated.model }),
      ...(stated?.requests && { requests: shownCount(stated.requests) }),
      ...(stated?.tokens && { tokens: shownCount(stated.tokens) }),
      ...(restsMs > 0 && { rests_until: Math.ceil(restsMs / 1000) }),
    }
  }
}

function shownCount({ limit, remaining, resetsMs }: StatedLimitCount): z.output<typeof statedCount> {
  return {
    ...(limit !== undefined && { limit }),
    remaining,
    ...(resetsMs !== undefined && { resets_at: Math.ceil(resetsMs / 1000) }),
  }
}
