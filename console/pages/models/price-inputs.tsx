import { ActionIcon, Button, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { IconPlus, IconX } from '@tabler/icons-react'
import { useTexts } from '../../locales/use-texts.tsx'
import { MAIN_PRICES, OPTIONAL_PRICES, EMPTY_PRICE_TIER, type TypedPrice } from './price-form-values.ts'
import classes from './models-page.module.css'

export type PriceForm = UseFormReturnType<TypedPrice>

/** The inputs for the prices that most models have. */
export function MainPrices({ form }: { readonly form: PriceForm }) {
  const { models } = useTexts()
  return MAIN_PRICES.map((name) => (
    <TextInput
      key={name}
      label={models.prices[name]}
      inputMode="decimal"
      autoComplete="off"
      rightSection={models.usd}
      rightSectionWidth={60}
      {...(name === 'input' && { 'data-autofocus': true })}
      {...(name === 'cache_read' && { description: models.cachedHint })}
      {...form.getInputProps(name)}
    />
  ))
}

/** The inputs for all other prices; an empty price is derived from the main prices, or is 0. */
export function OptionalPrices({ form }: { readonly form: PriceForm }) {
  const { models } = useTexts()
  return (
    <div className={classes['more']}>
      {OPTIONAL_PRICES.map((name) => (
        <TextInput
          key={name}
          label={models.prices[name]}
          inputMode="decimal"
          autoComplete="off"
          {...form.getInputProps(name)}
        />
      ))}
    </div>
  )
}

/**
 * The inputs for the prices of long prompts. Above the given number of tokens, they apply to the whole call.
 */
export function LongPromptPrices({ form }: { readonly form: PriceForm }) {
  const { models } = useTexts()
  return (
    <div role="group" aria-label={models.tiers} className={classes['tiers']}>
      {form.values.tiers.map((_, place) => (
        <div key={place} role="group" aria-label={models.tierOf(place + 1)}>
          {(['above', ...MAIN_PRICES] as const).map((name) => (
            <TextInput
              key={name}
              label={name === 'above' ? models.above : models.prices[name]}
              inputMode="decimal"
              autoComplete="off"
              {...form.getInputProps(`tiers.${place}.${name}`)}
            />
          ))}
          <ActionIcon
            aria-label={models.removeTier(place + 1)}
            onClick={() => form.removeListItem('tiers', place)}
          >
            <IconX size={16} aria-hidden />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="default"
        size="compact-sm"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => form.insertListItem('tiers', EMPTY_PRICE_TIER)}
      >
        {models.addTier}
      </Button>
    </div>
  )
}
