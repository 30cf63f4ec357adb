import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { BankNodes } from '../cluster/join-cluster.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { sqlitePath } from '../domain/database-url.ts'
import { recordConfiguration } from './record-configuration.ts'
import type { FirstCredentials } from './seed-accounts.ts'
import { Ledger } from '../accounts/ledger/ledger.ts'
import { embeddedPruneParts, type PrunePart } from './prune.ts'
import { gatewaySecrets, secretsIfAny } from '../store/gateway-secrets.ts'
import { NodeMessages } from '../store/node-messages.ts'
import type { Secrets } from '../store/secrets.ts'
import type { IdleThread } from '../store/sqlite/database-thread.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { Store } from '../store/store.ts'

/** The database and the ledger (which reserves and charges quota), after recovery from a crash. */
export interface OpenedLedger {
  readonly store: Store
  /** Identifier of the database, the same on all nodes that share it. */
  readonly databaseId: string
  readonly ledger: Ledger
  /** Name of this process among all that share the database. */
  readonly node: string
  /** Signs messages to other nodes. */
  readonly messages: NodeMessages
  readonly firstCredentials: FirstCredentials | undefined
  /** Calls that earlier runs left open and that this start has charged; `quota` is the sum in quota units. */
  readonly recovered: { readonly count: number; readonly quota: number }
  /** Resolves to whether calls can be charged now. */
  isReady(): Promise<boolean>
  /** The other nodes on the database; undefined if it is embedded. */
  readonly others: BankNodes | undefined
  /** Remove old rows of the usage log and other expired data. */
  readonly pruneParts: readonly PrunePart[]
  /** Returns all quota that this process has leased, and closes the database. */
  close(): Promise<void>
}

/** Options for opening the database and the ledger. */
export interface OpenLedgerOptions {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: StartupLog
  /** The database's thread, if it was started early. */
  readonly thread: IdleThread | undefined
}

/** Log for messages to the operator while the gateway starts. */
export interface StartupLog {
  info(sentence: string): void
  warn(sentence: string): void
}

/** The secrets of a gateway. If it has none yet, waits for a shared database, which may have another one. */
export async function openSecrets(environment: Environment, log: StartupLog): Promise<Secrets> {
  const open = (): Promise<Secrets> => gatewaySecrets(environment)
  if (secretsIfAny(environment) || sqlitePath(environment.databaseUrl) !== undefined) return open()
  const { retryUntilAvailable } = await import('./open-shared-ledger.ts')
  return retryUntilAvailable(open, log)
}

/**
 * Opens the configured database, and charges the calls that a crash left open. Rejects with an error message
 * for the operator.
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
      pruneParts: embeddedPruneParts(store),
      isReady: () => ledger.probe(),
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

// The modules for a shared database are loaded on demand, because only gateways of several nodes need them.
async function openShared(options: OpenLedgerOptions): Promise<OpenedLedger> {
  const { openSharedLedger } = await import('./open-shared-ledger.ts')
  return openSharedLedger(options)
}
