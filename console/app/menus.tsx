import { ActionIcon, Menu, UnstyledButton } from '@mantine/core'
import { IconCheck, IconLanguage, IconLogout, IconMoon, IconSun, IconUserCircle } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { signOut } from '../api/account.ts'
import {
  type Language,
  LANGUAGES,
  setPreferences,
  type ThemeChoice,
  usePreferences,
} from '../components/preferences.ts'
import { leaveAfterSignOut } from '../components/session-recovery.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './navigation-rail.module.css'
import { queryClient } from './query-client.ts'

/** The menu of the account: its name, its page and the sign-out. */
export function AccountMenu() {
  const { shell, account } = useTexts()
  const { profile } = useSignedInAccount()
  const navigate = useNavigate()
  const name = profile.display_name || profile.username
  const leave = async (): Promise<void> => {
    const elsewhere = await signOut()
    leaveAfterSignOut()
    queryClient.clear()
    if (elsewhere === undefined) await navigate({ to: '/login' })
    else location.assign(elsewhere)
  }
  return (
    <Menu position="top-start" width={200}>
      <Menu.Target>
        <UnstyledButton className={classes['account']} aria-label={shell.accountMenu} title={name}>
          <IconUserCircle size={18} stroke={1.6} aria-hidden />
          <span>{name}</span>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<IconUserCircle size={16} />}
          onClick={() => void navigate({ to: '/account' })}
        >
          {account.title}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void leave()}>
          {shell.signOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

/** The choice of the colour scheme. */
export function ThemeMenu() {
  const { shell } = useTexts()
  const { theme } = usePreferences()
  return (
    <ChoiceMenu
      label={shell.theme}
      icon={theme === 'dark' ? <IconMoon size={18} stroke={1.6} /> : <IconSun size={18} stroke={1.6} />}
      choices={Object.entries(shell.themes) as [ThemeChoice, string][]}
      chosen={theme}
      onChoose={(choice) => setPreferences({ theme: choice })}
    />
  )
}

/** The choice of the language. */
export function LanguageMenu() {
  const { shell } = useTexts()
  const { language } = usePreferences()
  return (
    <ChoiceMenu
      label={shell.language}
      icon={<IconLanguage size={18} stroke={1.6} />}
      choices={Object.entries(LANGUAGES) as [Language, string][]}
      chosen={language}
      onChoose={(choice) => setPreferences({ language: choice })}
    />
  )
}

function ChoiceMenu<Value extends string>({
  label,
  icon,
  choices,
  chosen,
  onChoose,
}: {
  readonly label: string
  readonly icon: ReactNode
  /** Pairs of a value and its label. */
  readonly choices: readonly (readonly [Value, string])[]
  readonly chosen: Value
  readonly onChoose: (value: Value) => void
}) {
  return (
    <Menu position="top-end" width={160}>
      <Menu.Target>
        <ActionIcon aria-label={label}>{icon}</ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(([value, word]) => (
          <Menu.Item
            key={value}
            role="menuitemradio"
            aria-checked={value === chosen}
            rightSection={value === chosen ? <IconCheck size={16} /> : undefined}
            onClick={() => onChoose(value)}
          >
            {word}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
