import { z } from 'zod'
import { isLimited } from '../../domain/operator-terms.ts'
import { type ManagedUser, USER, type User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { answersOf } from '../answers.ts'
import { termSchema, type TermsObject, termsObject, type TermsOwner } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'

const own = answersOf(USER.fields, 'holder')

/** A profile in responses, with exactly these fields. `docs/api.md: User profile`. */
export const profileSchema = z.object({
  ...own.schema.shape,
  ...termSchema,
  has_password: z.boolean(),
  permissions: z.object({
    sidebar_settings: z.boolean(),
    sidebar_modules: z.record(z.string(), z.unknown()),
  }),
})

/** A profile in responses. */
type ProfileObject = z.output<typeof profileSchema>

/** The permissions of each role in the console. */
const PERMISSIONS: Record<Role, z.output<typeof profileSchema>['permissions']> = {
  [Role.user]: { sidebar_settings: true, sidebar_modules: { admin: false } },
  [Role.admin]: { sidebar_settings: true, sidebar_modules: { admin: { setting: false } } },
  [Role.root]: { sidebar_settings: false, sidebar_modules: {} },
}

/** Converts a stored profile. */
export async function profileObject(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  profile: ManagedUser,
): Promise<ProfileObject> {
  return profileWithTerms(profile, await termsObject(store, userTerms(profile), nowMs()))
}

/** The owner of a user's budget. Only operators give users terms. */
export function userTerms({ id, budget, rateLimit }: User): TermsOwner {
  const isByOperator = budget !== undefined || isLimited(rateLimit)
  return { owner: `u:${id}`, budget, rateLimit, isByOperator }
}

/** Converts a stored profile whose terms are read. */
export function profileWithTerms(profile: ManagedUser, terms: TermsObject): ProfileObject {
  return {
    ...own.answer(profile),
    ...terms,
    has_password: profile.has_password,
    permissions: PERMISSIONS[profile.role],
  }
}
