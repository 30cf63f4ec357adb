import { KEPT_KINDS, type KeptKind, rulesOf } from '../domain/kept.ts'
import type { RowStore } from './store.ts'

/** Returns a function that checks whether the database has, or ever had, contents in an `ObjectPlace`. */
export function namedObjects(rows: Pick<RowStore, 'read'>): () => Promise<boolean> {
  let isFound = false
  return async () => {
    for (const kind of Object.keys(KEPT_KINDS) as KeptKind[]) {
      if (isFound) break
      if (rulesOf(kind).isLarge || kind === 'incomplete_objects')
        isFound = (await rows.read('keysOfKind', { kind })).length > 0
    }
    return isFound
  }
}
