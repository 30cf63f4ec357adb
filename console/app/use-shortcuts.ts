import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { usePreferences } from '../components/preferences.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { pagesForRole } from './pages.ts'

/** Maximum milliseconds between `g` and its letter. */
const SEQUENCE_MS = 1500
const TYPED_INTO = 'input, textarea, select, [contenteditable], [role="combobox"]'

/** The dialogs that shortcuts open. */
interface Dialogs {
  readonly openPalette: () => void
  readonly openHelp: () => void
}

/**
 * Handles the shortcuts of the keyboard. `data-` attributes mark the elements of a page that shortcuts use.
 */
export function useShortcuts({ openPalette, openHelp }: Dialogs): void {
  const navigate = useNavigate()
  const { profile } = useSignedInAccount()
  const { hasLetterShortcuts } = usePreferences()
  useEffect(() => {
    let goSince = Number.NEGATIVE_INFINITY
    const goTo = (letter: string): boolean => {
      const page = pagesForRole(profile.role).find((page) => page.letter === letter)
      if (page) void navigate({ to: page.path })
      return page !== undefined
    }
    const letter = (key: string): boolean => {
      const isSecond = performance.now() - goSince < SEQUENCE_MS
      goSince = key === 'g' ? performance.now() : Number.NEGATIVE_INFINITY
      if (isSecond) return goTo(key)
      if (key === '?') return openHelp(), true
      if (key === '/') return focusOn('[data-filter] input, input[data-filter]')
      if (key === 'n') return click('[data-new]')
      return (key === 'j' || key === 'k') && moveRow(key === 'j' ? 1 : -1)
    }
    const listen = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        return openPalette()
      }
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey
      if (!isPlain || !hasLetterShortcuts || isTyping(event.target)) return
      if (letter(event.key)) event.preventDefault()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [navigate, profile.role, hasLetterShortcuts, openPalette, openHelp])
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.closest(TYPED_INTO) !== null || document.querySelector('[role="dialog"]') !== null
}

function focusOn(selector: string): boolean {
  const found = document.querySelector<HTMLElement>(selector)
  found?.focus()
  return found !== null
}

function click(selector: string): boolean {
  const found = document.querySelector<HTMLElement>(selector)
  found?.click()
  return found !== null
}

/**
 * Moves the focus by `by` rows among the links in table rows; Enter then opens the row, like any link.
 * Returns false if there are no rows.
 */
function moveRow(by: number): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('main [data-row-link]')]
  if (links.length === 0) return false
  const at = links.indexOf(document.activeElement as HTMLElement)
  links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus()
  return true
}
