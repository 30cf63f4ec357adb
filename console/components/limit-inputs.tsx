import { Select, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { ChangeEvent } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './limit-inputs.module.css'
import { moneyUnit, parseMoney } from './money.ts'
import { useFormatters, useSignedInAccount } from './session.tsx'
import {
  violatedBounds,
  PERIOD_CHOICES,
  RATE_LIMIT_NAMES,
  type LimitFormValues,
} from './limit-form-values.ts'

const DEFAULT_PERIOD = 'month'

/** The fields for the budget and the rate limits of a key or a user. */
export function LimitInputs<Typed extends LimitFormValues>({
  form: given,
  isDisabled = false,
}: {
  readonly form: UseFormReturnType<Typed>
  readonly isDisabled?: boolean
}) {
  const { limits } = useTexts()
  const words = useLimitWords()
  // The form has more fields; only those of the limits are used here.
  const form = given as unknown as UseFormReturnType<LimitFormValues>
  const { rate_limit_window: window } = form.values
  const windows = new Map<string, string>(Object.entries(limits.windows))
  if (window !== '' && !windows.has(window)) windows.set(window, words.rate_limit_window(window))
  return (
    <>
      <BudgetInputs form={given} isDisabled={isDisabled} />
      {[RATE_LIMIT_NAMES.slice(0, 2), RATE_LIMIT_NAMES.slice(2)].map((names) => (
        <div key={names.join()} className={classes['pair']}>
          {names.map((name) =>
            name === 'rate_limit_window' ? (
              <Select
                key={name}
                label={limits.rateLimits[name]}
                description={limits.rateLimitHints[name]}
                allowDeselect={false}
                disabled={isDisabled}
                data={[...windows].map(([value, label]) => ({ value, label }))}
                {...form.getInputProps(name)}
              />
            ) : (
              <TextInput
                key={name}
                label={limits.rateLimits[name]}
                description={limits.rateLimitHints[name]}
                inputMode="numeric"
                placeholder={limits.noLimit}
                disabled={isDisabled}
                {...form.getInputProps(name)}
              />
            ),
          )}
        </div>
      ))}
    </>
  )
}

/** The values of the fields for a budget. */
export type BudgetFormValues = Pick<LimitFormValues, 'budget' | 'budget_period'>

/** The fields for a budget and its period. */
export function BudgetInputs<Typed extends BudgetFormValues>({
  form: given,
  isDisabled = false,
}: {
  readonly form: UseFormReturnType<Typed>
  readonly isDisabled?: boolean
}) {
  const { limits, common } = useTexts()
  const { display } = useSignedInAccount()
  const form = given as unknown as UseFormReturnType<BudgetFormValues>
  const { budget_period: period } = form.values
  const budgetInput = form.getInputProps('budget')
  return (
    <div className={classes['pair']}>
      <TextInput
        label={limits.budget}
        description={limits.budgetHint}
        inputMode="decimal"
        disabled={isDisabled}
        rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
        rightSectionWidth={60}
        {...budgetInput}
        onChange={(event: ChangeEvent<HTMLInputElement>) => {
          budgetInput.onChange(event)
          const isBudget = (parseMoney(event.currentTarget.value, display) ?? 0) > 0
          if (isBudget && period === '') form.setFieldValue('budget_period', DEFAULT_PERIOD)
        }}
      />
      <Select
        label={limits.budgetPeriod}
        description={limits.budgetPeriodHint}
        allowDeselect={false}
        disabled={isDisabled}
        data={PERIOD_CHOICES.map((value) => ({ value, label: limits.periods[value] }))}
        {...form.getInputProps('budget_period')}
        onChange={(chosen) => {
          form.setFieldValue('budget_period', (chosen ?? '') as LimitFormValues['budget_period'])
          if (chosen === '') form.setFieldValue('budget', '')
        }}
      />
    </div>
  )
}

/** The validation rules of the fields for limits, for the form that contains them. */
export function useLimitRules() {
  const { common, limits } = useTexts()
  const { display } = useSignedInAccount()
  const { count } = useFormatters()
  const rates = RATE_LIMIT_NAMES.map((name) => [
    name,
    (typed: string): string | null => {
      const bounds = violatedBounds(name, typed)
      return bounds ? limits.notWithin(count(bounds.minimum ?? 0), count(bounds.maximum ?? 0)) : null
    },
  ])
  return {
    budget: (budget: string): string | null =>
      budget.trim() === '' || parseMoney(budget, display) !== undefined ? null : common.notAnAmount,
    ...(Object.fromEntries(rates) as Record<
      (typeof RATE_LIMIT_NAMES)[number],
      (typed: string) => string | null
    >),
  }
}

/** The words for the values of the fields for limits that are chosen. */
export function useLimitWords() {
  const { limits } = useTexts()
  const { count } = useFormatters()
  const windows: Readonly<Record<string, string>> = limits.windows
  return {
    budget_period: limits.periods,
    rate_limit_window: (window: string): string => windows[window] ?? limits.seconds(count(Number(window))),
  }
}

/** The labels of the fields for limits, for the dialog that asks which of two conflicting changes to keep. */
export function useLimitLabels() {
  const { limits } = useTexts()
  return { budget: limits.budget, budget_period: limits.budgetPeriod, ...limits.rateLimits }
}
