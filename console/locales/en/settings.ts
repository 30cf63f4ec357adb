import type { SettingChoice, SettingKey } from '../../../src/domain/options.ts'
import { s } from './plural.ts'

/** Texts in English: settings. */
export const settings = {
  title: 'Settings',
  money: 'Accounts and money',
  routing: 'Routing',
  groups: 'Groups',
  retention: 'Retention',
  save: 'Save settings',
  fromFile: 'from gateway.yaml',
  unsaved: (count: number) => `${count} change${s(count)} not saved`,
  options: {
    'general_setting.quota_display_type': [
      'Show amounts in',
      'How the console and billing answers show quota.',
    ],
    QuotaPerUnit: ['Quota units in one US dollar', 'Stored quota is not converted when this changes.'],
    USDExchangeRate: ['CNY per USD', 'For amounts in CNY.'],
    DisplayTokenStatEnabled: ['Billing answers speak of the key', 'Otherwise of the whole account.'],
    'token_setting.max_user_tokens': ['Keys per user', 'How many a user may have.'],
    unpriced_models: ['Models without a price', 'Refuse their calls, or serve them free of charge.'],
    RetryTimes: ['Further channels after a failure', 'Tried before the first byte of an answer.'],
    hold_tokens: ['Output tokens held', 'For a request that names no maximum.'],
    'global.pass_through_request_enabled': [
      'Pass all fields through',
      'Also those that are removed otherwise.',
    ],
    quota_low: ['Low quota, in USD', 'Below it, receivers of alerts are told of a user.'],
    error_details: ['Keep what providers say', 'About failed calls, without what repeats the request.'],
    usage_log_days: ['Days that single calls are kept', 'Sums stay.'],
    refusals_kept: ['Refused calls that are kept', 'For 72 hours; 0 keeps none.'],
    slot_days: ['Days with usage by half hours', 'As time zones and hours need them. Daily sums stay.'],
  } satisfies Record<SettingKey, readonly [label: string, hint: string]>,
  values: {
    refuse: 'Refuse',
    free: 'Free of charge',
    USD: 'USD',
    CNY: 'CNY',
    TOKENS: 'Units',
  } satisfies Record<SettingChoice, string>,
  groupName: 'Group',
  groupRatio: 'Ratio',
  groupOpen: 'Open to all users',
  groupHint: 'A call costs its price times the ratio of its group.',
  addGroup: 'Add group',
  removeGroup: (name: string) => `Remove group ${name}`,
  notANumber: 'Enter a number.',
}
