import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { sqlitePath } from '../domain/database-url.ts'
import { recordFile } from './record-file.ts'
import { Ledger } from '../ledger/ledger.ts'
import { slotsBefore } from './prune.ts'
import { pruneExpired, pruneParts } from '../store/prune-expired.ts'
import { pruneUsage } from '../store/prune-usage.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { OpenedLedger, OpenLedgerOptions } from './opened-ledger.ts'

/**
 * Opens the store that the configuration names, and settles the calls that a crash left open. Rejects with a
 * sentence for the operator.
 */
export function openLedger(parts: OpenLedgerOptions): Promise<OpenedLedger> {
  const path = sqlitePath(parts.config.environment.databaseUrl)
  return path === undefined ? openShared(parts) : openOwnLedger(parts, path)
}

async function openOwnLedger(
  { config, secrets, thread }: OpenLedgerOptions,
  path: string,
): Promise<OpenedLedger> {
  const store = await openSqliteStore({ path, secrets, thread })
  try {
    const firstCredentials = await recordFile(store, config)
    const ledger = new Ledger(store, randomUUID())
    const recovered = await ledger.recover()
    return {
      store,
      databaseId: `${hostname()} ${path}`,
      ledger,
      firstCredentials,
      recovered,
      announcements: undefined,
      prune: async (days, signal) => ({
        removed: await pruneUsage(store, days.log, Date.now(), signal),
        removedResponses: await pruneExpired(store, 'pruneResponses', Date.now(), signal),
        removedParts: await pruneParts(store, Date.now(), signal),
        removedSignatures: await pruneExpired(store, 'pruneSignatures', Date.now(), signal),
        removedBudgets: await pruneExpired(store, 'pruneBudgets', Date.now(), signal),
        removedSlots: await pruneExpired(store, 'pruneSlots', slotsBefore(days), signal),
        removedAuditEntries: await pruneExpired(store, 'pruneAuditLog', Date.now(), signal),
      }),
      isReady: () => ledger.probe(),
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

// Modules for several nodes are loaded only where there are several.
async function openShared(parts: OpenLedgerOptions): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(parts)
}
