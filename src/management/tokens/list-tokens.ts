import type { z } from 'zod'
import { findUser } from '../users/find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'
import { maskedToken, type TokenObject } from './token-object.ts'

/** A user's tokens with masked keys, oldest first. */
export async function listTokens(
  { store, nowMs }: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<TokenObject[]> {
  const { user: idOrName } = readInput(userInput, given)
  const { id: userId } = await findUser(store, idOrName)
  const tokens = await store.read('keyedTokens', { userId })
  return tokens.toReversed().map((token) => maskedToken(token, nowMs()))
}
