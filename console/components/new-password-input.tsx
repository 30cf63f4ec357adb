import { Button, Group, PasswordInput } from '@mantine/core'
import { type ComponentProps, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { CopyButton } from './copy-button.tsx'

/** A field for the password of another user, with a button that fills in a random one and shows it. */
export function NewPasswordInput({
  onGenerate,
  ...input
}: ComponentProps<typeof PasswordInput> & { readonly onGenerate: (password: string) => void }) {
  const { users } = useTexts()
  const [generated, setGenerated] = useState<string>()
  const [isShown, setIsShown] = useState(false)
  return (
    <div>
      <PasswordInput
        {...input}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ 'aria-hidden': true }}
        visible={isShown}
        onVisibilityChange={setIsShown}
        onChange={(event) => {
          setGenerated(undefined)
          input.onChange?.(event)
        }}
      />
      <Group gap="sm" mt="xs">
        <Button
          variant="default"
          size="xs"
          onClick={() => {
            const password = randomPassword()
            setGenerated(password)
            setIsShown(true)
            onGenerate(password)
          }}
        >
          {users.generatePassword}
        </Button>
        {generated !== undefined && <CopyButton label={users.copyPassword} text={generated} />}
      </Group>
    </div>
  )
}

/** Letters and digits without those that look alike. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789'
/** With this alphabet, 116 bits. */
const LENGTH = 20
const BYTE_VALUES = 256

function randomPassword(): string {
  // Bytes above the last multiple of the alphabet's length are left out, so that all letters are equally likely.
  const limit = BYTE_VALUES - (BYTE_VALUES % ALPHABET.length)
  const letters: string[] = []
  while (letters.length < LENGTH)
    for (const byte of crypto.getRandomValues(new Uint8Array(LENGTH)))
      if (byte < limit && letters.length < LENGTH) letters.push(ALPHABET.charAt(byte % ALPHABET.length))
  return letters.join('')
}
