import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { userVersion } from '../../domain/object-version.ts'
import { isLimited } from '../../domain/operator-terms.ts'
import type { Group } from '../../domain/records/group.ts'
import { type ManagedUser, USER, type User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import type { Settings } from '../../domain/settings.ts'
import { answersOf } from '../answers.ts'
import { termSchema, type TermsObject, termsObject, termsObjects, type TermsOwner } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'

const asHolder = answersOf(USER.fields, 'holder')

/** A profile in responses, with exactly these fields. `docs/api.md: User profile`. */
export const profileSchema = z.object({
  ...asHolder.schema.shape,
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

/** The terms of a user. Only operators give terms to users. */
export function userTerms({ id, budget, rateLimit }: User): TermsOwner {
  const isByOperator = budget !== undefined || isLimited(rateLimit)
  return { owner: `u:${id}`, budget, rateLimit, isByOperator }
}

/** Converts a stored profile whose terms have been read. */
export function profileWithTerms(profile: ManagedUser, terms: TermsObject): ProfileObject {
  return {
    ...asHolder.answer(profile),
    ...terms,
    has_password: profile.has_password,
    permissions: PERMISSIONS[profile.role],
  }
}

/** Groups by name, with their price ratios. */
export const groupsSchema = z.record(z.string(), z.object({ ratio: z.number(), desc: z.string() }))

/** The groups that a token of this user may name: open ones, and the user's own. */
export function usableGroups({ groups }: Settings, user: User): Group[] {
  return [...groups.values()].filter(({ name, open }) => open || name === user.group)
}

/** The usable groups in responses. */
export function usableGroupsObject(settings: Settings, user: User): z.output<typeof groupsSchema> {
  return Object.fromEntries(
    usableGroups(settings, user).map(({ name, ratio }) => [
      name,
      { ratio: Number(decimalText(ratio)), desc: name },
    ]),
  )
}

const asAdmin = answersOf(USER.fields, 'admin')

/**
 * A user in responses to administrators: the profile, and fields that the user does not see. `docs/api.md:
 * Users`.
 */
export const managedUserSchema = profileSchema
  .omit({ has_password: true })
  .extend({ ...asAdmin.schema.shape, version: z.string() })

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
    return { ...profile, ...asAdmin.answer(user), version: userVersion(user) }
  })
}
