import { Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { DeclaredSettings } from '../../api/options.ts'
import { exactAmount, moneyUnit, parseMoney } from '../../components/money.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { PERIOD_CHOICES } from '../../components/limit-form-values.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { lineOfDeclaredEntry } from './line-of-declared-entry.ts'
import classes from './settings-page.module.css'

const DEFAULT_PERIOD = 'month'

/** The option with the budgets of groups (`GroupBudget`): a budget and its period for each group, by name. */
type Budgets = Readonly<Record<string, { readonly budget: number | null; readonly budget_period: string }>>

/** The budgets of groups, as amounts of money. Budgets from gateway.yaml cannot be changed here. */
export function GroupBudgets({
  names,
  value,
  declared,
  onChange,
}: {
  readonly names: readonly string[]
  /** A JSON object: budgets by group. */
  readonly value: string
  readonly declared: DeclaredSettings
  readonly onChange: (value: string) => void
}) {
  const { settings, limits, common } = useTexts()
  const { display } = useSignedInAccount()
  const budgets = JSON.parse(value) as Budgets
  const [amounts, setAmounts] = useState<ReadonlyMap<string, string>>(new Map())
  const set = (name: string, budget: number | null, period: string): void => {
    const { [name]: before, ...others } = budgets
    const isNone = budget === 0 || period === ''
    if (before === undefined && isNone) return
    onChange(JSON.stringify(isNone ? others : { ...budgets, [name]: { budget, budget_period: period } }))
  }
  return names.map((name) => {
    const { budget = 0, budget_period: period = '' } = budgets[name] ?? {}
    const stored = budget === null || budget === 0 ? '' : exactAmount(budget, display)
    const line = lineOfDeclaredEntry(declared, 'groups', name, 'budget')
    return (
      <div key={name} className={classes['row']}>
        <TextInput
          label={limits.budgetOf(name)}
          inputMode="decimal"
          disabled={line !== undefined}
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          value={amounts.get(name) ?? stored}
          error={budget === null && common.notAnAmount}
          onChange={({ currentTarget: { value: text } }) => {
            setAmounts(new Map(amounts).set(name, text))
            const amount = text.trim() === '' ? 0 : (parseMoney(text, display) ?? null)
            set(name, amount, period === '' ? DEFAULT_PERIOD : period)
          }}
        />
        <Select
          label={settings.periodOf(name)}
          allowDeselect={false}
          disabled={line !== undefined}
          data={PERIOD_CHOICES.map((choice) => ({ value: choice, label: limits.periods[choice] }))}
          value={period}
          onChange={(chosen) => {
            if (chosen === '') setAmounts(new Map(amounts).set(name, ''))
            set(name, budget, chosen ?? '')
          }}
        />
        {line !== undefined && (
          <span className={classes['from']}>{settings.fromLine(declared.file, line)}</span>
        )}
      </div>
    )
  })
}
