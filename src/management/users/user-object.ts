import { z } from 'zod'
import { characterCount } from '../../domain/text-length.ts'
import { decimalText } from '../../domain/decimal.ts'
import { userVersion } from '../../domain/object-version.ts'
import { hasRateLimit } from '../../domain/usage-limits.ts'
import type { Group } from '../../domain/records/group.ts'
import { fieldsWith, type Values } from '../../domain/records/record.ts'
import { CALLING_USER_RECORD, type ManagedUser, USER, type User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import type { Settings } from '../../domain/settings.ts'
import { parseVendorRoutes } from '../../domain/vendor-routes.ts'
import { GatewayError } from '../../errors.ts'
import {
  budgetUses,
  usageLimitSchema,
  type UsageLimitsObject,
  usageLimitsObject,
  usageLimitsObjects,
  usageLimitsWithUse,
  type LimitedOwner,
} from '../usage-limits.ts'
import { idText, textField } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { declareResponse } from '../record-schemas.ts'
import { budgetsOf, remainingSpendOf, remainingSchema } from '../remaining-spend.ts'

const MINUTE_S = 60

const asHolder = declareResponse(USER.fields, 'holder')

/** A user's profile as responses show it, with exactly these fields. `docs/api.md: User profile`. */
export const profileSchema = z.object({
  ...asHolder.schema.shape,
  ...usageLimitSchema,
  has_password: z.boolean(),
  permissions: z.object({
    sidebar_settings: z.boolean(),
    sidebar_modules: z.record(z.string(), z.unknown()),
  }),
})

/** A user's profile as responses show it. */
type ProfileObject = z.output<typeof profileSchema>

/** What each role may do in the console. */
const PERMISSIONS: Record<Role, z.output<typeof profileSchema>['permissions']> = {
  [Role.user]: { sidebar_settings: true, sidebar_modules: { admin: false } },
  [Role.admin]: { sidebar_settings: true, sidebar_modules: { admin: { setting: false } } },
  [Role.root]: { sidebar_settings: false, sidebar_modules: {} },
}

/** Converts a stored user to a profile. */
export async function profileObject(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  profile: ManagedUser,
): Promise<ProfileObject> {
  return profileWithLimits(profile, await usageLimitsObject(store, limitsOfUser(profile), nowMs()))
}

/** The limits of a user, which only operators can set. */
export function limitsOfUser({ id, budget, rateLimit }: User): LimitedOwner {
  const isByOperator = budget !== undefined || hasRateLimit(rateLimit)
  return { owner: `u:${id}`, budget, rateLimit, isByOperator }
}

/** Converts a stored user whose limits have been read to a profile. */
function profileWithLimits(profile: ManagedUser, limits: UsageLimitsObject): ProfileObject {
  return {
    ...asHolder.answer(profile),
    ...limits,
    has_password: profile.has_password,
    permissions: PERMISSIONS[profile.role],
  }
}

/** Groups by name, with their price ratios and descriptions. */
export const groupsSchema = z.record(z.string(), z.object({ ratio: z.number(), desc: z.string() }))

/** The groups that an API key of this user may use: groups that are open to all users, and the user's own. */
export function usableGroups({ groups }: Settings, user: User): Group[] {
  return [...groups.values()].filter(({ name, open }) => open || name === user.group)
}

/** The groups that a user may use, as responses show them. */
export function usableGroupsObject(settings: Settings, user: User): z.output<typeof groupsSchema> {
  return Object.fromEntries(
    usableGroups(settings, user).map(({ name, ratio }) => [
      name,
      { ratio: Number(decimalText(ratio)), desc: name },
    ]),
  )
}

const asAdmin = declareResponse(USER.fields, 'admin')

/**
 * A user as administrators see it: the profile, and fields that the user does not see. `docs/api.md: Users`.
 */
export const managedUserSchema = profileSchema.omit({ has_password: true }).extend({
  ...asAdmin.schema.shape,
  ...remainingSchema,
  last_active: z
    .int()
    .describe('the last settled call or request with a session, to the minute; 0 for never'),
  version: z.string(),
})

/** A user as administrators see it. */
export type ManagedUserObject = z.output<typeof managedUserSchema>

/** Converts a stored user to the form in which administrators see it. */
export async function managedUserObject(
  services: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  user: ManagedUser,
): Promise<ManagedUserObject> {
  const [object] = await managedUserObjects(services, [user])
  return object as ManagedUserObject
}

/** Converts stored users to the form in which administrators see them. */
export async function managedUserObjects(
  services: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  users: readonly ManagedUser[],
): Promise<ManagedUserObject[]> {
  const settings = services.settings()
  const budgets = users.flatMap((user) => Object.values(budgetsOf(settings, user)))
  const distinct = new Map(budgets.map((owned) => [owned.owner, owned]))
  const uses = await budgetUses(services.store, [...distinct.values()], services.nowMs())
  const active = await services.store.read('lastActive', { userIds: users.map(({ id }) => id) })
  return users.map((user) => {
    const times = active.filter(({ userId }) => userId === user.id).map(({ at }) => at)
    const { has_password: _, ...profile } = profileWithLimits(
      user,
      usageLimitsWithUse(limitsOfUser(user), uses),
    )
    return {
      ...profile,
      ...asAdmin.answer(user),
      ...remainingSpendOf(settings, uses, user),
      last_active: Math.floor(Math.max(0, ...times) / MINUTE_S) * MINUTE_S,
      version: userVersion(user),
    }
  })
}

const asCaller = declareResponse(CALLING_USER_RECORD.fields, 'holder')

/** A user in the results of commands: the fields of the profile. `docs/api.md: User profile`. */
export type UserObject = Values<typeof CALLING_USER_RECORD.fields> & UsageLimitsObject

/** Converts a stored user for the result of a command. */
export async function userObject(
  services: Pick<ManagementServices, 'store' | 'nowMs'>,
  user: User,
): Promise<UserObject> {
  const [object] = await userObjects(services, [user])
  return object as UserObject
}

/** Converts stored users for the result of a command. */
export async function userObjects(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  users: readonly User[],
): Promise<UserObject[]> {
  const limits = await usageLimitsObjects(store, users.map(limitsOfUser), nowMs())
  return users.map((user, index) => ({
    ...asCaller.answer(user),
    ...(limits[index] as UsageLimitsObject),
  }))
}

/** The fields that users may change about themselves. */
export const OWN_PROFILE_FIELDS = fieldsWith(USER.fields, 'edit', 'holder')

const PASSWORD = 'expected a text of 8 to 128 characters'

/** A new password: 8 to 128 characters, as people see them. */
export const passwordField = textField(PASSWORD).refine(
  (text) => {
    if (!text.isWellFormed()) return false
    const count = characterCount(text)
    return count >= 8 && count <= 128
  },
  { error: PASSWORD },
)

/** The password that a user enters to log in, before it is checked. */
export const passwordToCheckField = textField('expected a password')

const KEEP = 'expected true or false'

/** Whether the access token stays valid when the password changes. */
export const keepAccessTokensOption = z.boolean({ error: KEEP })

const EMAIL = 'expected an e-mail address, or an empty text'

/** An e-mail address; empty for none. */
export const emailField = z.union([z.literal(''), z.email({ error: EMAIL }).max(254, { error: EMAIL })], {
  error: EMAIL,
})

const USER_ID = 'expected the id of a user'

/** The id of a user in JSON. */
export const userIdField = z.int({ error: USER_ID }).positive({ error: USER_ID })

/** The id of a user in a path, as digits. */
export const userIdText = idText(USER_ID)

/**
 * Throws if the configuration does not declare a group; the message begins with `field`, the name of the
 * input field.
 */
export function requireGroup(settings: Settings, group: string, field = 'group'): void {
  if (settings.groups.has(group)) return
  throw new GatewayError('invalid_request', `${field}: there is no group "${group}" in the configuration`)
}

/** Throws if one of these guards does not exist. */
export function requireGuards(settings: Settings, guards: readonly string[] | undefined): void {
  const unknown = guards?.find((name) => settings.guards.every((guard) => guard.name !== name))
  if (unknown === undefined) return
  throw new GatewayError('invalid_request', `guards: there is no guard "${unknown}"`)
}

/** Throws if one of these MCP toolsets does not exist. */
export function requireToolsets({ mcp }: Settings, toolsets: readonly string[] | undefined): void {
  const unknown = toolsets?.find((name) => mcp.toolsets.every((one) => one.name !== name))
  if (unknown === undefined) return
  throw new GatewayError('invalid_request', `toolsets: there is no toolset "${unknown}"`)
}

/**
 * Throws if the group or the routes of an API key (token) name a group that this user may not use. `teamGroup` is the group
 * that the key was imported with.
 */
export function requireGroups(
  settings: Settings,
  user: User,
  { group, vendor_routes }: { readonly group?: string; readonly vendor_routes?: string },
  teamGroup = '',
): void {
  if (group && group !== teamGroup) requireTokenGroup(settings, user, group)
  for (const named of parseVendorRoutes(vendor_routes ?? '')?.values() ?? [])
    requireTokenGroup(settings, user, named, 'vendor_routes')
}

// Throws if the group does not exist, or is closed and not the user's own.
function requireTokenGroup(settings: Settings, user: User, group: string, field = 'group'): void {
  requireGroup(settings, group, field)
  if (group === user.group || settings.groups.get(group)?.open) return
  throw new GatewayError(
    'invalid_request',
    `${field}: "${group}" is closed, and not the group of the user "${user.username}"`,
  )
}
