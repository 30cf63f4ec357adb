import { z } from 'zod'
import { type ManagedUser, USER, type User, USER_STATUS } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, OPERATOR, requireAssignable, requireManageable, roleCeiling } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { maxQuota, requireQuota } from '../quota-bound.ts'
import { readInput, userInput } from '../read-input.ts'
import { valueSchema } from '../record-schemas.ts'
import { textField } from '../text-fields.ts'
import { deleteUser } from './delete-user.ts'
import { findUser, noUser } from './find-user.ts'
import { userIdField } from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

const ACTIONS = ['disable', 'enable', 'delete', 'promote', 'demote', 'add_quota'] as const
const MODES = ['add', 'subtract', 'override'] as const

/** An action on a user, given by id or by username. */
export const managedInput = z
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

type UserAction = z.output<typeof managedInput>

/** Performs an action; resolves to the changed user, or undefined after a deletion. */
export async function manageUser(
  parts: ManagementParts,
  input: UserAction,
  by: Actor,
): Promise<ManagedUser | undefined> {
  const found = await findUser(parts.store, input.id ?? input.username ?? '')
  requireManageable(by, found)
  const userId = found.id
  switch (input.action) {
    case 'disable':
      return setStatus(parts, userId, USER_STATUS.disabled, by)
    case 'enable':
      return setStatus(parts, userId, USER_STATUS.enabled, by)
    case 'delete':
      return deleteUser(parts, userId, by)
    case 'promote':
      return setRole(parts, found, Role.admin, by)
    case 'demote':
      return setRole(parts, found, Role.user, by)
    case 'add_quota':
      return changeQuota(parts, userId, input, by)
  }
}

/** Promotes a common user to admin, or demotes an admin to common user. */
async function setRole(
  { ledger, apiKeys }: ManagementParts,
  { id: userId, username, role: before }: { id: number; username: string; role: Role },
  role: typeof Role.user | typeof Role.admin,
  by: Actor,
): Promise<ManagedUser> {
  requireAssignable(by, role)
  if (role > Role.user ? before >= role : before === role) {
    throw new GatewayError('invalid_request', `the user "${username}" has the role ${before} already`)
  }
  const user = await ledger.changeUser({ userId, fields: { role }, roleBelow: roleCeiling(by) })
  apiKeys.forgetUser(userId)
  return user ?? noUser(userId)
}

async function changeQuota(
  { ledger, settings }: ManagementParts,
  userId: number,
  { value, mode }: UserAction,
  by: Actor,
): Promise<ManagedUser> {
  if (value === null || value === undefined) {
    throw new GatewayError('invalid_request', 'value: expected a whole number of quota units')
  }
  requireQuota('value', value, mode === 'override' ? 0 : 1, settings())
  const quota = { mode, value, maxQuota: maxQuota(settings()) }
  return (await ledger.changeUser({ userId, quota, roleBelow: roleCeiling(by) })) ?? noUser(userId)
}

/** Disables a user. All keys of the user are refused from the next call on; running calls continue. */
export async function disableUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(parts.store, readInput(userInput, given).user)
  return userObject(parts, await setStatus(parts, id, USER_STATUS.disabled, OPERATOR))
}

/** Enables a user. */
export async function enableUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<UserObject> {
  const { id } = await findUser(parts.store, readInput(userInput, given).user)
  return userObject(parts, await setStatus(parts, id, USER_STATUS.enabled, OPERATOR))
}

/**
 * Sets a status on behalf of an actor. A status declared in gateway.yaml is restored when the file is next
 * read.
 */
async function setStatus(
  { ledger, apiKeys }: ManagementParts,
  userId: number,
  status: User['status'],
  by: Actor,
): Promise<ManagedUser> {
  const user = await ledger.changeUser({ userId, fields: { status }, roleBelow: roleCeiling(by) })
  apiKeys.forgetUser(userId)
  return user ?? noUser(userId)
}
