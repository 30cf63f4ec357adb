import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'

/** The maximum quota, in units of currency; `docs/api.md: Limits`. */
const MAX_UNITS = 1_000_000_000

/** The maximum quota, in quota units. */
export function maxQuota({ options }: Settings): number {
  return MAX_UNITS * options.quota_per_unit
}

/**
 * Throws `invalid_request` for a quota below `min` or above the maximum; `field` is its name in the message.
 */
export function requireQuota(field: string, quota: number, min: number, settings: Settings): void {
  const max = maxQuota(settings)
  if (quota >= min && quota <= max) return
  throw new GatewayError(
    'invalid_request',
    `${field}: expected whole quota units from ${min} to ${max}, not ${quota}`,
  )
}
