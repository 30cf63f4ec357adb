import { useForm } from '@mantine/form'
import type { NewTokenFields } from '../../../src/management/tokens/token-object.ts'
import { ApiError } from '../../api/api-error.ts'
import { allowedModels, type ApiKey } from '../../api/keys.ts'
import { findInvalidAddress } from '../../components/address-list.ts'
import { exactAmount, type MoneyDisplay, parseMoney } from '../../components/money.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { useContentRules } from '../../components/content-inputs.tsx'
import { useLimitRules } from '../../components/limit-inputs.tsx'
import {
  changedContentLogFields,
  EMPTY_CONTENT_LOG_VALUES,
  type ContentLogFormValues,
  contentLogFormValues,
} from '../../components/content-log-form-values.ts'
import {
  changedLimitFields,
  EMPTY_LIMIT_VALUES,
  RATE_LIMIT_NAMES,
  type LimitFormValues,
  limitFormValues,
} from '../../components/limit-form-values.ts'

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
  /** The time until the key expires, or `kept` to keep the present expiry. */
  readonly expiry: Expiry
  readonly models: string[]
  readonly group: string
  readonly addresses: string
  readonly guards: string[]
  readonly toolsets: string[]
}

/** The presets of a key's expiry, in days. */
export const EXPIRY_DAYS = { never: undefined, day: 1, week: 7, month: 30, quarter: 90 } as const

/** A choice of a key's expiry. */
export type Expiry = keyof typeof EXPIRY_DAYS | 'kept'

const NEVER = -1
const DAY_S = 86_400

const NEW_KEY: KeyFormValues = {
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

/** The form of a key, empty or with the fields of an existing one. */
export function useKeyForm(key: ApiKey | undefined) {
  const { common, keys } = useTexts()
  const { display } = useSignedInAccount()
  const limitRules = useLimitRules()
  const contentRules = useContentRules()
  return useForm<KeyFormValues>({
    mode: 'controlled',
    validateInputOnBlur: ['addresses', 'limit', 'budget', 'content_log_sample', ...RATE_LIMIT_NAMES],
    initialValues: key ? keyFormValues(key, display) : NEW_KEY,
    validate: {
      name: (name) => (name.trim() === '' ? common.required : null),
      limit: (limit, { isUnlimited }) =>
        isUnlimited || parseMoney(limit, display) !== undefined ? null : common.notAnAmount,
      ...limitRules,
      ...contentRules,
      addresses: (text) => {
        const bad = findInvalidAddress(text)
        return bad === undefined ? null : keys.notAnAddress(bad)
      },
    },
  })
}

/** The form values of an existing key. */
export function keyFormValues(key: ApiKey, display: MoneyDisplay): KeyFormValues {
  return {
    ...limitFormValues(key, display),
    ...contentLogFormValues(key),
    ...textsOf((name) => key[name]),
    isUnlimited: key.unlimited_quota,
    limit: key.unlimited_quota ? '' : exactAmount(Math.max(0, key.remain_quota), display),
    expiry: key.expired_time === NEVER ? 'never' : 'kept',
    models: allowedModels(key) ?? [],
    group: key.group,
    addresses: key.allow_ips ?? '',
    guards: [...key.guards],
    toolsets: [...key.toolsets],
  }
}

/**
 * Converts the typed values to fields of the API. Limits are included only if they differ from those of
 * `present`.
 */
export function keyFieldsOf(
  typed: KeyFormValues,
  display: MoneyDisplay,
  saved: ApiKey | undefined,
  present = saved,
): NewTokenFields {
  return {
    ...changedLimitFields(typed, present ? limitFormValues(present, display) : EMPTY_LIMIT_VALUES, display),
    ...changedContentLogFields(typed, present ? contentLogFormValues(present) : EMPTY_CONTENT_LOG_VALUES),
    ...textsOf((name) => typed[name].trim()),
    unlimited_quota: typed.isUnlimited,
    remain_quota: typed.isUnlimited ? 0 : (parseMoney(typed.limit, display) ?? saved?.remain_quota ?? 0),
    expired_time:
      typed.expiry === 'kept' ? (saved?.expired_time ?? NEVER) : expiryTime(typed.expiry, Date.now() / 1000),
    model_limits_enabled: typed.models.length > 0,
    model_limits: typed.models.join(','),
    allow_ips: typed.addresses.trim(),
    guards: typed.guards,
    toolsets: typed.toolsets,
    group: typed.group,
  }
}

/** The time, in Unix seconds, at which a key with this expiry expires; -1 means never. */
export function expiryTime(expiry: keyof typeof EXPIRY_DAYS, nowSeconds: number): number {
  const days = EXPIRY_DAYS[expiry]
  return days === undefined ? NEVER : Math.floor(nowSeconds) + days * DAY_S
}

/** The form that `useKeyForm` returns. */
export type KeyForm = ReturnType<typeof useKeyForm>

const FIELDS: Readonly<Record<string, keyof KeyFormValues>> = {
  ...Object.fromEntries(
    (
      Object.keys({ ...EMPTY_LIMIT_VALUES, ...EMPTY_CONTENT_LOG_VALUES }) as (
        | keyof LimitFormValues
        | keyof ContentLogFormValues
      )[]
    ).map((name) => [name, name] as const),
  ),
  ...textsOf((name) => name),
  remain_quota: 'limit',
  expired_time: 'expiry',
  model_limits: 'models',
  group: 'group',
  allow_ips: 'addresses',
  guards: 'guards',
  toolsets: 'toolsets',
}

/** Shows an error at the field that it names; returns false if it names no field. */
export function showErrorAtField(error: unknown, form: KeyForm): boolean {
  const field = error instanceof ApiError ? FIELDS[error.field ?? ''] : undefined
  if (field === undefined) return false
  form.setFieldError(field, (error as ApiError).message)
  return true
}

function textsOf<Text extends string>(valueOf: (name: TextField) => Text): Readonly<Record<TextField, Text>> {
  const names = Object.keys(TEXT_FIELDS) as TextField[]
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<TextField, Text>
}
