import { useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { appShellQuery, signIn } from '../../api/account.ts'
import { isConsolePath } from '../../components/console-path.ts'
import { ErrorAlert } from '../../components/error-alert.tsx'
import { ProviderLinks } from '../../components/provider-links.tsx'
import { SignInForm } from '../../components/sign-in-form.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { LoginFrame } from './login-frame.tsx'

/** The sign-in with two fields, which leads to the requested page. */
export function LoginPage() {
  const { login } = useTexts()
  const { next, disabled } = useSearch({ strict: false }) as {
    readonly next?: string
    readonly disabled?: unknown
  }
  const navigate = useNavigate()
  const client = useQueryClient()
  const destination = next !== undefined && isConsolePath(next) ? next : '/'
  return (
    <LoginFrame title={login.title}>
      {disabled !== undefined && <ErrorAlert text={login.disabled} />}
      <SignInForm
        onSubmit={async (credentials) => {
          await signIn(credentials)
          client.clear()
          await client.fetchQuery(appShellQuery)
          await navigate({ href: destination })
        }}
      />
      <ProviderLinks next={destination} />
    </LoginFrame>
  )
}
