import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { fairQueueKey, OPERATOR } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput, userInput } from '../read-input.ts'
import { findUser, noUser } from './find-user.ts'
import { keepAccessTokensField, passwordField } from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

const INPUT = userInput.extend({
  password: passwordField,
  keep_access_tokens: keepAccessTokensField.optional(),
})

/**
 * Sets a user's password. All sessions of the user end. If the user had a password before, the access token
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

/** A new access token. Only its HMAC is stored, so it appears only in this response. */
interface IssuedAccessToken {
  readonly id: number
  readonly username: string
  readonly access_token: string
}

/** Issues a new access token to a user: 43 characters of base64url. The previous one is revoked. */
export async function issueAccessToken(
  { store }: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<IssuedAccessToken> {
  const { user: idOrName } = readInput(userInput, given)
  const { id } = await findUser(store, idOrName)
  const accessToken = randomBytes(32).toString('base64url')
  const user = (await store.write('setAccessToken', { userId: id, accessToken })) ?? noUser(idOrName)
  return { id, username: user.username, access_token: accessToken }
}
