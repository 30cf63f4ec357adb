import type { User } from '../../domain/records/user.ts'
import { type TermsObject, termsObjects } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { userTerms } from './profile-object.ts'

/** A user in results of operations: fields of the profile. `docs/api.md: User profile`. */
export interface UserObject extends TermsObject {
  readonly id: number
  readonly username: string
  /** 1 common user, 10 admin, 100 root. */
  readonly role: number
  /** 1 enabled, 2 disabled. */
  readonly status: number
  readonly group: string
  /** The balance in quota units. */
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
}

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
    id: user.id,
    username: user.username,
    role: user.role,
    status: user.status,
    group: user.group,
    quota: user.quota,
    used_quota: user.used_quota,
    request_count: user.request_count,
    ...(terms[index] as TermsObject),
  }))
}
