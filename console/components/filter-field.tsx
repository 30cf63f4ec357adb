import { TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useDebouncedText } from './use-debounced-text.ts'

/** A text field that filters a list. The filter is applied shortly after the last letter was typed. */
export function FilterField({
  label,
  value,
  onFilter,
}: {
  readonly label: string
  readonly value: string
  readonly onFilter: (text: string) => void
}) {
  const [text, type] = useDebouncedText(value, onFilter)
  return (
    <TextInput
      type="search"
      data-filter
      aria-label={label}
      placeholder={label}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={({ currentTarget }) => type(currentTarget.value)}
    />
  )
}
