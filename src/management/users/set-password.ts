import { z } from 'zod'
import { OPERATOR, fairQueueKey } from '../authority.ts'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'
import { keepAccessTokensField, passwordField } from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

const INPUT = userInput.extend({
  password: passwordField,
  keep_access_tokens: keepAccessTokensField.optional(),
})

/**
 * Sets a user's password. All sessions of the user end, and where it had a password before, its access token
 * is revoked too, unless it is to be kept.
 */
export async function setPassword(parts: ManagementParts, given: z.input<typeof INPUT>): Promise<UserObject> {
  const { store, ledger, passwords } = parts
  const { user: idOrName, password, keep_access_tokens: keepAccessTokens } = readInput(INPUT, given)
  const { id: userId } = await findUser(store, idOrName)
  const passwordHash = await passwords.hash(password, fairQueueKey(OPERATOR))
  const changed = await ledger.changeUser({ userId, fields: { passwordHash }, keepAccessTokens })
  return userObject(parts, changed ?? noUser(idOrName))
}
