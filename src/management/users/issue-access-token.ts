import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'

/** A new access token. It is told here and nowhere else, for only its HMAC is kept. */
export interface IssuedAccessToken {
  readonly id: number
  readonly username: string
  readonly access_token: string
}

/** Gives a user a new access token: 43 characters of base64url. The one before stops working. */
export async function issueAccessToken(
  { store }: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<IssuedAccessToken> {
  const { user: who } = readInput(userInput, given)
  const { id } = await findUser(store, who)
  const accessToken = randomBytes(32).toString('base64url')
  const user = (await store.write('setAccessToken', { userId: id, accessToken })) ?? noUser(who)
  return { id, username: user.username, access_token: accessToken }
}
