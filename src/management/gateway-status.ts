import { z } from 'zod'
import type { Settings } from '../domain/settings.ts'
import { packageVersion } from '../domain/version.ts'

/**
 * The gateway's status, which clients of One API and New API read before they sign in;
 * `docs/administration.md: Status`.
 */
export const statusSchema = z.object({
  version: z.string(),
  start_time: z.int().describe('Unix seconds'),
  system_name: z.string(),
  setup: z.boolean().describe('Whether the first user exists: always'),
  quota_per_unit: z.int().describe('Quota units in one US dollar'),
  quota_display_type: z.enum(['USD', 'CNY', 'TOKENS']),
  display_in_currency: z.boolean(),
  usd_exchange_rate: z.number().describe('CNY per USD'),
  password_login_enabled: z.boolean(),
  oidc_enabled: z.boolean(),
  oidc_providers: z.array(z.string()).describe('Names for /api/user/oidc/{name}'),
  register_enabled: z.boolean(),
  password_register_enabled: z.boolean(),
  email_verification: z.boolean(),
})

/** The status that anyone may read; it does not depend on accounts, channels or prices. */
export function gatewayStatus(settings: Settings): z.infer<typeof statusSchema> {
  const { quota_per_unit, display, usd_exchange_rate } = quotaDisplay(settings)
  return {
    version: packageVersion(),
    start_time: Math.floor(performance.timeOrigin / 1000),
    system_name: 'Sluice',
    setup: true,
    quota_per_unit,
    quota_display_type: display,
    display_in_currency: display !== 'TOKENS',
    usd_exchange_rate,
    password_login_enabled: settings.login.password,
    oidc_enabled: settings.login.oidc.length > 0,
    oidc_providers: settings.login.oidc.map(({ name }) => name),
    // Users cannot register themselves; administrators create them.
    register_enabled: false,
    password_register_enabled: false,
    email_verification: false,
  }
}

/** How quota units are converted for display; `docs/configuration.md: Options`. */
export interface QuotaDisplay {
  /** Quota units in one US dollar. */
  readonly quota_per_unit: number
  readonly display: 'USD' | 'CNY' | 'TOKENS'
  /** CNY per USD. */
  readonly usd_exchange_rate: number
}

/** How quota units are converted for display by these settings. */
export function quotaDisplay({ options }: Settings): QuotaDisplay {
  const { digits, scale } = options.usd_exchange_rate
  return {
    quota_per_unit: options.quota_per_unit,
    display: options.display,
    usd_exchange_rate: Number(digits) / 10 ** scale,
  }
}
