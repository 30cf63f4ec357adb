import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

/** The query parameters of the page's URL, by name. */
export type SearchState = Readonly<Record<string, string | undefined>>

/**
 * Filters, page and opened item, which are stored in the page's URL so that the Back button restores them.
 */
export function useSearchState(): readonly [SearchState, (changes: SearchState) => void] {
  const search = useSearch({ strict: false }) as SearchState
  const navigate = useNavigate()
  const change = useCallback(
    (changes: SearchState) =>
      void navigate({
        to: '.',
        search: (before: SearchState) => ({ ...before, ...changes }) as never,
        resetScroll: false,
      }),
    [navigate],
  )
  return [search, change]
}
