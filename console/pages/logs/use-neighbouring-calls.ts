import { useNavigate } from '@tanstack/react-router'
import { useEffect, useMemo } from 'react'
import { usePreferences } from '../../components/preferences.ts'

/** Functions that open the call above and the call below in the list; undefined at the ends of the list. */
interface Neighbours {
  readonly previous: (() => void) | undefined
  readonly next: (() => void) | undefined
}

/** Moves from an open call to the previous or next call in the list, also with the keys `k` and `j`. */
export function useNeighbouringCalls(id: string | undefined, ids: readonly string[]): Neighbours {
  const navigate = useNavigate()
  const { hasLetterShortcuts } = usePreferences()
  const place = id === undefined ? -1 : ids.indexOf(id)
  const previous = place > 0 ? ids[place - 1] : undefined
  const next = place === -1 ? undefined : ids[place + 1]
  const neighbours = useMemo(() => {
    const wayTo = (to: string | undefined) =>
      to === undefined
        ? undefined
        : () =>
            void navigate({
              to: '/logs/$id',
              params: { id: to },
              search: (before: object) => before,
              resetScroll: false,
              replace: true,
            })
    return { previous: wayTo(previous), next: wayTo(next) }
  }, [navigate, previous, next])
  useEffect(() => {
    if (id === undefined || !hasLetterShortcuts) return undefined
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === 'j') neighbours.next?.()
      if (event.key === 'k') neighbours.previous?.()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [id, hasLetterShortcuts, neighbours])
  return neighbours
}
