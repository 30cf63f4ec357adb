import { useForm } from '@mantine/form'
import { GUARD_PLACES } from '../../../src/domain/guard.ts'
import { ApiError } from '../../api/api-error.ts'
import type { Guard, GuardFields } from '../../api/guards.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  fieldsOfKind,
  isDecidedByService,
  isRequiredValueMissing,
  MATCH_FORMS,
  matchOfFormValues,
  OTHER_KIND,
  type MatchFormValues,
  matchFormValues,
} from './match-forms.ts'

/** The fields that limit a guard to certain calls; each is a list of names. */
export const GUARD_SCOPES = ['models', 'groups', 'users', 'tokens'] as const

type Scope = (typeof GUARD_SCOPES)[number]

/** The typed values of a guard. */
export interface GuardFormValues extends Readonly<Record<Scope, string[]>>, MatchFormValues {
  readonly name: string
  readonly do: Guard['do']
  readonly mode: Guard['mode']
  readonly where: string[]
  readonly with: string
  readonly sample: string
  /** The fields `timeout` to `most_delay` apply only if an external service decides. */
  readonly timeout: string
  readonly on_failure: Guard['on_failure']
  readonly charge: boolean
  readonly most_delay: string
}

const DEFAULT_TIMEOUT_MS = 2000

/** The form of a guard, empty or with the fields of an existing one. */
export function useGuardForm(guard: Guard | undefined) {
  const { common, guards } = useTexts()
  return useForm<GuardFormValues>({
    mode: 'controlled',
    initialValues: guardFormValues(guard),
    validate: {
      name: (name) => (/^[A-Za-z0-9._-]{1,64}$/.test(name.trim()) ? null : guards.nameHint),
      where: (places) => (places.length === 0 ? common.required : null),
      json: (json, { kind }) => (kind !== OTHER_KIND || isObject(json) ? null : guards.notAnObject),
      sample: (share) => (isShare(share) ? null : guards.notAShare),
      values: (values, { kind }) =>
        fieldsOfKind(kind).some((field) => isRequiredValueMissing(field, values)) ? common.required : null,
    },
  })
}

/** The form values of a guard; without a guard, the values for a new one. */
export function guardFormValues(guard: Guard | undefined): GuardFormValues {
  return {
    name: guard?.name ?? '',
    do: guard?.do ?? 'block',
    mode: guard?.mode ?? 'monitor',
    where: guard ? [...guard.where] : [...GUARD_PLACES],
    ...matchFormValues(guard?.match ?? MATCH_FORMS.secrets.constant),
    with: guard?.with ?? '[REDACTED]',
    models: [...(guard?.models ?? [])],
    groups: [...(guard?.groups ?? [])],
    users: [...(guard?.users ?? [])],
    tokens: [...(guard?.tokens ?? [])],
    sample: String(guard?.sample ?? 1),
    timeout: durationText(guard?.timeout ?? DEFAULT_TIMEOUT_MS),
    on_failure: guard?.on_failure ?? 'block',
    charge: guard?.charge ?? false,
    most_delay: String(guard?.most_delay ?? 0),
  }
}

/** The typed values as a guard in the form of gateway.yaml. */
export function guardFieldsOf(typed: GuardFormValues): GuardFields {
  const scopes = GUARD_SCOPES.filter((scope) => typed[scope].length > 0).map((scope) => [scope, typed[scope]])
  return {
    name: typed.name.trim(),
    do: typed.do,
    mode: typed.mode,
    where: typed.where,
    match: matchOfFormValues(typed),
    with: typed.with,
    sample: Number(typed.sample),
    ...(Object.fromEntries(scopes) as Partial<Record<Scope, string[]>>),
    ...(isDecidedByService(typed.kind) && {
      timeout: typed.timeout.trim(),
      on_failure: typed.on_failure,
      charge: typed.charge,
      most_delay: Number(typed.most_delay) || 0,
    }),
  }
}

/** The form that `useGuardForm` returns. */
export type GuardForm = ReturnType<typeof useGuardForm>

/** Shows an error at the field that it names; returns false if it names no field. */
export function showErrorAtField(error: unknown, form: GuardForm): boolean {
  const field = error instanceof ApiError ? error.field : undefined
  if (field === undefined) return false
  const shown = field === 'match' ? (form.values.kind === OTHER_KIND ? 'json' : 'values') : field
  if (!(shown in form.values)) return false
  form.setFieldError(shown, (error as ApiError).message)
  return true
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function isShare(text: string): boolean {
  const share = Number(text)
  return text.trim() !== '' && share >= 0 && share <= 1
}

function durationText(milliseconds: number): string {
  return milliseconds % 1000 === 0 ? `${milliseconds / 1000}s` : `${milliseconds}ms`
}
