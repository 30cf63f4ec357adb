import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { BankNodes } from '../cluster/join-cluster.ts'
import type { Workers } from '../cluster/join-through-owner.ts'
import type { Config } from '../config/config.ts'
import { sqlitePath } from '../domain/database-url.ts'
import { recordConfiguration } from './record-configuration.ts'
import type { FirstCredentials } from './seed-accounts.ts'
import { Ledger } from '../accounts/ledger/ledger.ts'
import { type Prune, pruneEmbeddedDatabase } from './prune.ts'
import { NodeMessages } from '../store/node-messages.ts'
import type { Secrets } from '../store/secrets.ts'
import type { IdleThread } from '../store/sqlite/database-thread.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { Store } from '../store/store.ts'

/** Ledger and store, opened and recovered. */
export interface OpenedLedger {
  readonly store: Store
  /** Identifier of the database, the same on all nodes that share it. */
  readonly databaseId: string
  readonly ledger: Ledger
  /** Name of this process among those that share the database. */
  readonly node: string
  /** Signs messages to other nodes. */
  readonly messages: NodeMessages
  readonly firstCredentials: FirstCredentials | undefined
  /** Calls that earlier runs left open and that this start has settled. */
  readonly recovered: { readonly count: number; readonly quota: number }
  /** Whether calls can be charged now. */
  isReady(): Promise<boolean>
  /**
   * Other processes on the database: nodes on other machines, or the workers of this one; undefined if there
   * are none.
   */
  readonly others: BankNodes | Workers | undefined
  /** Removes old rows of the usage log. */
  readonly prune: Prune
  /** Releases all leases and closes the store. */
  close(): Promise<void>
}

/** Input of `openLedger`. */
export interface OpenLedgerOptions {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: StartupLog
  /** Database thread that was started ahead of time, if any. */
  readonly thread: IdleThread | undefined
}

/** Log for messages to the operator during the start. */
export interface StartupLog {
  info(sentence: string): void
  warn(sentence: string): void
}

/**
 * Opens the store that the configuration names, and settles the calls that a crash left open. Rejects with a
 * sentence for the operator.
 */
export function openLedger(options: OpenLedgerOptions): Promise<OpenedLedger> {
  const path = sqlitePath(options.config.environment.databaseUrl)
  return path === undefined ? openShared(options) : openOwnLedger(options, path)
}

async function openOwnLedger(
  { config, secrets, thread }: OpenLedgerOptions,
  path: string,
): Promise<OpenedLedger> {
  const store = await openSqliteStore({ path, secrets, thread })
  try {
    const firstCredentials = await recordConfiguration(store, config)
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
      prune: pruneEmbeddedDatabase(store),
      isReady: () => ledger.probe(),
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

// Modules for several nodes are loaded only if there are several.
async function openShared(options: OpenLedgerOptions): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(options)
}
