import { MultiSelect } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { CallScope } from '../api/calls.ts'
import { type SuggestedField, fieldValuesQuery } from '../api/log-field-values.ts'
import { useTexts } from '../locales/use-texts.tsx'
import type { TimeRange } from './period.ts'
import { keyIdAsUrlValue, valuesToUrlText, valuesOfUrlText } from './url-values.ts'
import { useSignedInAccount } from './session.tsx'

const PAUSE_MS = 250
/** Filters whose values are ids in the API but names in the page's URL, because these names are unique. */
const NAMED: ReadonlySet<string> = new Set(['user', 'channel'])

/** A filter for one or several values; it suggests the values that occur in the calls of the period. */
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
  readonly field: SuggestedField
  readonly scope: CallScope
  readonly span: TimeRange
  /** The chosen values, in the format of the page's URL. */
  readonly value: string | undefined
  /** Whether the keyboard shortcut for filters moves the focus to this field. */
  readonly isFirst?: boolean
  /** Returns the text to show for a value, if the gateway's label is not suitable. */
  readonly wordOf?: (value: string) => string
  readonly onChange: (text: string | undefined) => void
}) {
  const { common } = useTexts()
  const { profile } = useSignedInAccount()
  const [isOpen, setIsOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [part] = useDebouncedValue(typed.trim(), PAUSE_MS)
  const chosen = valuesOfUrlText(value)
  const { data: found = [] } = useQuery({
    // The gateway cannot search texts that only the console knows, so the browser searches these.
    ...fieldValuesQuery(profile.id, scope, { field, span, part: wordOf ? '' : part }),
    // The page's URL has only the ids of keys; their names come with the suggestions.
    enabled: isOpen || chosen.some((one) => one.startsWith('#')),
    placeholderData: keepPreviousData,
  })
  const labels = new Map(chosen.map((one) => [one, wordOf?.(one) ?? one]))
  for (const { value: one, label: name } of found) {
    const inAddress = field === 'token' ? keyIdAsUrlValue(one) : NAMED.has(field) ? name : one
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
      onChange={(values) => onChange(valuesToUrlText(values))}
    />
  )
}
