import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'

/** No quota is larger than so many units of currency; `docs/api.md: Limits`. */
const MOST_UNITS = 1_000_000_000

/** The largest quota there may be, in quota units. */
export function mostQuota({ options }: Settings): number {
  return MOST_UNITS * options.quotaPerUnit
}

/** Refuses a quota below `least` or above the most; `field` names it to the caller. */
export function requireQuota(field: string, quota: number, least: number, settings: Settings): void {
  const most = mostQuota(settings)
  if (quota >= least && quota <= most) return
  throw new GatewayError(
    'invalid_request',
    `${field}: expected whole quota units from ${least} to ${most}, not ${quota}`,
  )
}
