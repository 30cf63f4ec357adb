import { ActionIcon, Menu, UnstyledButton } from '@mantine/core'
import { IconCheck, IconLanguage, IconLogout, IconMoon, IconSun, IconUserCircle } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { signOut } from '../api/account.ts'
import {
  type Language,
  LANGUAGES,
  setPreferences,
  type ThemeChoice,
  usePreferences,
} from '../parts/preferences.ts'
import { useSignedIn } from '../parts/session.tsx'
import { useTexts } from '../texts/use-texts.tsx'
import classes from './rail.module.css'
import { signedOut } from './session-recovery.ts'

/** The name of the account, its page and the way out. */
export function AccountMenu() {
  const { shell, account } = useTexts()
  const { profile } = useSignedIn()
  const navigate = useNavigate()
  const name = profile.display_name || profile.username
  const leave = async (): Promise<void> => {
    await signOut()
    signedOut()
    await navigate({ to: '/login' })
  }
  return (
    <Menu position="top-start" width={200}>
      <Menu.Target>
        <UnstyledButton className={classes['account']} aria-label={shell.accountMenu}>
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
  const choices = Object.entries(shell.themes) as [ThemeChoice, string][]
  return (
    <Menu position="top-end" width={160}>
      <Menu.Target>
        <ActionIcon aria-label={shell.theme}>
          {theme === 'dark' ? <IconMoon size={18} stroke={1.6} /> : <IconSun size={18} stroke={1.6} />}
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(([choice, label]) => (
          <Choice
            key={choice}
            label={label}
            isChosen={choice === theme}
            onChoose={() => setPreferences({ theme: choice })}
          />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

/** The choice of the language. */
export function LanguageMenu() {
  const { shell } = useTexts()
  const { language } = usePreferences()
  const choices = Object.entries(LANGUAGES) as [Language, string][]
  return (
    <Menu position="top-end" width={160}>
      <Menu.Target>
        <ActionIcon aria-label={shell.language}>
          <IconLanguage size={18} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(([choice, label]) => (
          <Choice
            key={choice}
            label={label}
            isChosen={choice === language}
            onChoose={() => setPreferences({ language: choice })}
          />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

function Choice({
  label,
  isChosen,
  onChoose,
}: {
  readonly label: string
  readonly isChosen: boolean
  readonly onChoose: () => void
}) {
  return (
    <Menu.Item
      role="menuitemradio"
      aria-checked={isChosen}
      rightSection={isChosen ? <IconCheck size={16} /> : undefined}
      onClick={onChoose}
    >
      {label}
    </Menu.Item>
  )
}
