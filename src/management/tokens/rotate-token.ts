import type { z } from 'zod'
import { generateKey } from '../../store/generate-key.ts'
import type { ManagementParts } from '../parts.ts'
import { type anyTokenInput, findToken, noToken } from './find-token.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

/**
 * Gives a token of any user a new key, which is unmasked in this response alone. The old key is refused from
 * the next call on; quota, limits and running calls stay as they are.
 */
export async function rotateToken(
  parts: ManagementParts,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { store, apiKeys } = parts
  const { id: tokenId, user_id: userId } = await findToken(store, given)
  const key = generateKey()
  const token = (await store.write('rotateToken', { tokenId, userId, key })) ?? noToken(tokenId)
  apiKeys.forget(tokenId)
  apiKeys.forgetKey(key)
  return tokenObject(parts, token, `sk-${key}`)
}
