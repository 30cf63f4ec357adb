import type { StoredResponse } from '../../domain/stored-response.ts'
import type { ResponseStore } from './response-store.ts'

/** Responses that are looked up for one request; items of further ones count as unknown. */
const MAX_RESPONSES = 100

/** Items that a request refers to, and their provider keeps. */
export interface ReferredItems {
  /** Responses that they are of, as far as these are known. */
  readonly responses: readonly StoredResponse[]
  /** Whether there are others. */
  readonly hasUnknown: boolean
}

/** Finds the responses of items by their ids. */
export async function findItems(
  userId: number,
  itemIds: readonly string[],
  store: ResponseStore,
): Promise<ReferredItems | undefined> {
  if (itemIds.length === 0) return undefined
  const ids = itemIds.map((itemId) => store.responseOfItem(userId, itemId))
  const known = [...new Set(ids.filter((id) => id !== undefined))]
  const read = known.slice(0, MAX_RESPONSES).map((id) => store.find(userId, id))
  const found = (await Promise.all(read)).filter((response) => response !== undefined)
  return { responses: found, hasUnknown: ids.includes(undefined) || found.length < known.length }
}
