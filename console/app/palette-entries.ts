import {
  type Icon,
  IconKeyboard,
  IconLanguage,
  IconListCheck,
  IconListDetails,
  IconMoon,
  IconPlus,
  IconSun,
  IconUserCircle,
} from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { LANGUAGES, setPreferences } from '../components/preferences.ts'
import { useSignedIn } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { pagesOf, titleOf } from './pages.ts'

/** A page or an action in the palette. */
interface PaletteEntry {
  readonly label: string
  /** Further words by which the entry is found. */
  readonly words: string
  readonly icon: Icon
  readonly run: () => void
}

/** The id of a call. */
const CALL_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The pages and actions for this role that match the typed text. */
export function usePaletteEntries(text: string, onHelp: () => void): readonly PaletteEntry[] {
  const texts = useTexts()
  const { palette, keys, channels, account, shell, shortcuts } = texts
  const { profile, isAdmin, isRoot } = useSignedIn()
  const navigate = useNavigate()
  const wanted = text.trim().toLowerCase()
  const go = (to: string) => (): void => void navigate({ href: to })
  if (CALL_ID.test(wanted))
    return [{ label: palette.callById(wanted), words: '', icon: IconListDetails, run: go(`/logs/${wanted}`) }]
  const entries: PaletteEntry[] = [
    ...pagesOf(profile.role).map(({ name, path, icon }) => ({
      label: titleOf(name, texts),
      words: palette.words[name],
      icon,
      run: go(path),
    })),
    { label: account.title, words: palette.words.account, icon: IconUserCircle, run: go('/account') },
    ...(isRoot ? [{ label: texts.setup.title, words: '', icon: IconListCheck, run: go('/setup') }] : []),
    { label: keys.create, words: palette.words.keys, icon: IconPlus, run: go('/keys?new=1') },
    ...(isAdmin
      ? [{ label: channels.add, words: palette.words.channels, icon: IconPlus, run: go('/channels/new') }]
      : []),
    ...(['light', 'dark'] as const).map((theme) => ({
      label: `${shell.theme}: ${shell.themes[theme]}`,
      words: '',
      icon: theme === 'light' ? IconSun : IconMoon,
      run: () => setPreferences({ theme }),
    })),
    ...(['en', 'zh'] as const).map((language) => ({
      label: `${shell.language}: ${LANGUAGES[language]}`,
      words: 'language 语言',
      icon: IconLanguage,
      run: () => setPreferences({ language }),
    })),
    { label: shortcuts.title, words: '', icon: IconKeyboard, run: onHelp },
  ]
  return entries.filter(({ label, words }) => `${label} ${words}`.toLowerCase().includes(wanted))
}
