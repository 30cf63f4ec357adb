import { decimalText } from '../../domain/decimal.ts'
import type { Options } from '../../domain/settings.ts'

/** An option with one value, under its name in one-api and its relatives and under ours. */
interface ScalarOption {
  readonly key: string
  /** Its key under `options` in gateway.yaml. */
  readonly name: string
  readonly text: (options: Options) => string
}

/** The options that can be set over HTTP, except groups and prices; the last ones have only our name. */
export const SCALAR_OPTIONS: readonly ScalarOption[] = Object.freeze([
  { key: 'QuotaPerUnit', name: 'quota_per_unit', text: ({ quotaPerUnit }) => String(quotaPerUnit) },
  {
    key: 'USDExchangeRate',
    name: 'usd_exchange_rate',
    text: ({ usdExchangeRate }) => decimalText(usdExchangeRate),
  },
  { key: 'DisplayTokenStatEnabled', name: 'token_stats', text: ({ tokenStats }) => String(tokenStats) },
  { key: 'general_setting.quota_display_type', name: 'display', text: ({ display }) => display },
  { key: 'RetryTimes', name: 'retries', text: ({ retries }) => String(retries) },
  {
    key: 'token_setting.max_user_tokens',
    name: 'max_user_tokens',
    text: ({ maxUserTokens }) => String(maxUserTokens),
  },
  {
    key: 'global.pass_through_request_enabled',
    name: 'pass_through',
    text: ({ passThrough }) => String(passThrough),
  },
  { key: 'unpriced_models', name: 'unpriced_models', text: ({ unpricedModels }) => unpricedModels },
  { key: 'hold_tokens', name: 'hold_tokens', text: ({ holdTokens }) => String(holdTokens) },
  { key: 'quota_low', name: 'quota_low', text: ({ quotaLow }) => decimalText(quotaLow) },
  { key: 'usage_log_days', name: 'usage_log_days', text: ({ usageLogDays }) => String(usageLogDays) },
  { key: 'slot_days', name: 'slot_days', text: ({ slotDays }) => String(slotDays) },
])
