import { UnstyledButton } from '@mantine/core'
import { type Language, LANGUAGES, setPreferences, usePreferences } from './preferences.ts'
import classes from './language-choice.module.css'

/** The languages side by side, each with its own name. */
export function LanguageChoice() {
  const { language } = usePreferences()
  return (
    <div className={classes['choice']}>
      {(Object.entries(LANGUAGES) as [Language, string][]).map(([choice, label]) => (
        <UnstyledButton
          key={choice}
          lang={choice}
          aria-pressed={choice === language}
          onClick={() => setPreferences({ language: choice })}
        >
          {label}
        </UnstyledButton>
      ))}
    </div>
  )
}
