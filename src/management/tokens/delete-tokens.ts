import type { z } from 'zod'
import type { ManagementParts } from '../parts.ts'
import { type anyTokenInput, findToken, noToken } from './find-token.ts'

/**
 * Deletes the given tokens that belong to the user, and returns their number. Their keys are refused from the
 * next call on; running calls continue.
 */
export async function deleteTokens(
  { store, apiKeys, nowMs }: ManagementParts,
  { user: userId, ids: tokenIds }: { readonly user: number; readonly ids: readonly number[] },
): Promise<number> {
  const nowSeconds = Math.floor(nowMs() / 1000)
  const deleted = await store.write('deleteTokens', { userId, tokenIds, nowSeconds })
  apiKeys.forget(new Set(deleted))
  return deleted.length
}

/** Deletes a token of any user. Its key is refused from the next call on; running calls continue. */
export async function deleteToken(
  parts: ManagementParts,
  given: z.input<typeof anyTokenInput>,
): Promise<{ readonly id: number; readonly name: string }> {
  const { id, user_id: user, name } = await findToken(parts.store, given)
  if ((await deleteTokens(parts, { user, ids: [id] })) === 0) noToken(id)
  return { id, name }
}
