import { useForm } from '@mantine/form'
import { CHANNEL_SETTINGS } from '../../../src/domain/records/channel.ts'
import { ApiError } from '../../api/api-error.ts'
import type { Channel, ChannelFields } from '../../api/channels.ts'
import { jsonValueOf, type FormValue, formValueOf } from '../../components/record-input.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  ADVANCED_FIELDS,
  type AdvancedFormValues,
  advancedFieldsOf,
  overridesNotShownInForm,
  advancedFormValues,
} from './advanced-form-values.ts'
import { AZURE_TYPE, BEDROCK_TYPE, channelNamePrefix, needsUrl, VERTEX_TYPE } from './providers.ts'

const { fields } = CHANNEL_SETTINGS

/** Fields whose inputs are derived from the definition of the channel record. */
export const SETTINGS_FROM_RECORD = ['priority'] as const satisfies readonly (keyof typeof fields)[]

type TypedSetting = (typeof SETTINGS_FROM_RECORD)[number]

export interface ChannelFormValues extends Readonly<Record<TypedSetting, FormValue>>, AdvancedFormValues {
  readonly name: string
  readonly type: string
  /** The chosen protocol; empty if the channel uses the usual protocol of its provider. */
  readonly protocol: string
  readonly baseUrl: string
  /** The API version for Azure, the region for Bedrock, the location for Vertex AI. */
  readonly other: string
  /** The project for Vertex AI. */
  readonly project: string
  readonly keys: string
  readonly models: string[]
  readonly groups: string[]
  readonly weight: number | string
}

/** The form of a channel, empty or with the fields of an existing one. */
export function useChannelForm(channel: Channel | undefined) {
  const { common, channels, advanced } = useTexts()
  return useForm<ChannelFormValues>({
    mode: 'controlled',
    initialValues: channelFormValues(channel),
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      models: (names) => (names.length === 0 ? channels.needsModels : null),
      baseUrl: (text, { type }) => (needsUrl(Number(type)) && text.trim() === '' ? common.required : null),
      other: (text, { type }) =>
        Number(type) === BEDROCK_TYPE && text.trim() === '' ? common.required : null,
      overrides: (_, { overrides, settings }) =>
        overridesNotShownInForm(settings) === undefined || overrides.length === 0
          ? null
          : advanced.keptOverrides,
    },
  })
}

/** The form values of a channel; without a channel, the values for a new one. */
export function channelFormValues(channel: Channel | undefined): ChannelFormValues {
  return {
    name: channel?.name ?? channelNamePrefix(1),
    type: String(channel?.type ?? 1),
    protocol: channel?.protocol[0] ?? '',
    baseUrl: channel?.base_url ?? '',
    other: textOf(channel, 'other'),
    project: channel?.project ?? '',
    keys: '',
    models: channel?.models.split(',').filter(Boolean) ?? [],
    groups: channel?.group.split(',') ?? ['default'],
    ...ofSettings((name) => formValueOf(channel?.[name] ?? fields[name].default)),
    weight: channel?.weight ?? 1,
    ...advancedFormValues(channel),
  }
}

/** Converts the typed values to fields of the API. */
export function channelFieldsOf(typed: ChannelFormValues): ChannelFields {
  const type = Number(typed.type)
  const protocols = chosenProtocols(typed)
  const other = typed.other.trim()
  return {
    name: typed.name.trim(),
    type,
    ...(protocols.length > 0 && { protocol: protocols.length > 1 ? protocols : protocols[0] }),
    base_url: typed.baseUrl.trim(),
    // `other` is left out for other providers, so that their channels keep the value that another tool
    // stored.
    ...(isNamed(type) && other + typed.settings.other !== '' && { other }),
    project: type === VERTEX_TYPE ? typed.project.trim() || null : null,
    key: keysOf(typed.keys, type === BEDROCK_TYPE ? other : ''),
    models: typed.models.join(','),
    group: typed.groups.join(','),
    ...(ofSettings((name) => jsonValueOf(fields[name].type, typed[name])) as Pick<
      ChannelFields,
      TypedSetting
    >),
    weight: Number(typed.weight) || 0,
    ...advancedFieldsOf(typed),
  }
}

/**
 * All chosen protocols, the one in the field Protocol first; empty if the usual protocols of the provider
 * apply.
 */
export function chosenProtocols({
  protocol,
  protocols,
}: Pick<ChannelFormValues, 'protocol' | 'protocols'>): string[] {
  return [...new Set([protocol, ...protocols])].filter((name) => name !== '')
}

// The API expects the region of a Bedrock channel at the end of each key.
function keysOf(text: string, region: string): string {
  const lines = text.trim()
  if (region === '' || lines === '') return lines
  return lines
    .split('\n')
    .map((line) =>
      line.trim() === '' || line.trim().endsWith(`|${region}`) ? line : `${line.trim()}|${region}`,
    )
    .join('\n')
}

const NAMED: ReadonlySet<number> = new Set([AZURE_TYPE, BEDROCK_TYPE, VERTEX_TYPE])

function isNamed(type: number): boolean {
  return NAMED.has(type)
}

/**
 * The text in a field of a channel that the type `Channel` does not declare; empty if the channel has no such
 * field.
 */
function textOf(channel: Channel | undefined, name: string): string {
  const value = (channel as Readonly<Record<string, unknown>> | undefined)?.[name]
  return typeof value === 'string' ? value : ''
}

const FIELDS: Readonly<Record<string, keyof ChannelFormValues>> = {
  name: 'name',
  type: 'type',
  protocol: 'protocol',
  base_url: 'baseUrl',
  other: 'other',
  api_version: 'other',
  region: 'other',
  location: 'other',
  project: 'project',
  key: 'keys',
  keys: 'keys',
  models: 'models',
  group: 'groups',
  ...ofSettings((name) => name),
  weight: 'weight',
  ...ADVANCED_FIELDS,
}

/** The form that `useChannelForm` returns. */
export type ChannelForm = ReturnType<typeof useChannelForm>

/** Shows an error at the field that it names. Returns that field, or undefined if the error names none. */
export function showErrorAtField(error: unknown, form: ChannelForm): keyof ChannelFormValues | undefined {
  const field = error instanceof ApiError ? FIELDS[error.field ?? ''] : undefined
  if (field !== undefined) form.setFieldError(field, (error as ApiError).message)
  return field
}

function ofSettings<V>(valueOf: (name: TypedSetting) => V): Readonly<Record<TypedSetting, V>> {
  return Object.fromEntries(SETTINGS_FROM_RECORD.map((name) => [name, valueOf(name)])) as Record<
    TypedSetting,
    V
  >
}
