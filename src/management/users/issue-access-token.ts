import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'

/** A new access token. Only its HMAC is stored, so this response alone contains it. */
export interface IssuedAccessToken {
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
