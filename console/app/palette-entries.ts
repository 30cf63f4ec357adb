import { useDebouncedValue } from '@mantine/hooks'
import {
  type Icon,
  IconAdjustments,
  IconBox,
  IconDatabaseImport,
  IconKey,
  IconRoute,
  IconUsers,
  IconUsersGroup,
  IconKeyboard,
  IconLanguage,
  IconListCheck,
  IconListDetails,
  IconMoon,
  IconPlus,
  IconSun,
  IconUserCircle,
} from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FoundObject, findQuery } from '../api/find.ts'
import { LANGUAGES, setPreferences } from '../components/preferences.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { pagesForRole, pageTitle } from './pages.ts'
import { settingsSections } from '../pages/settings/settings-sections.ts'
import { COMMANDS, parseCommand } from './palette-commands.ts'
import { PALETTE_WORDS } from './palette-words.ts'

/** A page, an action or an object in the command palette. */
interface PaletteEntry {
  /** A second text, such as the owner of a key. */
  readonly detail?: string
  readonly label: string
  /** Further words by which a search finds the entry. */
  readonly words: string
  readonly icon: Icon
  readonly run: () => void
}

/** Minimum length of a text, in characters, for which objects are searched. */
const MIN_QUERY_LENGTH = 2
/** Milliseconds after the last typed letter until objects are searched. */
const PAUSE_MS = 150

const ICONS: Readonly<Record<FoundObject['kind'], Icon>> = {
  key: IconKey,
  model: IconBox,
  channel: IconRoute,
  user: IconUsers,
  group: IconUsersGroup,
  call: IconListDetails,
}

/**
 * The pages and actions for this role that match the typed text, and the objects that it finds. Until objects
 * are found, `isSearching` is true.
 */
export function usePaletteEntries(
  text: string,
  onHelp: () => void,
): { readonly entries: readonly PaletteEntry[]; readonly isSearching: boolean } {
  const texts = useTexts()
  const { palette, keys, channels, users, account, shell, shortcuts } = texts
  const { profile, isAdmin, isRoot } = useSignedInAccount()
  const navigate = useNavigate()
  const wanted = text.trim().toLowerCase()
  const go = (to: string) => (): void => void navigate({ href: to })
  const { objects, isSearching } = useFound(text, go)
  const entries: PaletteEntry[] = [
    ...pagesForRole(profile.role).map(({ name, path, icon }) => ({
      label: pageTitle(name, texts),
      words: PALETTE_WORDS[name],
      icon,
      run: go(path),
    })),
    { label: account.title, words: PALETTE_WORDS.account, icon: IconUserCircle, run: go('/account') },
    ...(isRoot
      ? [
          { label: texts.setup.title, words: PALETTE_WORDS.setup, icon: IconListCheck, run: go('/setup') },
          {
            label: texts.imports.link,
            words: PALETTE_WORDS.import,
            icon: IconDatabaseImport,
            run: go('/import'),
          },
          ...settingsSections(texts.settings).map(([id, title]) => ({
            label: palette.section(title),
            words: PALETTE_WORDS[`settings#${id}`],
            icon: IconAdjustments,
            run: go(`/settings#${id}`),
          })),
        ]
      : []),
    { label: keys.create, words: PALETTE_WORDS.createKey, icon: IconPlus, run: go('/keys?new=1') },
    ...(isAdmin
      ? [
          { label: channels.add, words: PALETTE_WORDS.addChannel, icon: IconPlus, run: go('/channels/new') },
          { label: users.add, words: PALETTE_WORDS.addUser, icon: IconPlus, run: go('/users?new=1') },
        ]
      : []),
    ...(['light', 'dark'] as const).map((theme) => ({
      label: `${shell.theme}: ${shell.themes[theme]}`,
      words: '',
      icon: theme === 'light' ? IconSun : IconMoon,
      run: () => setPreferences({ theme }),
    })),
    ...(['en', 'zh'] as const).map((language) => ({
      label: `${shell.language}: ${LANGUAGES[language]}`,
      words: PALETTE_WORDS.language,
      icon: IconLanguage,
      run: () => setPreferences({ language }),
    })),
    { label: shortcuts.title, words: '', icon: IconKeyboard, run: onHelp },
  ]
  const matching = entries.filter((entry) => textOf(entry).includes(wanted))
  // For "ann", a user of that name comes before "channels", which only contains these letters.
  const begins = (entry: PaletteEntry): boolean => textOf(entry).includes(` ${wanted}`)
  const rest = matching.filter((entry) => !begins(entry))
  return { entries: [...matching.filter(begins), ...objects, ...rest], isSearching }
}

function textOf({ label, words }: PaletteEntry): string {
  return ` ${label} ${words}`.toLowerCase()
}

/** The objects that the typed text finds, or a command applied to each of them. */
function useFound(
  text: string,
  go: (to: string) => () => void,
): { readonly objects: readonly PaletteEntry[]; readonly isSearching: boolean } {
  const texts = useTexts()
  const { palette } = texts
  const { profile, isAdmin, isRoot } = useSignedInAccount()
  const [settled] = useDebouncedValue(text.trim(), PAUSE_MS)
  const typed = isAdmin ? parseCommand(settled) : undefined
  const command = typed && (typed.word !== 'price' || isRoot) ? typed : undefined
  const query = command?.rest ?? settled
  const { data = [], isFetching } = useQuery({
    ...findQuery(profile.id, query),
    enabled: query.length >= MIN_QUERY_LENGTH,
  })
  // Results for an earlier text are hidden, because Enter would open them by mistake.
  if (settled !== text.trim()) return { objects: [], isSearching: text.trim().length >= MIN_QUERY_LENGTH }
  if (query.length < MIN_QUERY_LENGTH) return { objects: [], isSearching: false }
  if (!command)
    return {
      isSearching: isFetching,
      objects: data.map((found) => ({
        label: palette.found[found.kind](found.label),
        detail: found.detail,
        words: '',
        icon: ICONS[found.kind],
        run: go(found.path),
      })),
    }
  const { kind, icon, run } = COMMANDS[command.word]
  return {
    isSearching: isFetching,
    objects: data
      .filter((found) => found.kind === kind)
      .map((found) => ({
        label: palette.commands[command.word](found.label),
        words: '',
        icon,
        run: () => void run(found, texts, (path) => go(path)()),
      })),
  }
}
