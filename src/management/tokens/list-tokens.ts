import type { z } from 'zod'
import { findUser } from '../users/find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { userInput, readInput } from '../read-input.ts'
import { maskedTokens, type TokenObject } from './token-object.ts'

/** A user's tokens with masked keys, oldest first. */
export async function listTokens(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<TokenObject[]> {
  const { user: idOrName } = readInput(userInput, given)
  const { id: userId } = await findUser(parts.store, idOrName)
  const tokens = await parts.store.read('keyedTokens', { userId })
  return maskedTokens(parts, tokens.toReversed())
}
