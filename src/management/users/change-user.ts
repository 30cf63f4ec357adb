import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { userVersion } from '../../domain/object-version.ts'
import { type ManagedUser, USER, type User, USER_STATUS } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import { removeKeptOfUser } from '../../store/kept-of-deleted.ts'
import {
  type Actor,
  fairQueueKey,
  OPERATOR,
  requireAssignableRole,
  requireManageableUser,
  roleCeiling,
} from '../authority.ts'
import { keepsPartOfBudget, usageLimitChanges, usageLimitFields, usageLimitsObject } from '../usage-limits.ts'
import { versionField, addCurrentObject, repeatIfChanged } from '../expected-version.ts'
import { maxQuota, readInput, requireQuota, textField, userField, userInput } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { requestBodySchemas, storedFields, valueSchema } from '../record-schemas.ts'
import { deleteContentOfUser } from '../usage/call-content.ts'
import { findUser, userNotFound } from './list-users.ts'
import {
  emailField,
  keepAccessTokensOption,
  managedUserObject,
  OWN_PROFILE_FIELDS,
  passwordField,
  requireGroup,
  userIdField,
  type UserObject,
  userObject,
  limitsOfUser,
} from './user-object.ts'

/** Input with changes of a user; null counts as missing. */
export const changedUserInput = z.object(
  {
    id: userIdField,
    ...requestBodySchemas(USER.fields, 'change'),
    email: emailField.nullish(),
    password: passwordField.nullish(),
    keep_access_tokens: keepAccessTokensOption.nullish(),
    version: versionField.nullish(),
    ...usageLimitFields,
  },
  { error: 'expected an object with the id of a user and the fields to change' },
)

type UserChange = z.output<typeof changedUserInput>

/**
 * Fields that administrators may change about themselves. Others are accepted with their present value, and not written: by
 * then a charge may have changed it.
 */
const CHANGED_BY_SELF: ReadonlySet<string> = new Set([
  'id',
  ...Object.keys(OWN_PROFILE_FIELDS),
  'email',
  'remark',
  'keep_access_tokens',
  'version',
])

/**
 * Changes a user: either all of the given fields or none. A new quota replaces the current balance, and
 * running calls are charged to the new one. A new password ends the user's sessions; if the user had a
 * password before, it also revokes the access token.
 */
export function changeUser(services: ManagementServices, input: UserChange, by: Actor): Promise<ManagedUser> {
  return repeatIfChanged(input.version, () => changePresentUser(services, input, by))
}

async function changePresentUser(
  services: ManagementServices,
  given: UserChange,
  by: Actor,
): Promise<ManagedUser> {
  const { store, ledger, apiKeys, passwords, settings, nowMs } = services
  const { id: userId } = given
  const before = (await store.read('managedUser', { userId })) ?? userNotFound(userId)
  const isOwn = roleCeiling(by) !== undefined && userId === by.id
  if (!isOwn) requireManageableUser(by, before)
  const input = isOwn
    ? ownChanges({ ...before, ...(await usageLimitsObject(store, limitsOfUser(before), nowMs())) }, given)
    : given
  const { username, group, role, quota, password } = changesOf(before, input)
  if (role !== undefined) requireAssignableRole(by, role)
  if (group !== undefined) requireGroup(settings(), group)
  if (quota !== undefined) requireQuota('quota', quota, 0, settings())
  const { quota: _, ...stored } = storedFields(USER.fields, input)
  const change = {
    userId,
    version: input.version ?? (keepsPartOfBudget(input) ? userVersion(before) : undefined),
    fields: {
      ...stored,
      username,
      group,
      role,
      limits: usageLimitChanges(input, before.budget, settings()),
      passwordHash: password === undefined ? undefined : await passwords.hash(password, fairQueueKey(by)),
    },
    quota:
      quota === undefined
        ? undefined
        : { mode: 'override' as const, value: quota, maxQuota: maxQuota(settings()) },
    keepAccessTokens: input.keep_access_tokens ?? false,
    roleBelow: isOwn ? undefined : roleCeiling(by),
  }
  const user = await addCurrentObject(
    () => ledger.changeUser(change),
    async () => {
      const present = await store.read('managedUser', { userId })
      return present ? managedUserObject(services, present) : undefined
    },
  )
  apiKeys.forgetUser(userId)
  return user ?? userNotFound(userId)
}

/**
 * The fields of a change that need further checks. A field is undefined if it is not given or equals the
 * present value.
 */
