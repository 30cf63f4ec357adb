import { TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'

const PAUSE_MS = 300

/** A filter that is stored in the address shortly after the last letter was typed. */
export function TypedFilter({
  label,
  value,
  isFirst = false,
  onChange,
}: {
  readonly label: string
  readonly value: string
  /** Whether the shortcut for filters moves the focus here. */
  readonly isFirst?: boolean
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
