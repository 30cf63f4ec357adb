import { Button, Select, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import type { SearchState } from '../../parts/search-state.ts'
import { Toolbar } from '../../parts/toolbar.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import { isFiltered, PERIODS, periodOf, TYPED_FILTERS } from './log-filter.ts'

const PAUSE_MS = 300
const OF_ADMINS: ReadonlySet<string> = new Set(['user', 'channel'])

/** The filters of calls, kept in the address. */
export function LogFilters({
  isAdmin,
  search,
  onChange,
}: {
  readonly isAdmin: boolean
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { logs, common } = useTexts()
  const labels = { model: logs.model, key: logs.key, user: logs.user, channel: logs.channel, id: logs.callId }
  return (
    <Toolbar>
      <Select
        label={logs.period}
        allowDeselect={false}
        data={PERIODS.map((period) => ({ value: period, label: logs.periods[period] }))}
        value={periodOf(search)}
        onChange={(period) => onChange({ period: period ?? undefined })}
      />
      {TYPED_FILTERS.filter((name) => isAdmin || !OF_ADMINS.has(name)).map((name, index) => (
        <TypedFilter
          key={name}
          label={labels[name]}
          value={search[name] ?? ''}
          isFirst={index === 0}
          onChange={(text) => onChange({ [name]: text })}
        />
      ))}
      {isFiltered(search) && (
        <Button
          variant="subtle"
          onClick={() => onChange(Object.fromEntries(TYPED_FILTERS.map((name) => [name, undefined])))}
        >
          {common.clearFilters}
        </Button>
      )}
    </Toolbar>
  )
}

function TypedFilter({
  label,
  value,
  isFirst,
  onChange,
}: {
  readonly label: string
  readonly value: string
  readonly isFirst: boolean
  readonly onChange: (text: string) => void
}) {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  // The address also changes by Back and by "Clear filters".
  useEffect(() => {
    if (value !== sent.current) setText(value)
    sent.current = value
  }, [value])
  const send = useDebouncedCallback((typed: string) => {
    sent.current = typed
    onChange(typed)
  }, PAUSE_MS)
  return (
    <TextInput
      label={label}
      value={text}
      spellCheck={false}
      data-filter={isFirst || undefined}
      onChange={({ currentTarget: { value } }) => {
        setText(value)
        send(value.trim())
      }}
    />
  )
}
