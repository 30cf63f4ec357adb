import { ActionIcon, Autocomplete, Button, TextInput } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  EMPTY_REGION,
  EMPTY_SERVICE_TIER,
  type PriceRowKind,
  type RegionFormValues,
  type ServiceTierFormValues,
} from './price-form-values.ts'
import classes from './models-page.module.css'
import type { PriceForm } from './price-inputs.tsx'

/** Suggested names of service tiers. */
const TIERS = ['flex', 'batch', 'fast', 'ultrafast']

/** Inputs for the prices of service tiers. A tier that is not listed has the price of the vendor. */
export function ServiceTiers({ form }: { readonly form: PriceForm }) {
  const { models } = useTexts()
  return (
    <Rows form={form} rows="service" texts={models.service} blank={EMPTY_SERVICE_TIER}>
      {(at) => (
        <>
          <Autocomplete
            label={models.tier}
            data={TIERS}
            autoComplete="off"
            {...form.getInputProps(`${at}.tier`)}
          />
          {(['factor', 'input', 'output'] as const).map((name) => (
            <TextInput
              key={name}
              label={name === 'factor' ? models.factor : models.prices[name]}
              inputMode="decimal"
              autoComplete="off"
              {...form.getInputProps(`${at}.${name}`)}
            />
          ))}
        </>
      )}
    </Rows>
  )
}

/** Inputs for the factors by which the prices of tokens are multiplied in a region. */
export function Regions({ form }: { readonly form: PriceForm }) {
  const { models } = useTexts()
  return (
    <Rows form={form} rows="regions" texts={models.regions} blank={EMPTY_REGION}>
      {(at) => (
        <>
          <TextInput label={models.region} autoComplete="off" {...form.getInputProps(`${at}.region`)} />
          <TextInput
            label={models.factor}
            inputMode="decimal"
            autoComplete="off"
            {...form.getInputProps(`${at}.factor`)}
          />
        </>
      )}
    </Rows>
  )
}

function Rows({
  form,
  rows,
  texts,
  blank,
  children,
}: {
  readonly form: PriceForm
  readonly rows: Exclude<PriceRowKind, 'tiers'>
  readonly texts: {
    readonly title: string
    readonly hint: string
    readonly add: string
    of(place: number): string
    remove(place: number): string
  }
  readonly blank: ServiceTierFormValues | RegionFormValues
  readonly children: (at: string) => ReactNode
}) {
  return (
    <div role="group" aria-label={texts.title} className={classes['tiers']}>
      <p>{texts.hint}</p>
      {form.values[rows].map((_, place) => (
        <div key={place} role="group" aria-label={texts.of(place + 1)}>
          {children(`${rows}.${place}`)}
          <ActionIcon aria-label={texts.remove(place + 1)} onClick={() => form.removeListItem(rows, place)}>
            <IconX size={16} aria-hidden />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="default"
        size="compact-sm"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => form.insertListItem(rows, blank)}
      >
        {texts.add}
      </Button>
    </div>
  )
}
