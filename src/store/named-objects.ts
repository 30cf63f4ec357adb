import { KEPT_KINDS, type KeptKind, rulesOf } from '../domain/kept.ts'
import type { RowStore } from './store.ts'

/** Kinds of entries whose contents are in objects, and the kind that names objects to be removed. */
const KINDS = (Object.keys(KEPT_KINDS) as KeptKind[]).filter(
  (kind) => rulesOf(kind).isLarge || kind === 'incomplete_objects',
)

/** Returns a function that checks whether the database has, or ever had, contents in an `ObjectPlace`. */
export function namedObjects(rows: Pick<RowStore, 'read'>): () => Promise<boolean> {
  let isFound = false
  return async () => (isFound ||= await rows.read('hasKept', { kinds: KINDS }))
}
