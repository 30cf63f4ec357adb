import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Config } from '../config/config.ts'
import { openSeededStore } from '../first-start.ts'
import { Ledger } from '../ledger/ledger.ts'
import { pruneUsage } from '../store/prune-usage.ts'
import type { Secrets } from '../store/secrets.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { OpenedLedger, OpeningLog } from './opened-ledger.ts'

/** Opens the store that the configuration names, and settles what a crash left behind. Rejects with a sentence for the operator. */
export function openLedger(config: Config, secrets: Secrets, log: OpeningLog): Promise<OpenedLedger> {
  const { databaseUrl } = config.environment
  return databaseUrl.startsWith('sqlite:') ? openOwnLedger(config, secrets) : openShared(config, secrets, log)
}

async function openOwnLedger({ environment, users }: Config, secrets: Secrets): Promise<OpenedLedger> {
  const path = environment.databaseUrl.slice('sqlite:'.length)
  const { store, firstCredentials } = await openSeededStore(
    () => openSqliteStore({ path, secret: secrets }),
    users,
  )
  try {
    const ledger = new Ledger(store, randomUUID())
    const recovered = await ledger.recover()
    return {
      store,
      place: `${hostname()} ${path}`,
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
async function openShared(config: Config, secrets: Secrets, log: OpeningLog): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(config, secrets, log)
}
