import { useForm } from '@mantine/form'
import { ApiError } from '../../api/api-error.ts'
import type { ApiKey } from '../../api/keys.ts'
import { findInvalidAddress } from '../../components/address-list.ts'
import { parseMoney } from '../../components/money.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { useContentRules } from '../../components/content-inputs.tsx'
import { useLimitRules } from '../../components/limit-inputs.tsx'
import {
  EMPTY_CONTENT_LOG_VALUES,
  type ContentLogFormValues,
} from '../../components/content-log-form-values.ts'
import {
  EMPTY_LIMIT_VALUES,
  RATE_LIMIT_NAMES,
  type LimitFormValues,
} from '../../components/limit-form-values.ts'
import { type KeyFormValues, keyFormValues, NEW_KEY, textsOf } from './key-form-values.ts'

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
