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
 * Gives a user a password, in the place of any other; whoever was logged in as that user is not any more, and
 * its access token goes with the password that was there.
 */
export async function setPassword(
  { store, ledger, passwords }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<UserObject> {
  const { user: who, password, keep_access_tokens: keepAccessTokens } = readInput(INPUT, given)
  const { id: userId } = await findUser(store, who)
  const passwordHash = await passwords.hash(password, fairQueueKey(OPERATOR))
  const changed = await ledger.changeUser({ userId, fields: { passwordHash }, keepAccessTokens })
  return userObject(changed ?? noUser(who))
}
