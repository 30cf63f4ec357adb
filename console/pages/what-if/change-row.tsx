import { ActionIcon, Select, TextInput } from '@mantine/core'
import { IconX } from '@tabler/icons-react'
import { useTexts } from '../../locales/use-texts.tsx'
import type { WhatIfChange } from './what-if-changes.ts'
import classes from './what-if-page.module.css'

/** The inputs for one assumed change. */
export function ChangeRow({
  change,
  models,
  groups,
  onChange,
  onRemove,
}: {
  readonly change: WhatIfChange
  readonly models: readonly string[]
  readonly groups: readonly string[]
  readonly onChange: (change: WhatIfChange) => void
  readonly onRemove: () => void
}) {
  const { whatIf } = useTexts()
  const set = (changes: object): void => onChange({ ...change, ...changes })
  const choice = (name: string, label: string, values: readonly string[]) => (
    <Select
      key={name}
      label={label}
      searchable
      data={[...values]}
      value={(change as unknown as Record<string, string>)[name] || null}
      onChange={(value) => set({ [name]: value ?? '' })}
    />
  )
  const amount = (name: string, label: string) => (
    <TextInput
      key={name}
      label={label}
      inputMode="decimal"
      autoComplete="off"
      value={(change as unknown as Record<string, string>)[name] ?? ''}
      onChange={({ currentTarget: { value } }) => set({ [name]: value })}
    />
  )
  return (
    <div role="group" aria-label={whatIf.kinds[change.kind]} className={classes['change']}>
      {change.kind === 'price' && [
        choice('model', whatIf.model, models),
        amount('input', whatIf.input),
        amount('output', whatIf.output),
        amount('cached', whatIf.cached),
      ]}
      {change.kind === 'ratio' && [choice('group', whatIf.group, groups), amount('ratio', whatIf.ratio)]}
      {change.kind === 'model' && [choice('from', whatIf.from, models), choice('to', whatIf.to, models)]}
      <ActionIcon aria-label={whatIf.remove} onClick={onRemove}>
        <IconX size={16} aria-hidden />
      </ActionIcon>
    </div>
  )
}
