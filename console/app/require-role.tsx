import { Outlet } from '@tanstack/react-router'
import { Role } from '../../src/domain/role.ts'
import { ObjectNotFound } from '../components/object-not-found.tsx'
import { useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'

/**
 * Shows the pages nested in this route to users with at least this role. Other users see a message that says
 * who may open the page, and the page sends no request.
 */
export function RequireRole({ role }: { readonly role: number }) {
  const { errors, common } = useTexts()
  const { profile } = useSignedInAccount()
  if (profile.role >= role) return <Outlet />
  const text = role === Role.root ? errors.rootOnly : errors.administratorsOnly
  return <ObjectNotFound text={text} to="/" label={common.toStart} />
}
