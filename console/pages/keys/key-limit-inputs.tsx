import { Group, Select, TextInput } from '@mantine/core'
import { BUDGET_PERIODS } from '../../../src/domain/budget.ts'
import type { ApiKey } from '../../api/keys.ts'
import { moneyUnit } from '../../components/money.ts'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { KeyForm } from './key-form.ts'
import { RATE_LIMIT_NAMES } from './key-limits.ts'

/** Budget and rate limit of a key. */
export function KeyLimitInputs({
  form,
  apiKey,
}: {
  readonly form: KeyForm
  readonly apiKey: ApiKey | undefined
}) {
  const { keys, common } = useTexts()
  const { display } = useSignedIn()
  const { money, time } = useFormats()
  const used =
    apiKey && apiKey.budget > 0
      ? keys.budgetUsed(money(apiKey.budget_used), time(apiKey.budget_resets_at))
      : undefined
  return (
    <>
      <Group grow align="flex-start" gap="md">
        <TextInput
          label={keys.budget}
          description={used ?? keys.budgetHint}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          inputMode="decimal"
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          {...form.getInputProps('budget')}
        />
        <Select
          label={keys.budgetPeriod}
          allowDeselect={false}
          data={BUDGET_PERIODS.map((value) => ({ value, label: keys.periods[value] }))}
          {...form.getInputProps('budget_period')}
        />
      </Group>
      {[RATE_LIMIT_NAMES.slice(0, 2), RATE_LIMIT_NAMES.slice(2)].map((names) => (
        <Group key={names.join()} grow align="flex-start" gap="md">
          {names.map((name) => (
            <TextInput
              key={name}
              label={keys.rateLimits[name]}
              inputMode="numeric"
              placeholder={keys.noLimit}
              {...form.getInputProps(name)}
            />
          ))}
        </Group>
      ))}
    </>
  )
}
