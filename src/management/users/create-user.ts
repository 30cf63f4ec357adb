import { z } from 'zod'
import type { ManagedUser } from '../../domain/profile.ts'
import { Role } from '../../domain/user.ts'
import { requireGroup } from './require-group.ts'
import { type Actor, OPERATOR, fairQueueKey, requireAssignable } from '../authority.ts'
import { termChanges, termFields } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { requireQuota } from '../quota-bound.ts'
import { groupField, readInput } from '../read-input.ts'
import {
  displayNameField,
  passwordField,
  quotaField,
  remarkField,
  roleField,
  usernameField,
} from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

/**
 * The fields of a new user. The display name defaults to the username; without a password nobody can log in.
 */
export const newUserInput = z.object(
  {
    username: usernameField,
    display_name: displayNameField.optional(),
    password: passwordField.optional(),
    role: roleField.default(Role.user),
    group: groupField().default('default'),
    quota: quotaField.default(0),
    remark: remarkField.optional(),
    ...termFields,
  },
  { error: 'expected an object with the fields of a user' },
)

/**
 * Creates an enabled user without access token. Throws for a taken name, an unknown group or an invalid
 * quota.
 */
export async function createUser(
  parts: ManagementParts,
  given: z.input<typeof newUserInput>,
): Promise<UserObject> {
  return userObject(parts, await makeUser(parts, readInput(newUserInput, given), OPERATOR))
}

/** Creates a user on behalf of an actor, who may assign roles below its own. */
export async function makeUser(
  { store, passwords, settings, nowMs }: ManagementParts,
  input: z.output<typeof newUserInput>,
  by: Actor,
): Promise<ManagedUser> {
  const { username, role, group, quota, password } = input
  requireAssignable(by, role)
  requireGroup(settings(), group)
  requireQuota('quota', quota, 0, settings())
  return store.write('createUser', {
    username,
    display_name: input.display_name,
    role,
    status: 1,
    group,
    quota,
    accessToken: null,
    passwordHash: password === undefined ? undefined : await passwords.hash(password, fairQueueKey(by)),
    remark: input.remark,
    terms: termChanges(input, undefined, settings()),
    created_time: Math.floor(nowMs() / 1000),
  })
}
