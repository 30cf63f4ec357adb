import { Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { acceptInvitation, appShellQuery, signIn } from '../../api/account.ts'
import { characterCount } from '../../components/character-count.ts'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { LoginFrame } from './login-frame.tsx'

const MIN_LENGTH = 8

/** The page of an invitation, whose token is in the fragment of the address: a name and a password are chosen there. */
export function InvitePage() {
  const { login } = useTexts()
  return (
    <LoginFrame title={login.join}>
      <p>{login.joinHint}</p>
      <JoinForm />
    </LoginFrame>
  )
}

function JoinForm() {
  const { login, common, account } = useTexts()
  const [token] = useState(() => window.location.hash.slice(1))
  const navigate = useNavigate()
  const client = useQueryClient()
  const form = useForm({
    mode: 'uncontrolled',
    initialValues: { username: '', password: '' },
    validate: {
      username: (text) => (text.trim() === '' ? common.required : null),
      password: (text) => (characterCount(text) < MIN_LENGTH ? account.shortPassword : null),
    },
  })
  const joining = useAction(async ({ username, password }: { username: string; password: string }) => {
    const credentials = { username: username.trim(), password }
    await acceptInvitation(token, credentials)
    await signIn(credentials)
    client.clear()
    await client.fetchQuery(appShellQuery)
    await navigate({ to: '/' })
  })
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void joining.run(typed))}>
      <Stack gap="md">
        <TextInput
          key={form.key('username')}
          label={login.username}
          autoComplete="username"
          autoCapitalize="none"
          autoFocus
          {...form.getInputProps('username')}
        />
        <PasswordInput
          key={form.key('password')}
          label={login.password}
          description={login.joinPasswordHint}
          autoComplete="new-password"
          visibilityToggleButtonProps={{ 'aria-hidden': true }}
          {...form.getInputProps('password')}
        />
        <RefusalMessage error={joining.error} />
        <Button type="submit" loading={joining.isRunning} mt="xs">
          {login.joinButton}
        </Button>
      </Stack>
    </form>
  )
}
