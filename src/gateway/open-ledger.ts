import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { sqlitePath } from '../domain/database-url.ts'
import { recordFile } from './record-file.ts'
import { Ledger } from '../accounts/ledger/ledger.ts'
import { pruneOwn } from './prune.ts'
import { NodeMessages } from '../store/node-messages.ts'
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
      node: randomUUID(),
      messages: new NodeMessages(secrets),
      firstCredentials,
      recovered,
      others: undefined,
      prune: pruneOwn(store),
      isReady: () => ledger.probe(),
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

// Modules for several nodes are loaded only if there are several.
async function openShared(parts: OpenLedgerOptions): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(parts)
}
