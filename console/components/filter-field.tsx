import { TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useState } from 'react'

const PAUSE_MS = 250

/** A field that filters a list, shortly after the last letter was typed. */
export function FilterField({
  label,
  value,
  onFilter,
}: {
  readonly label: string
  readonly value: string
  readonly onFilter: (text: string) => void
}) {
  const [text, setText] = useState(value)
  const filter = useDebouncedCallback(onFilter, PAUSE_MS)
  return (
    <TextInput
      type="search"
      data-filter
      aria-label={label}
      placeholder={label}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={({ currentTarget: { value } }) => {
        setText(value)
        filter(value.trim())
      }}
    />
  )
}
