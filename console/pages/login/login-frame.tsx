import { type ReactNode, useEffect } from 'react'
import { LanguageChoice } from '../../components/language-choice.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './login-page.module.css'

/** The page around a form for a person who is not signed in. */
export function LoginFrame({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  const { login, product } = useTexts()
  useEffect(() => {
    document.title = `${title} – ${product}`
  }, [title, product])
  return (
    <main className={classes['page']}>
      <div className={classes['form']}>
        <p className={classes['product']}>
          <strong>{product}</strong>
          <span>{login.tagline}</span>
        </p>
        <h1>{title}</h1>
        {children}
        <LanguageChoice />
      </div>
    </main>
  )
}
