import { useSyncExternalStore } from 'react'

/** The languages of the console, by language tag. */
export const LANGUAGES = { en: 'English', zh: '简体中文' } as const

/** A language of the console. */
export type Language = keyof typeof LANGUAGES

/** A chosen colour scheme. */
export type ThemeChoice = 'system' | 'light' | 'dark'

/** The settings of the console that are stored in this browser. */
export interface Preferences {
  readonly theme: ThemeChoice
  readonly language: Language
  /** An IANA time zone. */
  readonly timeZone: string
  /** Whether single letters are shortcuts (WCAG 2.1.4). */
  readonly hasLetterShortcuts: boolean
  /** The columns of calls that are hidden. */
  readonly hiddenColumns: readonly string[]
  /** Whether the navigation only shows icons. */
  readonly isRailFolded: boolean
  /** Whether the setup is complete, so that the start page no longer leads to it. */
  readonly isSetUp: boolean
}

const THEMES: ReadonlySet<string> = new Set(['system', 'light', 'dark'])
const listeners = new Set<() => void>()
let current = read()

addEventListener('storage', refresh)

/** The preferences. The component is rendered again when they change, also in another tab. */
export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, preferences)
}

/** The current preferences. */
export function preferences(): Preferences {
  return current
}

/** Changes preferences, and stores them in this browser. */
export function setPreferences(changes: Partial<Preferences>): void {
  const { theme, language, timeZone, hasLetterShortcuts, hiddenColumns, isRailFolded, isSetUp } = changes
  if (theme !== undefined) keep('theme', theme === 'system' ? undefined : theme)
  if (language !== undefined) keep('language', language)
  if (timeZone !== undefined) keep('zone', timeZone === browserZone() ? undefined : timeZone)
  if (hasLetterShortcuts !== undefined) keep('shortcuts', hasLetterShortcuts ? undefined : 'off')
  if (hiddenColumns !== undefined) keep('columns', hiddenColumns.join(',') || undefined)
  if (isRailFolded !== undefined) keep('rail', isRailFolded ? 'folded' : undefined)
  if (isSetUp !== undefined) keep('setup', isSetUp ? 'done' : undefined)
  refresh()
}

/** The time zone of this browser. */
export function browserZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function refresh(): void {
  current = read()
  for (const listener of listeners) listener()
}

function keep(key: string, value: string | undefined): void {
  if (value === undefined) localStorage.removeItem(key)
  else localStorage.setItem(key, value)
}

function read(): Preferences {
  const theme = localStorage.getItem('theme') ?? ''
  const zone = localStorage.getItem('zone')
  return {
    theme: THEMES.has(theme) ? (theme as ThemeChoice) : 'system',
    language: languageOf([localStorage.getItem('language') ?? '', ...navigator.languages]),
    timeZone: zone !== null && isZone(zone) ? zone : browserZone(),
    hasLetterShortcuts: localStorage.getItem('shortcuts') !== 'off',
    hiddenColumns: localStorage.getItem('columns')?.split(',') ?? [],
    isRailFolded: localStorage.getItem('rail') === 'folded',
    isSetUp: localStorage.getItem('setup') === 'done',
  }
}

function languageOf(tags: readonly string[]): Language {
  const known = tags.map((tag) => tag.split('-')[0]?.toLowerCase() ?? '').find((tag) => tag in LANGUAGES)
  return (known as Language | undefined) ?? 'en'
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
