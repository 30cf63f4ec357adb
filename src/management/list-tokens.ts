import type { z } from 'zod'
import { maskedKey } from '../domain/masked-key.ts'
import { findUser } from './find-user.ts'
import type { ManagementParts } from './parts.ts'
import { ofUser, readInput } from './read-input.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

/** A user's tokens with masked keys, oldest first. */
export async function listTokens(
  { store, nowMs }: ManagementParts,
  given: z.input<typeof ofUser>,
): Promise<TokenObject[]> {
  const { user: who } = readInput(ofUser, given)
  const { id: userId } = await findUser(store, who)
  const tokens = await store.read('listTokens', { userId })
  const keys = new Map((await store.read('revealKeys', { userId })).map(({ tokenId, key }) => [tokenId, key]))
  // One that was deleted between the two questions is not there any more.
  return tokens.flatMap((token) => {
    const key = keys.get(token.id)
    return key === undefined ? [] : [tokenObject(token, maskedKey(`sk-${key}`), nowMs())]
  })
}
