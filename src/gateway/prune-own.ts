import { pruneExpired, pruneParts, pruneUsage } from '../store/prune.ts'
import type { Store } from '../store/store.ts'
import { type Prune, slotsBefore } from './prune.ts'

/** Removes old rows of the embedded database. */
export function pruneOwn(store: Store): Prune {
  return async (days, signal) => ({
    removed: await pruneUsage(store, days.log, Date.now(), signal),
    removedResponses: await pruneExpired(store, 'pruneResponses', Date.now(), signal),
    removedParts: await pruneParts(store, Date.now(), signal),
    removedSignatures: await pruneExpired(store, 'pruneSignatures', Date.now(), signal),
    removedBudgets: await pruneExpired(store, 'pruneBudgets', Date.now(), signal),
    removedSlots: await pruneExpired(store, 'pruneSlots', slotsBefore(days), signal),
    removedAuditEntries: await pruneExpired(store, 'pruneAuditLog', Date.now(), signal),
  })
}
