import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { noOwnToken } from './token-id.ts'

/** Keys that one request may reveal; `docs/api.md: Limits`. */
const MAX_KEYS_PER_REQUEST = 100

/** The unmasked key of one of the user's tokens, with `sk-`. */
export async function revealKey(
  { store }: ManagementParts,
  { user: userId, id: tokenId }: { readonly user: number; readonly id: number },
): Promise<string> {
  await store.write('noteReveal', { kind: 'key', ids: [tokenId], userId })
  return `sk-${(await store.read('revealKey', { tokenId, userId })) ?? noOwnToken()}`
}

/**
 * The unmasked keys by id of the given tokens that belong to the user; more than 100 ids are
 * `batch_too_many`.
 */
export async function revealKeys(
  { store }: ManagementParts,
  { user: userId, ids }: { readonly user: number; readonly ids: readonly number[] },
): Promise<Record<string, string>> {
  if (ids.length > MAX_KEYS_PER_REQUEST) {
    throw new GatewayError(
      'batch_too_many',
      `ids: at most ${MAX_KEYS_PER_REQUEST} keys are revealed at once, not ${ids.length}`,
      { details: { limit: MAX_KEYS_PER_REQUEST, given: ids.length } },
    )
  }
  await store.write('noteReveal', { kind: 'key', ids, userId })
  const found = await store.read('revealKeys', { tokenIds: ids, userId })
  return Object.fromEntries(found.map(({ tokenId, key }) => [String(tokenId), `sk-${key}`]))
}
