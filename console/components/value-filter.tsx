import { MultiSelect } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Scope } from '../api/calls.ts'
import { type ValuedField, valuesQuery } from '../api/log-values.ts'
import { useTexts } from '../locales/use-texts.tsx'
import type { Span } from './period.ts'
import { keyText, textOf, valuesIn } from './several.ts'
import { useSignedIn } from './session.tsx'

const PAUSE_MS = 250
/** Fields whose values are ids. The address contains the names instead, which are unique. */
const NAMED: ReadonlySet<string> = new Set(['user', 'channel'])

/** A filter by several values, which suggests those that calls of the period have. */
export function ValueFilter({
  label,
  field,
  scope,
  span,
  value,
  isFirst = false,
  wordOf,
  onChange,
}: {
  readonly label: string
  readonly field: ValuedField
  readonly scope: Scope
  readonly span: Span
  /** The chosen values, as in the address. */
  readonly value: string | undefined
  /** Whether the shortcut for filters moves the focus here. */
  readonly isFirst?: boolean
  /** The word that is shown for a value, if it is not its label. */
  readonly wordOf?: (value: string) => string
  readonly onChange: (text: string | undefined) => void
}) {
  const { common } = useTexts()
  const { profile } = useSignedIn()
  const [isOpen, setIsOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [part] = useDebouncedValue(typed.trim(), PAUSE_MS)
  const chosen = valuesIn(value)
  const { data: found = [] } = useQuery({
    // Words are not known to the gateway, so that they are searched here.
    ...valuesQuery(profile.id, scope, { field, span, part: wordOf ? '' : part }),
    // Names of chosen keys are among the suggestions.
    enabled: isOpen || chosen.some((one) => one.startsWith('#')),
    placeholderData: keepPreviousData,
  })
  const labels = new Map(chosen.map((one) => [one, wordOf?.(one) ?? one]))
  for (const { value: one, label: name } of found) {
    const inAddress = field === 'token' ? keyText(one) : NAMED.has(field) ? name : one
    labels.set(inAddress, wordOf?.(one) ?? name)
  }
  return (
    <MultiSelect
      label={label}
      placeholder={chosen.length === 0 ? common.any : ''}
      data-filter={isFirst || undefined}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': common.clearFilters }}
      hidePickedOptions
      selectFirstOptionOnChange
      spellCheck={false}
      data={[...labels].map(([one, name]) => ({ value: one, label: name }))}
      value={[...chosen]}
      searchValue={typed}
      onSearchChange={setTyped}
      onDropdownOpen={() => setIsOpen(true)}
      onDropdownClose={() => setIsOpen(false)}
      onChange={(values) => onChange(textOf(values))}
    />
  )
}
