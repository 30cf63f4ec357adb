import { Outlet } from '@tanstack/react-router'
import { Role } from '../../src/domain/role.ts'
import { PageHead } from '../components/page-head.tsx'
import { useSignedIn } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'

/**
 * Shows the pages below to users with at least this role. Others see who the page is for, and no request is
 * made.
 */
export function RequireRole({ role }: { readonly role: number }) {
  const { errors } = useTexts()
  const { profile } = useSignedIn()
  if (profile.role >= role) return <Outlet />
  return <PageHead title={role === Role.root ? errors.rootOnly : errors.administratorsOnly} />
}