function changesOf(before: ManagedUser, { username, group, role, quota, password }: UserChange) {
  return {
    username: username === before.username ? undefined : (username ?? undefined),
    group: group === before.group ? undefined : (group ?? undefined),
    role: role === before.role ? undefined : (role ?? undefined),
    quota: quota ?? undefined,
    password: password ?? undefined,
  }
}

/** The fields that administrators may change about themselves. Throws if another one differs from the present value. */
function ownChanges(now: Readonly<Record<string, unknown>>, given: UserChange): UserChange {
  const changes: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(given)) {
    if (CHANGED_BY_SELF.has(field)) changes[field] = value
    else if (value !== null && value !== undefined && value !== now[field])
      throw new GatewayError(
        'role_too_low',
        `${field}: only a user with a higher role may change this for you`,
      )
  }
  return changes as UserChange
}

const TOP_UP_INPUT = z.object(
  {
    user: userField,
    amount: z.int({ error: 'expected a whole number of quota units' }),
  },
  { error: 'expected an object that names a user and an amount' },
)

/** Adds quota units to a user's balance. They can be spent as soon as this resolves. */
export async function topUpUser(
  services: ManagementServices,
  given: z.input<typeof TOP_UP_INPUT>,
): Promise<UserObject> {
  const { store, ledger, settings } = services
  const { user: idOrName, amount } = readInput(TOP_UP_INPUT, given)
  requireQuota('amount', amount, 1, settings())
  const { id } = await findUser(store, idOrName)
  const quota = { mode: 'add', value: amount, maxQuota: maxQuota(settings()) } as const
  return userObject(services, (await ledger.changeUser({ userId: id, quota })) ?? userNotFound(idOrName))
}

const { budget, budget_period } = usageLimitFields

const BUDGET_INPUT = z.object(
  { user: userField, budget, budget_period, unlimited_quota: z.boolean().optional() },
  { error: 'expected an object that names a user, a budget or whether the quota is unlimited' },
)

/**
 * Sets a user's budget, and whether budgets alone limit the user, from now on. If only the amount or only the period is given, the other stays; 0
 * removes both. If gateway.yaml declares a budget, that is restored when the file is next read.
 */
export async function setUserBudget(
  services: ManagementServices,
  given: z.input<typeof BUDGET_INPUT>,
): Promise<UserObject> {
  const { user: idOrName, ...fields } = readInput(BUDGET_INPUT, given)
  const { id } = await findUser(services.store, idOrName)
  return userObject(services, await changeUser(services, { id, ...fields }, OPERATOR))
}

const ACTIONS = ['disable', 'enable', 'delete', 'promote', 'demote', 'add_quota'] as const
const MODES = ['add', 'subtract', 'override'] as const

/** Input with an action on a user, who is named by id or username. */
export const manageUserInput = z
  .object(
    {
      id: userIdField.nullish(),
      username: textField('expected the name of a user').nullish(),
      action: z.enum(ACTIONS, { error: `expected one of ${ACTIONS.join(', ')}` }),
      value: valueSchema(USER.fields.quota.type).nullish(),
      mode: z.enum(MODES, { error: `expected one of ${MODES.join(', ')}` }).default('add'),
    },
    { error: 'expected an object that names a user and an action' },
  )
  .refine(({ id, username }) => (id ?? username ?? '') !== '', {
    error: 'id: expected the id of a user, or its username',
  })

type UserAction = z.output<typeof manageUserInput>

/** Carries out an action on a user. Resolves to the changed user, or to undefined after a deletion. */
export async function manageUser(
  services: ManagementServices,
  input: UserAction,
  by: Actor,
): Promise<ManagedUser | undefined> {
  const found = await findUser(services.store, input.id ?? input.username ?? '')
  requireManageableUser(by, found)
  const userId = found.id
  if ((input.username ?? found.username) !== found.username)
    throw new GatewayError('invalid_request', `username: expected the name of the user ${userId}, or none`)
  switch (input.action) {
    case 'disable':
      return setStatus(services, userId, USER_STATUS.disabled, by)
    case 'enable':
      return setStatus(services, userId, USER_STATUS.enabled, by)
    case 'delete':
      return deleteUser(services, userId, by)
    case 'promote':
      return setRole(services, found, Role.admin, by)
    case 'demote':
      return setRole(services, found, Role.user, by)
    case 'add_quota':
      return changeQuota(services, userId, input, by)
  }
}

/** Makes a common user an administrator, or the reverse. */
async function setRole(
  { ledger, apiKeys }: ManagementServices,
  { id: userId, username, role: before }: { id: number; username: string; role: Role },
  role: typeof Role.user | typeof Role.admin,
  by: Actor,
): Promise<ManagedUser> {
  requireAssignableRole(by, role)
  if (role > Role.user ? before >= role : before === role) {
    throw new GatewayError('invalid_request', `the user "${username}" has the role ${before} already`)
  }
  const user = await ledger.changeUser({ userId, fields: { role }, roleBelow: roleCeiling(by) })
  apiKeys.forgetUser(userId)
  return user ?? userNotFound(userId)
}

