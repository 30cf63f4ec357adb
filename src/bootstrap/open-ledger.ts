import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { seedAccounts } from './seed-accounts.ts'
import { Ledger } from '../ledger/ledger.ts'
import { pruneUsage } from '../store/prune-usage.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { OpenedLedger, OpenLedgerOptions } from './opened-ledger.ts'

/**
 * Opens the store that the configuration names, and settles what a crash left behind. Rejects with a sentence
 * for the operator.
 */
export function openLedger(parts: OpenLedgerOptions): Promise<OpenedLedger> {
  const { databaseUrl } = parts.config.environment
  return databaseUrl.startsWith('sqlite:') ? openOwnLedger(parts) : openShared(parts)
}

async function openOwnLedger({ config, secrets, thread }: OpenLedgerOptions): Promise<OpenedLedger> {
  const { environment, users } = config
  const path = environment.databaseUrl.slice('sqlite:'.length)
  const store = await openSqliteStore({ path, secret: secrets, thread })
  try {
    const firstCredentials = await seedAccounts(store, users)
    const ledger = new Ledger(store, randomUUID())
    const recovered = await ledger.recover()
    return {
      store,
      databaseId: `${hostname()} ${path}`,
      ledger,
      firstCredentials,
      recovered,
      announcements: undefined,
      prune: async (days, signal) => ({ removed: await pruneUsage(store, days, Date.now(), signal) }),
      isReady: () => ledger.probe(),
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

// What several nodes need is loaded where there are several.
async function openShared(parts: OpenLedgerOptions): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(parts)
}
