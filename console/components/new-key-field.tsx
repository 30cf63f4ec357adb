import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { CopyButton } from './copy-button.tsx'

/** A key that was just created. It is masked until *Show key* is clicked; *Copy key* has the focus. */
export function NewKeyField({ secret, hint }: { readonly secret: string; readonly hint: string }) {
  const { keys } = useTexts()
  const [isShown, setIsShown] = useState(false)
  return (
    <>
      <TextInput
        label={keys.apiKey}
        description={hint}
        readOnly
        spellCheck={false}
        autoComplete="off"
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        value={isShown ? secret : maskedKey(secret)}
      />
      <Group gap="sm" mt="sm">
        <Button variant="default" disabled={isShown} onClick={() => setIsShown(true)}>
          {keys.show}
        </Button>
        <CopyButton label={keys.copyKey} text={secret} isPrimary hasFocus />
      </Group>
    </>
  )
}

const SHOWN = 4

/** A key of which only both ends are readable, so that users recognize it. */
function maskedKey(key: string): string {
  return `${key.slice(0, 'sk-'.length + SHOWN)}…${key.slice(-SHOWN)}`
}