async function changeQuota(
  { ledger, settings }: ManagementServices,
  userId: number,
  { value, mode }: UserAction,
  by: Actor,
): Promise<ManagedUser> {
  if (value === null || value === undefined) {
    throw new GatewayError('invalid_request', 'value: expected a whole number of quota units')
  }
  requireQuota('value', value, mode === 'override' ? 0 : 1, settings())
  const quota = { mode, value, maxQuota: maxQuota(settings()) }
  return (await ledger.changeUser({ userId, quota, roleBelow: roleCeiling(by) })) ?? userNotFound(userId)
}

/** Disables a user. The user's keys are refused from now on; running calls continue. */
export async function disableUser(
  services: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(services.store, readInput(userInput, given).user)
  return userObject(services, await setStatus(services, id, USER_STATUS.disabled, OPERATOR))
}

export async function enableUser(
  services: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(services.store, readInput(userInput, given).user)
  return userObject(services, await setStatus(services, id, USER_STATUS.enabled, OPERATOR))
}

/** Sets a user's status. If gateway.yaml declares a status, that is restored when the file is next read. */
async function setStatus(
  { ledger, apiKeys }: ManagementServices,
  userId: number,
  status: User['status'],
  by: Actor,
): Promise<ManagedUser> {
  const user = await ledger.changeUser({ userId, fields: { status }, roleBelow: roleCeiling(by) })
  apiKeys.forgetUser(userId)
  return user ?? userNotFound(userId)
}

/**
 * Marks a user as deleted. The user's keys, access token and sessions are refused from now on; running calls
 * continue. The usage log and charges are kept, but the content of the user's calls is deleted.
 */
export async function deleteUser(
  services: ManagementServices,
  userId: number,
  by: Actor,
): Promise<undefined> {
  const { store, apiKeys, nowMs } = services
  const deleted_time = Math.floor(nowMs() / 1000)
  const user = await store.read('userById', userId)
  const isGone = await store.write('deleteUser', { userId, deleted_time, roleBelow: roleCeiling(by) })
  if (!isGone) userNotFound(userId)
  apiKeys.forgetUser(userId)
  if (!user) return
  try {
    await removeKeptOfUser(store, userId)
    await deleteContentOfUser(services, user)
  } catch (cause) {
    // The client cannot repeat the request, because the user no longer exists. The next pruning deletes the
    // rest.
    const message = 'the user is deleted; what was said in its calls will be within an hour'
    throw new GatewayError('storage_unavailable', message, { cause })
  }
}

/** Deletes a user, as an operator. Throws if it is the last user with role 100. */
export async function deleteUserAsOperator(
  services: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<{ readonly id: number; readonly username: string }> {
  const { id, username } = await findUser(services.store, readInput(userInput, given).user)
  await deleteUser(services, id, OPERATOR)
  return { id, username }
}

const INPUT = userInput.extend({
  password: passwordField,
  keep_access_tokens: keepAccessTokensOption.optional(),
})

/**
 * Sets a user's password, as an operator. All sessions of the user end. If the user had a password before,
 * the access token is revoked too, unless it should be kept.
 */
export async function setPassword(
  services: ManagementServices,
  given: z.input<typeof INPUT>,
): Promise<UserObject> {
  const { store, ledger, passwords } = services
  const { user: idOrName, password, keep_access_tokens: keepAccessTokens } = readInput(INPUT, given)
  const { id: userId } = await findUser(store, idOrName)
  const passwordHash = await passwords.hash(password, fairQueueKey(OPERATOR))
  const changed = await ledger.changeUser({ userId, fields: { passwordHash }, keepAccessTokens })
  return userObject(services, changed ?? userNotFound(idOrName))
}

/** A new access token. It appears only in this response, because only its HMAC is stored. */
interface IssuedAccessToken {
  readonly id: number
  readonly username: string
  readonly access_token: string
}

/** Gives a user a new access token of 43 base64url characters. The previous one is revoked. */
export async function issueAccessToken(
  { store }: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<IssuedAccessToken> {
  const { user: idOrName } = readInput(userInput, given)
  const { id } = await findUser(store, idOrName)
  const accessToken = randomBytes(32).toString('base64url')
  const user = (await store.write('setAccessToken', { userId: id, accessToken })) ?? userNotFound(idOrName)
  return { id, username: user.username, access_token: accessToken }
}
