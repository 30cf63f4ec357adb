import { useForm } from '@mantine/form'
import { CHANNEL_SETTINGS } from '../../../src/domain/records/channel.ts'
import { ApiError } from '../../api/api-error.ts'
import type { Channel, ChannelFields } from '../../api/channels.ts'
import { givenValue, type TypedValue, typedValue } from '../../components/record-input.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { COMPATIBLE_TYPE } from './providers.ts'

const { fields } = CHANNEL_SETTINGS

/** Settings whose inputs follow from the record; their labels are in the texts. */
export const TYPED_SETTINGS = ['priority'] as const satisfies readonly (keyof typeof fields)[]

type TypedSetting = (typeof TYPED_SETTINGS)[number]

/** The typed values of a channel. */
export interface TypedChannel extends Readonly<Record<TypedSetting, TypedValue>> {
  readonly name: string
  readonly type: string
  /** Empty for the protocol of the provider. */
  readonly protocol: string
  readonly baseUrl: string
  readonly keys: string
  readonly models: string[]
  readonly groups: string[]
  readonly weight: number | string
}

/** The form of a channel, empty or with the fields of an existing one. */
export function useChannelForm(channel: Channel | undefined) {
  const { common, channels } = useTexts()
  return useForm<TypedChannel>({
    mode: 'controlled',
    initialValues: typedChannel(channel),
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      models: (names) => (names.length === 0 ? channels.needsModels : null),
      baseUrl: (text, { type }) =>
        Number(type) === COMPATIBLE_TYPE && text.trim() === '' ? common.required : null,
    },
  })
}

/** The form values of a channel; without a channel, those of a new one. */
export function typedChannel(channel: Channel | undefined): TypedChannel {
  return {
    name: channel?.name ?? '',
    type: String(channel?.type ?? 1),
    protocol: channel?.protocol[0] ?? '',
    baseUrl: channel?.base_url ?? '',
    keys: '',
    models: channel?.models.split(',').filter(Boolean) ?? [],
    groups: channel?.group.split(',') ?? ['default'],
    ...ofSettings((name) => typedValue(channel?.[name] ?? fields[name].default)),
    weight: channel?.weight ?? 1,
  }
}

/** The fields in the gateway's format. */
export function channelFieldsOf(typed: TypedChannel): ChannelFields {
  return {
    name: typed.name.trim(),
    type: Number(typed.type),
    ...(typed.protocol !== '' && { protocol: typed.protocol }),
    base_url: typed.baseUrl.trim(),
    key: typed.keys.trim(),
    models: typed.models.join(','),
    group: typed.groups.join(','),
    ...(ofSettings((name) => givenValue(fields[name].type, typed[name])) as Pick<
      ChannelFields,
      TypedSetting
    >),
    weight: Number(typed.weight) || 0,
  }
}

const FIELDS: Readonly<Record<string, keyof TypedChannel>> = {
  name: 'name',
  type: 'type',
  protocol: 'protocol',
  base_url: 'baseUrl',
  key: 'keys',
  models: 'models',
  group: 'groups',
  ...ofSettings((name) => name),
  weight: 'weight',
}

/** The form that `useChannelForm` returns. */
export type ChannelForm = ReturnType<typeof useChannelForm>

/** Shows an error at the field that it names; returns false where it names none. */
export function showAtField(error: unknown, form: ChannelForm): boolean {
  const field = error instanceof ApiError ? FIELDS[error.field ?? ''] : undefined
  if (field === undefined) return false
  form.setFieldError(field, (error as ApiError).message)
  return true
}

function ofSettings<V>(valueOf: (name: TypedSetting) => V): Readonly<Record<TypedSetting, V>> {
  return Object.fromEntries(TYPED_SETTINGS.map((name) => [name, valueOf(name)])) as Record<TypedSetting, V>
}
