import { Button, Group, Stack } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ManagedModel, setPrice, setPrices } from '../../api/models.ts'
import { keepFocus } from '../../components/keep-focus.ts'
import { showNotice } from '../../components/notify.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  priceToStore,
  exampleCallCost,
  isTierOrRegionName,
  isPriceText,
  isCompleteServicePrice,
  isTokenCountText,
  type PriceFormValues,
  priceFormValues,
} from './price-form-values.ts'
import { MainPrices, OptionalPrices, LongPromptPrices } from './price-inputs.tsx'
import { Regions, ServiceTiers } from './service-inputs.tsx'

/** Sets the price of one model or of several, or restores the built-in price of one. */
export function EditPriceDialog({
  edited,
  onClose,
}: {
  /** The models whose price is edited; empty while the dialog is closed. */
  readonly edited: readonly ManagedModel[]
  readonly onClose: () => void
}) {
  const { models } = useTexts()
  return (
    <FormDialog
      opened={edited.length > 0}
      onClose={onClose}
      title={edited.length > 1 ? models.setPrice : models.editPrice}
    >
      {edited.length > 0 && <EditPriceForm edited={edited} onClose={onClose} />}
    </FormDialog>
  )
}

function EditPriceForm({
  edited,
  onClose,
}: {
  readonly edited: readonly ManagedModel[]
  readonly onClose: () => void
}) {
  const { models, common } = useTexts()
  const { price: priceText } = useFormatters()
  const [areMoreOpen, setAreMoreOpen] = useState(false)
  const [only, ...others] = edited
  const isOne = others.length === 0
  const form = usePriceForm(isOne ? only : undefined)
  const saving = useSaving(edited, onClose)
  const example = exampleCallCost(form.values)
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
      <Stack gap="md">
        <p>{isOne ? only?.model : models.count(edited.length)}</p>
        <MainPrices form={form} />
        <p role="status">
          {example === undefined ? models.perMillionOnly : models.example(priceText(example))}
        </p>
        <Button variant="subtle" aria-expanded={areMoreOpen} onClick={() => setAreMoreOpen(!areMoreOpen)}>
          {models.morePrices}
        </Button>
        {areMoreOpen && <OptionalPrices form={form} />}
        {areMoreOpen && isOne && <ServiceTiers form={form} />}
        {areMoreOpen && isOne && <Regions form={form} />}
        {isOne ? <LongPromptPrices form={form} /> : <p>{models.tiersOfEachStay}</p>}
        <RefusalMessage error={saving.error} />
      </Stack>
      <Group justify="flex-end" mt="lg" gap="sm">
        {isOne && only?.source === 'set' && (
          <Button variant="default" onClick={() => void saving.run(null)} disabled={saving.isRunning}>
            {models.useBuiltIn}
          </Button>
        )}
        <Button variant="default" onClick={onClose}>
          {common.cancel}
        </Button>
        <Button type="submit" onMouseDown={keepFocus} loading={saving.isRunning}>
          {models.savePrice}
        </Button>
      </Group>
    </form>
  )
}

function usePriceForm(model: ManagedModel | undefined) {
  const { models, common } = useTexts()
  const amount = (text: string): string | null => (isPriceText(text) ? null : common.notAnAmount)
  const optional = (text: string): string | null => (text.trim() === '' ? null : amount(text))
  return useForm<PriceFormValues>({
    initialValues: priceFormValues(model ?? { price: null, tiers: [] }),
    validateInputOnBlur: true,
    validate: (typed) => {
      const errors: Record<string, string | null> = {}
      for (const [name, text] of Object.entries(typed.amounts))
        errors[`amounts.${name}`] = name === 'input' || name === 'output' ? amount(text) : optional(text)
      for (const [place, tier] of typed.tiers.entries()) {
        errors[`tiers.${place}.above`] = isTokenCountText(tier.above) ? null : models.notTokens
        errors[`tiers.${place}.input`] = amount(tier.input)
        errors[`tiers.${place}.output`] = amount(tier.output)
        errors[`tiers.${place}.cache_read`] = optional(tier.cache_read)
      }
      for (const [place, one] of typed.service.entries()) {
        errors[`service.${place}.tier`] = isTierOrRegionName(one.tier) ? null : models.notAName
        errors[`service.${place}.factor`] = isCompleteServicePrice(one) ? null : models.notAServicePrice
      }
      for (const [place, { region, factor }] of typed.regions.entries()) {
        errors[`regions.${place}.region`] = isTierOrRegionName(region) ? null : models.notAName
        errors[`regions.${place}.factor`] = amount(factor)
      }
      return Object.fromEntries(Object.entries(errors).filter(([, error]) => error !== null))
    },
  })
}

/**
 * Saves the typed price for all chosen models, or for none if one fails. Null restores the built-in price of
 * a single model.
 */
function useSaving(edited: readonly ManagedModel[], onSaved: () => void) {
  const { models } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  return useAction(async (typed: PriceFormValues | null) => {
    const [only, ...others] = edited
    try {
      if (only && others.length === 0) {
        await setPrice(only, typed && priceToStore(only, typed))
        showNotice(models.priceSaved(only.model))
      } else if (typed) {
        await setPrices(edited.map((model) => ({ ...model, price: priceOfEach(model, typed) })))
        showNotice(models.pricesSaved(edited.length))
      }
      onSaved()
    } finally {
      await Promise.all(
        ['managed-models', 'models'].map((name) =>
          client.invalidateQueries({ queryKey: [profile.id, name] }),
        ),
      )
    }
  })
}

/**
 * The price to store for one of several models. The dialog does not show their tiers and regions, which stay
 * as they are.
 */
function priceOfEach(model: ManagedModel, typed: PriceFormValues): object {
  const { tiers, service, regions } = priceFormValues(model)
  return priceToStore(model, { ...typed, tiers, service, regions })
}
