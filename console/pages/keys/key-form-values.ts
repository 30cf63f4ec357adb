import type { NewTokenFields } from '../../../src/management/tokens/token-object.ts'
import { allowedModels } from '../../api/allowed-models.ts'
import type { ApiKey } from '../../api/keys.ts'
import {
  changedContentLogFields,
  EMPTY_CONTENT_LOG_VALUES,
  type ContentLogFormValues,
  contentLogFormValues,
} from '../../components/content-log-form-values.ts'
import {
  changedLimitFields,
  EMPTY_LIMIT_VALUES,
  type LimitFormValues,
  limitFormValues,
} from '../../components/limit-form-values.ts'
import { exactAmount, type MoneyDisplay, parseMoney } from '../../components/money.ts'

/** The plain text fields of a key, with the maximum length of their inputs in characters. */
export const TEXT_FIELDS = { name: 50 } as const satisfies Partial<Record<keyof NewTokenFields, number>>

type TextField = keyof typeof TEXT_FIELDS

/** The typed values of a key. */
export interface KeyFormValues
  extends LimitFormValues,
    ContentLogFormValues,
    Readonly<Record<TextField, string>> {
  readonly isUnlimited: boolean
  readonly limit: string
  readonly expiry: Expiry
  readonly models: string[]
  readonly group: string
  readonly addresses: string
  readonly guards: string[]
  readonly toolsets: string[]
}

/** The presets of a key's expiry, in days. */
export const EXPIRY_DAYS = { never: undefined, day: 1, week: 7, month: 30, quarter: 90 } as const

/** When a key expires: a preset, from the time of saving on, or the Unix seconds that the key has. */
export type Expiry = keyof typeof EXPIRY_DAYS | `${number}`

const NEVER = -1
const DAY_S = 86_400

/** The form values of a new key. */
export const NEW_KEY: KeyFormValues = {
  ...EMPTY_LIMIT_VALUES,
  ...EMPTY_CONTENT_LOG_VALUES,
  ...textsOf(() => ''),
  isUnlimited: true,
  limit: '',
  expiry: 'never',
  models: [],
  group: '',
  addresses: '',
  guards: [],
  toolsets: [],
}

/** The form values of an existing key. */
export function keyFormValues(key: ApiKey, display: MoneyDisplay): KeyFormValues {
  return {
    ...limitFormValues(key, display),
    ...contentLogFormValues(key),
    ...textsOf((name) => key[name]),
    isUnlimited: key.unlimited_quota,
    limit: key.unlimited_quota ? '' : exactAmount(Math.max(0, key.remain_quota), display),
    expiry: expiryOf(key),
    models: allowedModels(key) ?? [],
    group: key.group,
    addresses: key.allow_ips ?? '',
    guards: [...key.guards],
    toolsets: [...key.toolsets],
  }
}

/** Converts the typed values to fields of the API. Limits are included only if they differ from those of `saved`. */
export function keyFieldsOf(
  typed: KeyFormValues,
  display: MoneyDisplay,
  saved: ApiKey | undefined,
): NewTokenFields {
  return {
    ...changedLimitFields(typed, saved ? limitFormValues(saved, display) : EMPTY_LIMIT_VALUES, display),
    ...changedContentLogFields(typed, saved ? contentLogFormValues(saved) : EMPTY_CONTENT_LOG_VALUES),
    ...textsOf((name) => typed[name].trim()),
    unlimited_quota: typed.isUnlimited,
    remain_quota: typed.isUnlimited ? 0 : (parseMoney(typed.limit, display) ?? saved?.remain_quota ?? 0),
    expired_time: expiryTime(typed.expiry, Date.now() / 1000),
    model_limits_enabled: typed.models.length > 0,
    model_limits: typed.models.join(','),
    allow_ips: typed.addresses.trim(),
    guards: typed.guards,
    toolsets: typed.toolsets,
    group: typed.group,
  }
}

/** The expiry that a key has. */
export function expiryOf({ expired_time: time }: ApiKey): Expiry {
  return time === NEVER ? 'never' : `${time}`
}

/** The time, in Unix seconds, at which a key with this expiry expires; -1 means never. */
export function expiryTime(expiry: Expiry, nowSeconds: number): number {
  if (!isPreset(expiry)) return Number(expiry)
  const days = EXPIRY_DAYS[expiry]
  return days === undefined ? NEVER : Math.floor(nowSeconds) + days * DAY_S
}

export function isPreset(expiry: Expiry): expiry is keyof typeof EXPIRY_DAYS {
  return Object.hasOwn(EXPIRY_DAYS, expiry)
}

/** A value for each plain text field. */
export function textsOf<Text extends string>(
  valueOf: (name: TextField) => Text,
): Readonly<Record<TextField, Text>> {
  const names = Object.keys(TEXT_FIELDS) as TextField[]
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<TextField, Text>
}
