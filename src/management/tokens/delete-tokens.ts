import type { ManagementParts } from '../parts.ts'

/**
 * Deletes the given tokens that belong to the user, and returns their number. Their keys are refused from the
 * next call on; running calls go on.
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
