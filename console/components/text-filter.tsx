import { TextInput } from '@mantine/core'
import { useDebouncedText } from './use-debounced-text.ts'

/**
 * A text field that filters a list. The text is stored in the page's URL shortly after the last letter was
 * typed.
 */
export function TextFilter({
  label,
  value,
  isFirst = false,
  onChange,
}: {
  readonly label: string
  readonly value: string
  /** Whether the keyboard shortcut for filters moves the focus to this field. */
  readonly isFirst?: boolean
  readonly onChange: (text: string) => void
}) {
  const [text, type] = useDebouncedText(value, onChange)
  return (
    <TextInput
      label={label}
      value={text}
      spellCheck={false}
      data-filter={isFirst || undefined}
      onChange={({ currentTarget }) => type(currentTarget.value)}
    />
  )
}
