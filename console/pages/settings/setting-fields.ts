/** An option of the gateway as a field; its texts are found by its key. */
export interface SettingField {
  readonly key:
    | 'general_setting.quota_display_type'
    | 'QuotaPerUnit'
    | 'USDExchangeRate'
    | 'DisplayTokenStatEnabled'
    | 'token_setting.max_user_tokens'
    | 'unpriced_models'
    | 'RetryTimes'
    | 'hold_tokens'
    | 'global.pass_through_request_enabled'
    | 'usage_log_days'
  readonly kind: 'number' | 'decimal' | 'switch' | 'choice'
  /** The values of a choice. */
  readonly choices?: readonly ('refuse' | 'free' | 'USD' | 'CNY' | 'TOKENS')[]
}

/** The fields by their region. */
export const SETTINGS: Readonly<Record<'money' | 'routing' | 'retention', readonly SettingField[]>> = {
  money: [
    { key: 'general_setting.quota_display_type', kind: 'choice', choices: ['USD', 'CNY', 'TOKENS'] },
    { key: 'USDExchangeRate', kind: 'decimal' },
    { key: 'QuotaPerUnit', kind: 'number' },
    { key: 'unpriced_models', kind: 'choice', choices: ['refuse', 'free'] },
    { key: 'token_setting.max_user_tokens', kind: 'number' },
    { key: 'DisplayTokenStatEnabled', kind: 'switch' },
  ],
  routing: [
    { key: 'RetryTimes', kind: 'number' },
    { key: 'hold_tokens', kind: 'number' },
    { key: 'global.pass_through_request_enabled', kind: 'switch' },
  ],
  retention: [{ key: 'usage_log_days', kind: 'number' }],
}
