import { z } from 'zod'
import { type ManagedUser, USER, USER_STATUS } from '../../domain/records/user.ts'
import { type Actor, fairQueueKey, OPERATOR, requireAssignableRole } from '../authority.ts'
import { usageLimitChanges, usageLimitFields } from '../usage-limits.ts'
import type { ManagementServices } from '../services.ts'
import { readInput, requireQuota } from '../input-fields.ts'
import { requestBodySchemas, storedFields } from '../record-schemas.ts'
import { passwordField, requireGroup, type UserObject, userObject } from './user-object.ts'

/**
 * Input with the fields of a new user. By default the display name is the username. A user without a password
 * can log in only in other ways, such as with an access token.
 */
export const newUserInput = z
  .object(
    { ...requestBodySchemas(USER.fields, 'new'), password: passwordField.optional(), ...usageLimitFields },
    { error: 'expected an object with the fields of a user' },
  )
  .omit({ email: true })

/**
 * Creates an enabled user without an access token. Throws for a taken name, an unknown group or an invalid
 * quota.
 */
export async function createUser(
  services: ManagementServices,
  given: z.input<typeof newUserInput>,
): Promise<UserObject> {
  return userObject(services, await createUserAs(services, readInput(newUserInput, given), OPERATOR))
}

/** Creates a user on behalf of an actor, who can only assign roles below the actor's own. */
export async function createUserAs(
  { store, passwords, settings, nowMs }: ManagementServices,
  input: z.output<typeof newUserInput>,
  by: Actor,
): Promise<ManagedUser> {
  const { username, password } = input
  const fields = { ...USER.defaults, ...storedFields(USER.fields, input), username }
  requireAssignableRole(by, fields.role)
  requireGroup(settings(), fields.group)
  requireQuota('quota', fields.quota, 0, settings())
  return store.write('createUser', {
    ...fields,
    status: USER_STATUS.enabled,
    accessToken: null,
    passwordHash: password === undefined ? undefined : await passwords.hash(password, fairQueueKey(by)),
    limits: usageLimitChanges(input, undefined, settings()),
    created_time: Math.floor(nowMs() / 1000),
  })
}
