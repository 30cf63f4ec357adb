import { MultiSelect, Select, TagsInput, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { CHANNEL_SETTINGS } from '../../../src/domain/records/channel.ts'
import { FormSection } from '../../components/form-section.tsx'
import { RecordInput } from '../../components/record-input.tsx'
import { useGroups } from '../../components/use-groups.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { type ChannelForm, SETTINGS_FROM_RECORD } from './channel-form.ts'
import { AdvancedInputs } from './advanced-inputs.tsx'
import classes from './channels-page.module.css'
import { FetchModels } from './fetch-models.tsx'
import {
  AZURE_TYPE,
  BEDROCK_TYPE,
  OPENAI_COMPATIBLE_TYPE,
  needsUrl,
  PROVIDERS,
  VERTEX_TYPE,
} from './providers.ts'
import { useSuggestedName } from './use-suggested-name.ts'

/** Separators in a pasted list of model names. */
const SEPARATORS = [',', ' ', '\n']
/** The number of model names that are suggested at first; typing finds the others. */
const SUGGESTED = 50

/** The fields of a channel: connection, models, routing, and those that few channels need. */
export function ChannelInputs({
  form,
  id,
}: {
  readonly form: ChannelForm
  /** The id of the channel that the form changes; undefined for a new channel. */
  readonly id: number | undefined
}) {
  const { channels } = useTexts()
  const isNew = id === undefined
  const [fetched, setFetched] = useState<readonly string[]>([])
  const groups = useGroups(form.values.groups)
  const chosen = form.values.type
  useSuggestedName(form, isNew)
  const providers = [
    ...PROVIDERS.map(({ type, name }) => ({ value: String(type), label: name })),
    { value: String(OPENAI_COMPATIBLE_TYPE), label: channels.anyProvider },
  ]
  const isKnown = providers.some(({ value }) => value === chosen)
  return (
    <>
      <FormSection title={channels.connection}>
        <Select
          label={channels.provider}
          searchable
          allowDeselect={false}
          data={
            isKnown ? providers : [...providers, { value: chosen, label: channels.otherProvider(chosen) }]
          }
          {...form.getInputProps('type')}
          // The version, region or location of the previous provider does not apply to the new one.
          onChange={(type) => form.setValues({ type: type ?? '1', other: '' })}
        />
        <TextInput label={channels.name} {...form.getInputProps('name')} />
        <ProviderInputs form={form} isNew={isNew} />
        <Select
          label={channels.protocol}
          allowDeselect={false}
          data={[
            { value: '', label: channels.byProvider },
            ...PROTOCOL_NAMES.map((value) => ({ value, label: channels.protocols[value] })),
          ]}
          {...form.getInputProps('protocol')}
        />
      </FormSection>
      <FormSection title={channels.models}>
        <TagsInput
          label={channels.models}
          description={channels.modelsHint}
          splitChars={SEPARATORS}
          data={[...fetched]}
          limit={SUGGESTED}
          clearable
          spellCheck={false}
          classNames={{ pillsList: classes['models'] ?? '' }}
          {...form.getInputProps('models')}
          // A list of names that was pasted as one entry is split.
          onChange={(names) => form.setFieldValue('models', separated(names))}
        />
        <FetchModels form={form} id={id} onFetched={setFetched} />
      </FormSection>
      <FormSection title={channels.routing}>
        <MultiSelect
          label={channels.groups}
          data={groups.data}
          {...form.getInputProps('groups')}
          onFocus={groups.onFocus}
        />
        {SETTINGS_FROM_RECORD.map((name) => (
          <RecordInput
            key={name}
            name={name}
            type={CHANNEL_SETTINGS.fields[name].type}
            label={channels.settings[name]}
            form={form}
          />
        ))}
        <TextInput type="number" label={channels.weight} step={1} min={0} {...form.getInputProps('weight')} />
      </FormSection>
      <AdvancedInputs form={form} />
    </>
  )
}

/** The fields for the address and the keys, and those that only some providers have. */
function ProviderInputs({ form, isNew }: { readonly form: ChannelForm; readonly isNew: boolean }) {
  const { channels, advanced } = useTexts()
  const type = Number(form.values.type)
  const named = OTHERS[type]
  const hint = named?.hint
  const hintOfUsual = named ? advanced.addressUsual : channels.baseUrlHint
  const hintOfAddress =
    type === AZURE_TYPE ? advanced.addressNeeded : needsUrl(type) ? undefined : hintOfUsual
  const keysHint =
    type === VERTEX_TYPE
      ? advanced.accountHint
      : type === BEDROCK_TYPE
        ? advanced.bedrockKeysHint
        : channels.apiKeysHint
  return (
    <>
      <TextInput
        label={channels.baseUrl}
        description={hintOfAddress}
        type="url"
        spellCheck={false}
        {...form.getInputProps('baseUrl')}
      />
      {named && (
        <TextInput
          label={advanced[named.label]}
          description={hint && advanced[hint]}
          placeholder={named.example}
          spellCheck={false}
          {...form.getInputProps('other')}
        />
      )}
      {type === VERTEX_TYPE && (
        <TextInput
          label={advanced.project}
          description={advanced.projectHint}
          spellCheck={false}
          {...form.getInputProps('project')}
        />
      )}
      <Textarea
        label={type === VERTEX_TYPE ? advanced.account : channels.apiKeys}
        description={isNew ? keysHint : channels.apiKeysUnchanged}
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        autoComplete="off"
        {...form.getInputProps('keys')}
      />
    </>
  )
}

/** The label and hint of the field `other`, by the type of the channel. */
const OTHERS: Readonly<
  Record<
    number,
    { label: 'apiVersion' | 'region' | 'location'; hint?: 'apiVersionHint' | 'locationHint'; example: string }
  >
> = {
  [AZURE_TYPE]: { label: 'apiVersion', hint: 'apiVersionHint', example: '2024-10-21' },
  [BEDROCK_TYPE]: { label: 'region', example: 'eu-central-1' },
  [VERTEX_TYPE]: { label: 'location', hint: 'locationHint', example: 'europe-west4' },
}

function separated(names: readonly string[]): string[] {
  return [...new Set(names.flatMap((name) => name.split(/[\s,]+/)).filter((name) => name !== ''))]
}
