import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'

const PAUSE_MS = 250

/** The text of a filter field. It is stored in the page's URL shortly after the last letter was typed. */
export function useDebouncedText(
  value: string,
  onChange: (text: string) => void,
): readonly [text: string, type: (text: string) => void] {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  // The page's URL also changes through the Back button and the button "Clear filters".
  useEffect(() => {
    if (value !== sent.current) setText(value)
    sent.current = value
  }, [value])
  const send = useDebouncedCallback((typed: string) => {
    sent.current = typed
    onChange(typed)
  }, PAUSE_MS)
  const type = (typed: string): void => {
    setText(typed)
    send(typed.trim())
  }
  return [text, type]
}
