import type { Values } from '../../domain/records/record.ts'
import { CALLING_USER, type User } from '../../domain/records/user.ts'
import { answersOf } from '../answers.ts'
import { type TermsObject, termsObjects } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { userTerms } from './profile-object.ts'

const asCaller = answersOf(CALLING_USER.fields, 'holder')

/** A user in results of operations: fields of the profile. `docs/api.md: User profile`. */
export type UserObject = Values<typeof CALLING_USER.fields> & TermsObject

/** Converts a stored user. */
export async function userObject(
  parts: Pick<ManagementParts, 'store' | 'nowMs'>,
  user: User,
): Promise<UserObject> {
  const [object] = await userObjects(parts, [user])
  return object as UserObject
}

/** Converts stored users. */
export async function userObjects(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  users: readonly User[],
): Promise<UserObject[]> {
  const terms = await termsObjects(store, users.map(userTerms), nowMs())
  return users.map((user, index) => ({
    ...asCaller.answer(user),
    ...(terms[index] as TermsObject),
  }))
}
