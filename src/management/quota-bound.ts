import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'

/** No quota is larger than so many units of currency; `docs/api.md: Limits`. */
const MAX_UNITS = 1_000_000_000

/** The largest quota there may be, in quota units. */
export function maxQuota({ options }: Settings): number {
  return MAX_UNITS * options.quotaPerUnit
}

/** Refuses a quota below `least` or above the most; `field` names it to the caller. */
export function requireQuota(field: string, quota: number, min: number, settings: Settings): void {
  const max = maxQuota(settings)
  if (quota >= min && quota <= max) return
  throw new GatewayError(
    'invalid_request',
    `${field}: expected whole quota units from ${min} to ${max}, not ${quota}`,
  )
}
