import { Button, MultiSelect, Select, Stack, Switch, Textarea, TextInput } from '@mantine/core'
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { type ChangeEvent, type ReactNode, useState } from 'react'
import { guardsQuery } from '../../api/guards.ts'
import type { ApiKey } from '../../api/keys.ts'
import { modelsQuery, type PricedModel } from '../../api/models.ts'
import { mcpToolsetsQuery } from '../../api/tools.ts'
import { ContentInputs } from '../../components/content-inputs.tsx'
import { keepFocus } from '../../components/keep-focus.ts'
import { LimitInputs } from '../../components/limit-inputs.tsx'
import { moneyUnit } from '../../components/money.ts'
import { NamesInput } from '../../components/names-input.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { KeyForm } from './key-form.ts'
import { EXPIRY_DAYS, type Expiry, expiryOf, expiryTime, isPreset, TEXT_FIELDS } from './key-form-values.ts'
import classes from './key-fields.module.css'

/** The fields above *Models and more limits*. */
const ALWAYS_SHOWN: ReadonlySet<string> = new Set(['limit', 'isUnlimited', ...Object.keys(TEXT_FIELDS)])

type OperatorLimits = NonNullable<ApiKey['operator_limits']>

export function KeyFieldInputs({
  form,
  limits = {},
  apiKey,
}: {
  readonly form: KeyForm
  /** The key that is changed; absent for a new one. */
  readonly apiKey?: ApiKey
  /** Limits that an operator has set; the inputs offer nothing beyond them. */
  readonly limits?: OperatorLimits
}) {
  const { keys, common, content, guards, tools } = useTexts()
  const { profile, display, groups } = useSignedInAccount()
  const { time } = useFormatters()
  const { data: models = [] } = useQuery(modelsQuery(profile.id))
  const { expiry, isUnlimited } = form.values
  const end = expiryTime(expiry, Date.now() / 1000)
  const names = Object.keys(EXPIRY_DAYS) as (keyof typeof EXPIRY_DAYS)[]
  const presets = names
    .filter((preset) => isInTime(preset, limits))
    .map((preset) => ({
      value: preset as Expiry,
      label: keys.expiry[preset],
    }))
  // The form may have begun with another time than the key has now.
  const times = [...new Set([expiry, apiKey ? expiryOf(apiKey) : expiry])].filter((one) => !isPreset(one))
  const limitInput = form.getInputProps('limit')
  return (
    <Stack gap="md">
      {Object.entries(TEXT_FIELDS).map(([name, maxLength]) => (
        <TextInput
          key={name}
          label={keys.texts[name as keyof typeof TEXT_FIELDS]}
          data-autofocus={name === 'name' || undefined}
          maxLength={maxLength}
          {...form.getInputProps(name)}
        />
      ))}
      <div>
        <TextInput
          label={keys.limit}
          description={keys.limitHint}
          inputMode="decimal"
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          {...limitInput}
          value={isUnlimited ? '' : form.values.limit}
          onChange={(event: ChangeEvent<HTMLInputElement>) => {
            limitInput.onChange(event)
            form.setFieldValue('isUnlimited', false)
          }}
        />
        <Switch
          mt="sm"
          label={keys.unlimitedSwitch}
          disabled={limits.remain_quota !== undefined}
          {...form.getInputProps('isUnlimited', { type: 'checkbox' })}
        />
      </div>
      <MoreLimits isFoldable={apiKey === undefined} form={form}>
        <LimitInputs form={form} />
        <Select
          label={keys.expires}
          allowDeselect={false}
          data={[...presets, ...times.map((value) => ({ value, label: time(Number(value)) }))]}
          description={end > 0 ? keys.expiresAt(time(end)) : keys.expiresHint}
          {...form.getInputProps('expiry')}
        />
        <MultiSelect
          label={keys.models}
          description={keys.modelsHint}
          searchable
          clearable={limits.model_limits === undefined}
          clearButtonProps={{ 'aria-label': common.clearFilters }}
          placeholder={form.values.models.length === 0 ? keys.allModels : ''}
          data={byVendor(allowed(models, limits), form.values.models)}
          maxDropdownHeight={240}
          {...form.getInputProps('models')}
        />
        <Select
          label={keys.group}
          description={keys.groupHint}
          data={[
            { value: '', label: keys.ownGroup },
            ...Object.keys(groups).map((name) => ({ value: name, label: name })),
          ]}
          allowDeselect={false}
          {...form.getInputProps('group')}
        />
        <Textarea
          label={keys.addresses}
          description={
            limits.allow_ips === undefined ? keys.addressesHint : keys.addressesWithin(limits.allow_ips)
          }
          autosize
          minRows={2}
          maxRows={6}
          spellCheck={false}
          {...form.getInputProps('addresses')}
        />
        <ContentInputs form={form} hint={content.keyHint} />
        <NamesInput
          label={guards.title}
          description={guards.namesHint}
          query={guardsQuery(profile.id)}
          {...form.getInputProps('guards')}
        />
        <NamesInput
          label={tools.toolsets}
          description={tools.keyToolsetsHint}
          query={mcpToolsetsQuery(profile.id)}
          within={limits.toolsets}
          {...form.getInputProps('toolsets')}
        />
      </MoreLimits>
    </Stack>
  )
}

/** What few keys need. It is folded in the form of a new key, and opens if one of its fields has an error. */
function MoreLimits({
  form,
  isFoldable,
  children,
}: {
  readonly form: KeyForm
  readonly isFoldable: boolean
  readonly children: ReactNode
}) {
  const { keys } = useTexts()
  const [isUnfolded, setIsUnfolded] = useState(!isFoldable)
  const isOpen = isUnfolded || Object.keys(form.errors).some((name) => !ALWAYS_SHOWN.has(name))
  return (
    <>
      {isFoldable && (
        <Button
          variant="subtle"
          className={classes['more']}
          leftSection={isOpen ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
          aria-expanded={isOpen}
          onMouseDown={keepFocus}
          onClick={() => setIsUnfolded(!isOpen)}
        >
          {keys.moreLimits}
        </Button>
      )}
      {isOpen && (
        <>
          <p className={classes['hint']}>{keys.moreLimitsHint}</p>
          {children}
        </>
      )}
    </>
  )
}

/** The models on the operator's list; all models if there is no list. */
function allowed(models: readonly PricedModel[], { model_limits }: OperatorLimits): readonly PricedModel[] {
  const names = model_limits?.split(',').map((name) => name.trim())
  return names ? models.filter(({ name }) => names.includes(name)) : models
}

function isInTime(expiry: keyof typeof EXPIRY_DAYS, { expired_time }: OperatorLimits): boolean {
  if (expired_time === undefined) return true
  const end = expiryTime(expiry, Date.now() / 1000)
  return end > 0 && end <= expired_time
}

/** Models grouped by vendor; chosen models that are no longer served can still be chosen. */
function byVendor(models: readonly PricedModel[], chosen: readonly string[]) {
  const vendors = Map.groupBy(models, ({ vendor }) => vendor)
  const known = new Set(models.map(({ name }) => name))
  const gone = chosen.filter((name) => !known.has(name))
  return [
    ...[...vendors].map(([group, members]) => ({ group, items: members.map(({ name }) => name) })),
    ...(gone.length > 0 ? [{ group: '–', items: gone }] : []),
  ]
}
