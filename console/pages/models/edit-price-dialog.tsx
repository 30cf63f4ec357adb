import { Button, Group, Stack } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type ManagedModel, setPrice, setPrices } from '../../api/models.ts'
import { keepFocus } from '../../components/keep-focus.ts'
import { showNotice } from '../../components/notify.tsx'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
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
  type TypedPrice,
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
  const [isAsking, setIsAsking] = useState(false)
  const [model, ...others] = edited
  return (
    <FormDialog
      opened={edited.length > 0}
      onClose={onClose}
      title={edited.length > 1 ? models.setPrice : models.editPrice}
      closeOnEscape={!isAsking}
    >
      {model && (
        <EditPriceForm
          key={model.model}
          model={model}
          others={others}
          onClose={onClose}
          onAsking={setIsAsking}
        />
      )}
    </FormDialog>
  )
}

function EditPriceForm({
  model: given,
  others,
  onClose,
  onAsking,
}: {
  readonly model: ManagedModel
  /** The other models that get the same prices. */
  readonly others: readonly ManagedModel[]
  readonly onClose: () => void
  /** Called when the question about a conflict opens, and when it closes. */
  readonly onAsking: (isAsking: boolean) => void
}) {
  const { models, common } = useTexts()
  const { price: priceText } = useFormatters()
  const [areMoreOpen, setAreMoreOpen] = useState(false)
  // The list of models is read again while the form is open.
  const [model] = useState(given)
  const isOne = others.length === 0
  const form = usePriceForm(isOne ? model : undefined)
  const reload = useReload()
  const edit = useMergedEdit<TypedPrice, ManagedModel>({
    form,
    object: model,
    typedOf: typedPrice,
    labels: {
      ...models.prices,
      tiers: models.tiers,
      service: models.service.title,
      regions: models.regions.title,
    },
    words: {
      tiers: (rows) => rows.map(({ above, ...prices }) => `${above}: ${amountsOf(prices)}`).join('; '),
      service: (rows) =>
        rows.map(({ tier, factor, ...prices }) => `${tier}: ${factor || amountsOf(prices)}`).join('; '),
    },
    async save(typed, version, saved) {
      const now = await setPrice(model.model, version, priceToStore(saved, untyped(typed)))
      onClose()
      return now ?? saved
    },
    reload,
    saved: () => models.priceSaved(model.model),
  })
  useEffect(() => onAsking(edit.isAsking), [onAsking, edit.isAsking])
  const restoring = useAction(async () => {
    await setPrice(model.model, model.version, null).finally(reload)
    showNotice(models.priceSaved(model.model))
    onClose()
  })
  const settingAll = useAction(async (typed: TypedPrice) => {
    const all = [model, ...others]
    await setPrices(all.map((one) => ({ ...one, price: priceOfEach(one, untyped(typed)) }))).finally(reload)
    showNotice(models.pricesSaved(all.length))
    onClose()
  })
  const example = exampleCallCost({ amounts: form.values })
  return (
    <form
      noValidate
      onSubmit={form.onSubmit((typed) => (isOne ? edit.save(typed) : void settingAll.run(typed)))}
    >
      <FormChange isChanged={form.isDirty()} />
      <Stack gap="md">
        <p>{isOne ? model.model : models.count(others.length + 1)}</p>
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
        <RefusalMessage error={edit.error ?? restoring.error ?? settingAll.error} />
      </Stack>
      <Group justify="flex-end" mt="lg" gap="sm">
        {isOne && model.source === 'set' && (
          <Button variant="default" onClick={() => void restoring.run()} disabled={edit.isSaving}>
            {models.useBuiltIn}
          </Button>
        )}
        <Button variant="default" onClick={onClose}>
          {common.cancel}
        </Button>
        <Button type="submit" onMouseDown={keepFocus} loading={edit.isSaving || settingAll.isRunning}>
          {models.savePrice}
        </Button>
      </Group>
      {edit.conflict}
    </form>
  )
}

/** The form values of the price of a model. */
function typedPrice(model: Pick<ManagedModel, 'price' | 'tiers'>): TypedPrice {
  const { amounts, ...rows } = priceFormValues(model)
  return { ...amounts, ...rows }
}

function untyped({ tiers, service, regions, ...amounts }: TypedPrice): PriceFormValues {
  return { amounts, tiers, service, regions }
}

function amountsOf({ input, output, cache_read = '' }: PriceAmounts): string {
  return [input, output, cache_read].filter((amount) => amount !== '').join(', ')
}

interface PriceAmounts {
  readonly input: string
  readonly output: string
  readonly cache_read?: string
}

/** Returns a function that reads again what shows prices. */
function useReload() {
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  return () =>
    Promise.all(
      ['managed-models', 'models'].map((name) => client.invalidateQueries({ queryKey: [profile.id, name] })),
    )
}

function usePriceForm(model: ManagedModel | undefined) {
  const { models, common } = useTexts()
  const amount = (text: string): string | null => (isPriceText(text) ? null : common.notAnAmount)
  const optional = (text: string): string | null => (text.trim() === '' ? null : amount(text))
  return useForm<TypedPrice>({
    initialValues: typedPrice(model ?? { price: null, tiers: [] }),
    validateInputOnBlur: true,
    validate: (typed) => {
      const errors: Record<string, string | null> = {}
      for (const [name, text] of Object.entries(untyped(typed).amounts))
        errors[name] = name === 'input' || name === 'output' ? amount(text) : optional(text)
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
 * The price to store for one of several models. The dialog does not show their tiers and regions, which stay
 * as they are.
 */
function priceOfEach(model: ManagedModel, typed: PriceFormValues): object {
  const { tiers, service, regions } = priceFormValues(model)
  return priceToStore(model, { ...typed, tiers, service, regions })
}
