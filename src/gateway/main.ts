import type { App } from './app.ts'
import type { Config } from '../config/config.ts'
import type { Settings } from '../domain/settings.ts'
import type { FirstCredentials } from './seed-accounts.ts'
import { gatewayServer, listenForAdmin } from './listen.ts'
import { openLog } from './open-log.ts'
import { sqlitePath } from '../domain/database-url.ts'
import { parseListenAddress } from '../domain/listen-address.ts'
import { startHelperThreads } from './start-helper-threads.ts'
import { openLedger, openSecrets } from './open-ledger.ts'
import { type DataFolderLock, waitAndLockDataFolder } from '../store/data-folder.ts'
import type { TokenCounter } from '../call/token-counter.ts'
import type { IdleThread } from '../store/sqlite/database-thread.ts'

/** A running gateway that listens for requests. */
export interface Gateway {
  readonly url: string
  /** Settings at the time of the start. */
  readonly settings: Settings
  /** Credentials of the first user, to be printed once; undefined unless the database is new. */
  readonly firstCredentials: FirstCredentials | undefined
  /**
   * Calls that earlier runs left open and that this start has charged. `quota` is the sum of their charges in
   * quota units.
   */
  readonly recovered: { readonly count: number; readonly quota: number }
  /**
   * Resolves when the database can no longer be relied on. The process should then end; the next start
   * recovers.
   */
  readonly failed: Promise<Error>
  /**
   * Stops the gateway: accepts no more calls, waits for running ones, writes everything, and unlocks the data
   * folder. Resolves to the number of calls that could not be charged; the next start charges them.
   */
  close(): Promise<number>
}

/** Resources that were opened before the gateway starts. */
export interface OpenedResources {
  /** The thread of the embedded database, if it was started early. */
  readonly thread?: IdleThread | undefined
  /** A tokenizer that the gateway does not close. Tests share one between gateways. */
  readonly tokens?: TokenCounter | undefined
  /** The lock on the data folder and the database, if it is already held; the gateway releases it. */
  readonly folder?: DataFolderLock
  /** Called when the start has failed, before what was opened is closed. */
  readonly onFailure?: (error: unknown) => void
}

/**
 * Opens the database, charges the calls that a crash left open, and accepts requests. Rejects with an error
 * message for the operator.
 */
export async function startGateway(
  config: Config,
  { folder, onFailure = () => {}, ...others }: OpenedResources = {},
): Promise<Gateway> {
  await using opened = new AsyncDisposableStack()
  try {
    return await open(config, opened, { ...others, locked: folder })
  } catch (error) {
    onFailure(error)
    throw error
  }
}

async function open(
  config: Config,
  opened: AsyncDisposableStack,
  {
    thread,
    tokens,
    locked,
  }: Pick<OpenedResources, 'thread' | 'tokens'> & { readonly locked: DataFolderLock | undefined },
): Promise<Gateway> {
  const { environment } = config
  const { log, lines } = openLog(environment)
  opened.adopt(lines, (open) => open.close())
  const folder = opened.adopt(
    locked ??
      (await waitAndLockDataFolder(environment.dataDir, 'gateway', sqlitePath(environment.databaseUrl))),
    (lock) => lock.release(),
  )
  if (folder.warning !== undefined) log.warn(folder.warning)
  const helpers = startHelperThreads(opened, log, tokens)
  let app: App | undefined
  const { admin_listen, reuse_port: sharesPort } = config.settings.options
  const admin = parseListenAddress(admin_listen || environment.adminListen)
  if (admin) opened.adopt(await listenForAdmin(admin, () => app), (open) => open.close())
  const server = opened.adopt(
    gatewayServer(() => app),
    (open) => open.close(),
  )
  if (server.fewConnections) log.warn(server.fewConnections)
  // Listens at once, so that an occupied address is noticed early.
  const early = sharesPort ? undefined : await server.listen(environment)

  const startup = {
    info: (sentence: string) => log.info(sentence),
    warn: (sentence: string) => log.warn(sentence),
  }
  const secrets = await openSecrets(environment, startup)
  const opening = openLedger({ config, secrets, log: startup, thread })
  // The database opens in a separate thread while the modules that serve calls are loaded.
  const [{ serveGateway }, accounts] = await Promise.all([import('./serve.ts'), opening])
  opened.adopt(accounts, (open) => open.close())
  const serving = opened.use(
    await serveGateway({ config, log, lines, secrets, accounts, connections: server.connections, helpers }),
  )
  app = serving.app
  // A shared port is listened on only when this node is ready; until then other nodes get the connections.
  if (sharesPort) await helpers.tokensLoaded
  const url = early ?? (await server.listen(environment, { sharesPort }))
  const everything = opened.move()
  return {
    url,
    settings: serving.settings,
    firstCredentials: accounts.firstCredentials,
    recovered: accounts.recovered,
    failed: accounts.store.failed,
    async close() {
      const unresolved = await serving.drain((maxMs) => server.stopListening(maxMs))
      await everything.disposeAsync()
      return unresolved
    },
  }
}
