import { useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { appShellQuery, signIn } from '../../api/account.ts'
import { LanguageChoice } from '../../components/language-choice.tsx'
import { isConsolePath } from '../../components/console-path.ts'
import { ErrorAlert } from '../../components/error-alert.tsx'
import { SignInForm } from '../../components/sign-in-form.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ProviderLinks } from './provider-links.tsx'
import classes from './login-page.module.css'

/** The sign-in with two fields, which leads to the requested page. */
export function LoginPage() {
  const { login, product } = useTexts()
  const { next, disabled } = useSearch({ strict: false }) as {
    readonly next?: string
    readonly disabled?: unknown
  }
  const navigate = useNavigate()
  const client = useQueryClient()
  const destination = next !== undefined && isConsolePath(next) ? next : '/'
  useEffect(() => {
    document.title = `${login.title} – ${product}`
  }, [login.title, product])
  return (
    <main className={classes['page']}>
      <div className={classes['form']}>
        <p className={classes['product']}>
          <strong>{product}</strong>
          <span>{login.tagline}</span>
        </p>
        <h1>{login.title}</h1>
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
        <LanguageChoice />
      </div>
    </main>
  )
}
