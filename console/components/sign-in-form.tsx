import { Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Credentials, signInMethodsQuery } from '../api/account.ts'
import { ApiError } from '../api/api-error.ts'
import { type Texts, useTexts } from '../locales/use-texts.tsx'
import { ErrorAlert } from './error-alert.tsx'

/** Fields to sign in with, by password or by access token. */
export function SignInForm({
  username = '',
  onSubmit,
}: {
  readonly username?: string | undefined
  readonly onSubmit: (credentials: Credentials) => Promise<void>
}) {
  const { login, common } = useTexts()
  const { data: status } = useQuery(signInMethodsQuery)
  const hasPasswords = status?.password_login_enabled ?? true
  const [prefersToken, setPrefersToken] = useState(false)
  const byToken = prefersToken || !hasPasswords
  const [refusal, setRefusal] = useState<string>()
  const [isSending, setIsSending] = useState(false)
  const required = (text: string): string | null => (text.trim() === '' ? common.required : null)
  const form = useForm({
    mode: 'uncontrolled',
    initialValues: { username, password: '', token: '' },
    validate: byToken ? { token: required } : { username: required, password: required },
  })
  const submit = form.onSubmit(async ({ username, password, token }) => {
    setIsSending(true)
    setRefusal(undefined)
    try {
      await onSubmit(byToken ? { access_token: token.trim() } : { username: username.trim(), password })
    } catch (error) {
      setRefusal(refusalText(error, byToken, login))
    } finally {
      setIsSending(false)
    }
  })
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        {refusal !== undefined && <ErrorAlert text={refusal} />}
        {byToken ? (
          <PasswordInput
            key={form.key('token')}
            label={login.accessToken}
            description={login.tokenHint}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
            autoFocus
            visibilityToggleButtonProps={{ 'aria-hidden': true }}
            {...form.getInputProps('token')}
          />
        ) : (
          <>
            <TextInput
              key={form.key('username')}
              label={login.username}
              autoComplete="username"
              autoCapitalize="none"
              autoFocus={username === ''}
              {...form.getInputProps('username')}
            />
            <PasswordInput
              key={form.key('password')}
              label={login.password}
              autoComplete="current-password"
              autoFocus={username !== ''}
              visibilityToggleButtonProps={{ 'aria-hidden': true }}
              {...form.getInputProps('password')}
            />
          </>
        )}
        <Button type="submit" loading={isSending} mt="xs">
          {login.title}
        </Button>
        {hasPasswords && (
          <Button
            variant="subtle"
            onClick={() => {
              setPrefersToken(!byToken)
              setRefusal(undefined)
              form.clearErrors()
            }}
          >
            {byToken ? login.usePassword : login.useToken}
          </Button>
        )}
      </Stack>
    </form>
  )
}

function refusalText(error: unknown, byToken: boolean, login: Texts['login']): string {
  if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500) return login.unreachable
  if (error.status === 429) return login.limited(error.retryAfter ?? 60)
  if (error.status === 403) return login.disabled
  return byToken ? login.wrongToken : login.wrongPair
}
