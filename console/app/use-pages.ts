import { useQueries } from '@tanstack/react-query'
import { offeredQuery } from '../api/offered.ts'
import { useSignedIn } from '../parts/session.tsx'
import { type Page, PAGES } from './pages.ts'

/** The pages of this role that this gateway can fill. */
export function usePages(): readonly Page[] {
  const { profile } = useSignedIn()
  const allowed = PAGES.filter(({ role }) => profile.role >= role)
  const probed = allowed.filter(({ probe }) => probe !== undefined)
  const answers = useQueries({ queries: probed.map(({ probe = '' }) => offeredQuery(profile.id, probe)) })
  const offered = new Set(probed.filter((_, place) => answers[place]?.data === true))
  return allowed.filter((page) => page.probe === undefined || offered.has(page))
}
