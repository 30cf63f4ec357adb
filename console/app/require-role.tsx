import { Outlet } from '@tanstack/react-router'
import { Role } from '../../src/domain/role.ts'
import { Gone } from '../components/gone.tsx'
import { useSignedIn } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'

/**
 * Shows the pages below to users with at least this role. Other users see a message who may open the page,
 * and the page sends no request.
 */
export function RequireRole({ role }: { readonly role: number }) {
  const { errors, common } = useTexts()
  const { profile } = useSignedIn()
  if (profile.role >= role) return <Outlet />
  const text = role === Role.root ? errors.rootOnly : errors.administratorsOnly
  return <Gone text={text} to="/" label={common.toStart} />
}
