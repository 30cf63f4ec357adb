import { z } from 'zod'
import type { User } from '../../domain/records/user.ts'
import type { ManagementParts } from '../parts.ts'

/** Identities of a user; times are Unix seconds. `docs/api.md: Linked identities`. */
export const identitiesSchema = z.array(
  z.object({
    issuer: z.string(),
    subject: z.string(),
    provider: z.string().describe('Name of the provider; empty where it is no longer configured'),
    created_time: z.int(),
  }),
)

/** The identities of a user, the oldest first. */
export async function ownIdentities(
  { store, settings }: Pick<ManagementParts, 'store' | 'settings'>,
  { id }: User,
): Promise<z.output<typeof identitiesSchema>> {
  const names = new Map(settings().login.oidc.map(({ issuer, name }) => [issuer, name]))
  const identities = await store.read('identitiesOf', id)
  return identities.map(({ issuer, subject, created_time }) => ({
    issuer,
    subject,
    provider: names.get(issuer) ?? '',
    created_time,
  }))
}
