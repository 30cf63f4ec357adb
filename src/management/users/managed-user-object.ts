import { z } from 'zod'
import { userVersion } from '../../domain/object-version.ts'
import { type ManagedUser, USER } from '../../domain/records/user.ts'
import { answersOf } from '../answers.ts'
import { type TermsObject, termsObjects } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { profileSchema, profileWithTerms, userTerms } from './profile-object.ts'

const all = answersOf(USER.fields, 'admin')

/**
 * A user in responses to administrators: the profile, and fields that the user does not see. `docs/api.md:
 * Users`.
 */
export const managedUserSchema = profileSchema
  .omit({ has_password: true })
  .extend({ ...all.schema.shape, version: z.string() })

/** A user in responses to administrators. */
export type ManagedUserObject = z.output<typeof managedUserSchema>

/** Converts a stored user for an administrator. */
export async function managedUserObject(
  parts: Pick<ManagementParts, 'store' | 'nowMs'>,
  user: ManagedUser,
): Promise<ManagedUserObject> {
  const [object] = await managedUserObjects(parts, [user])
  return object as ManagedUserObject
}

/** Converts stored users for an administrator. */
export async function managedUserObjects(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  users: readonly ManagedUser[],
): Promise<ManagedUserObject[]> {
  const terms = await termsObjects(store, users.map(userTerms), nowMs())
  return users.map((user, index) => {
    const { has_password: _, ...profile } = profileWithTerms(user, terms[index] as TermsObject)
    return { ...profile, ...all.answer(user), version: userVersion(user) }
  })
}
