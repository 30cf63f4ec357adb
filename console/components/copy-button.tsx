import { Button } from '@mantine/core'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import { useEffect, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'

const SHOWN_MS = 2000

/** Copies a text to the clipboard, and shows for two seconds that it was copied. */
export function CopyButton({
  label,
  text,
  isPrimary = false,
  hasFocus = false,
}: {
  readonly label: string
  /** The text, or a function that returns it. */
  readonly text: string | (() => Promise<string>)
  readonly isPrimary?: boolean
  /** Whether the button has the focus when its dialog opens. */
  readonly hasFocus?: boolean
}) {
  const { common } = useTexts()
  const [isCopied, setIsCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return undefined
    const timer = setTimeout(() => setIsCopied(false), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async (): Promise<void> => {
    await copyText(typeof text === 'string' ? text : await text())
    setIsCopied(true)
  }
  return (
    <>
      <Button
        variant={isPrimary ? 'filled' : 'default'}
        data-autofocus={hasFocus || undefined}
        leftSection={isCopied ? <IconCheck size={16} /> : <IconCopy size={16} />}
        onClick={() => void copy()}
      >
        {label}
      </Button>
      <span role="status" data-copied>
        {isCopied && common.copied}
      </span>
    </>
  )
}

/**
 * Copies a text. Without `navigator.clipboard`, which browsers do not have on pages loaded over plain HTTP
 * from another machine, it copies from a temporary text field.
 */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  const parent = document.querySelector('[role="dialog"]') ?? document.body
  parent.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
