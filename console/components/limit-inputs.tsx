import { Group, Select, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useTexts } from '../locales/use-texts.tsx'
import { moneyUnit, parseMoney } from './money.ts'
import { useFormats, useSignedIn } from './session.tsx'
import { brokenBounds, PERIOD_CHOICES, RATE_LIMIT_NAMES, type TypedLimits } from './typed-limits.ts'

const DEFAULT_PERIOD = 'month'

/** Budget and rate limit of a key or a user. */
export function LimitInputs<Typed extends TypedLimits>({
  form: given,
  isDisabled = false,
}: {
  readonly form: UseFormReturnType<Typed>
  readonly isDisabled?: boolean
}) {
  const { limits, common } = useTexts()
  const { display } = useSignedIn()
  const { count } = useFormats()
  // The form has more fields; only those of the limits are used here.
  const form = given as unknown as UseFormReturnType<TypedLimits>
  const { budget, rate_limit_window: window } = form.values
  const windows = new Map<string, string>(Object.entries(limits.windows))
  if (window !== '' && !windows.has(window)) windows.set(window, limits.seconds(count(Number(window))))
  const budgetInput = form.getInputProps('budget')
  return (
    <>
      <Group grow align="flex-start" gap="md">
        <TextInput
          label={limits.budget}
          description={limits.budgetHint}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          inputMode="decimal"
          disabled={isDisabled}
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          {...budgetInput}
          onBlur={(event) => {
            budgetInput.onBlur?.(event)
            if ((parseMoney(budget, display) ?? 0) > 0 && form.values.budget_period === '')
              form.setFieldValue('budget_period', DEFAULT_PERIOD)
          }}
        />
        <Select
          label={limits.budgetPeriod}
          allowDeselect={false}
          disabled={isDisabled}
          data={PERIOD_CHOICES.map((value) => ({ value, label: limits.periods[value] }))}
          {...form.getInputProps('budget_period')}
        />
      </Group>
      {[RATE_LIMIT_NAMES.slice(0, 2), RATE_LIMIT_NAMES.slice(2)].map((names) => (
        <Group key={names.join()} grow align="flex-start" gap="md">
          {names.map((name) =>
            name === 'rate_limit_window' ? (
              <Select
                key={name}
                label={limits.rateLimits[name]}
                allowDeselect={false}
                disabled={isDisabled}
                data={[...windows].map(([value, label]) => ({ value, label }))}
                {...form.getInputProps(name)}
              />
            ) : (
              <TextInput
                key={name}
                label={limits.rateLimits[name]}
                inputMode="numeric"
                placeholder={limits.noLimit}
                disabled={isDisabled}
                {...form.getInputProps(name)}
              />
            ),
          )}
        </Group>
      ))}
    </>
  )
}

/** The rules of these fields, for the form that contains them. */
export function useLimitRules() {
  const { common, limits } = useTexts()
  const { display } = useSignedIn()
  const { count } = useFormats()
  const rates = RATE_LIMIT_NAMES.map((name) => [
    name,
    (typed: string): string | null => {
      const bounds = brokenBounds(name, typed)
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

/** The labels of these fields, for the question which of two changes stays. */
export function useLimitLabels() {
  const { limits } = useTexts()
  return { budget: limits.budget, budget_period: limits.budgetPeriod, ...limits.rateLimits }
}
