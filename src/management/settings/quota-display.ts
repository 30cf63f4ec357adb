import type { Settings } from '../../domain/settings.ts'

/** The conversion of quota units for display; `docs/configuration.md: Options`. */
export interface QuotaDisplay {
  /** Quota units in one US dollar. */
  readonly quota_per_unit: number
  readonly display: 'USD' | 'CNY' | 'TOKENS'
  /** CNY per USD. */
  readonly usd_exchange_rate: number
}

/** The quota display of these settings. */
export function quotaDisplay({ options }: Settings): QuotaDisplay {
  const { digits, scale } = options.usd_exchange_rate
  return {
    quota_per_unit: options.quota_per_unit,
    display: options.display,
    usd_exchange_rate: Number(digits) / 10 ** scale,
  }
}
