import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ApiKeys } from '../../accounts/authentication/api-keys.ts'
import { Passwords } from '../../accounts/authentication/passwords.ts'
import { readConfig } from '../../config/config.ts'
import type { Environment } from '../../config/environment.ts'
import { LiveConfig } from '../../config/live-config.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import { type FirstCredentials, seedAccounts } from '../seed-accounts.ts'
import { Ledger } from '../../accounts/ledger/ledger.ts'
import { sharedStore } from '../../accounts/ledger/shared-store.ts'
import { BatchStore } from '../../features/batches/batch-store.ts'
import { FileStore } from '../../features/batches/file-store.ts'
import { ManagedBatches } from '../../features/batches/managed-batches.ts'
import { operations } from '../../management/operations.ts'
import type { AdministrationServices, BackupInputs, ManagementServices } from '../../management/services.ts'
import { commandOrigin, withAuditOrigin } from '../../management/audit-origin.ts'
import { openContentLog } from '../open-content-log.ts'
import { type OpenObjects, openObjects } from '../open-objects.ts'
import { quotaDisplay } from '../../management/gateway-status.ts'
import type { DataFolderLock } from '../../store/data-folder.ts'
import { KeptStore } from '../../store/kept-store.ts'
import { keyHashes, type Secrets } from '../../store/secrets.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import type { Store } from '../../store/store.ts'
import { endSecretChange, gatewaySecrets } from '../../store/gateway-secrets.ts'
import type { ReportProgress } from '../../store/migrations/steps.ts'
import { isDatabaseOfGateway } from '../../store/is-database-of-gateway.ts'
import { type CommandBackend, NoDatabase } from './command-backend.ts'

/** Services that operations need. */
interface OpenServices
  extends Omit<ManagementServices, 'content'>,
    Pick<AdministrationServices, 'liveConfig' | 'content' | 'batches'> {
  readonly secrets: Secrets
  readonly firstCredentials: FirstCredentials | undefined
  close(): Promise<void>
}

/** Services including those that only the test of a channel needs. */
type AnyServices = OpenServices & Pick<AdministrationServices, 'upstreams' | 'endReads'>

export interface OpeningOptions {
  /** Whether a database that is missing or empty becomes one of a gateway. */
  readonly createsDatabase: boolean
  /** Gets the progress of a long migration of a shared database. */
  readonly report: ReportProgress
}

type AnyOperation = (services: AnyServices, input: unknown) => Promise<unknown>

/**
 * Runs operations in this process, with the data folder locked. The database is opened by the first operation
 * other than `backup`, because opening it migrates the schema, and a backup before an update must keep the
 * old schema.
 */
export function localBackend(
  environment: Environment,
  lock: DataFolderLock,
  opening: OpeningOptions,
): CommandBackend {
  let opened: Promise<OpenServices> | undefined
  const open = (): Promise<OpenServices> => (opened ??= openServices(environment, opening))
  return {
    display: async () => quotaDisplay((await open()).settings()),
    firstCredentials: async () => (await opened)?.firstCredentials,
    async run(name, input) {
      if (name === 'backup') {
        const services = backupInputs(environment)
        return (await (operations.backup as (services: BackupInputs, input: unknown) => Promise<unknown>)(
          services,
          input,
        )) as never
      }
      const services = withAuditOrigin(await open(), commandOrigin('operator', Date.now()))
      const operation = operations[name] as AnyOperation
      if (name === 'testNamedChannel')
        return (await runWithUpstreams(services, environment, operation, input)) as never
      return (await operation(services as AnyServices, input)) as never
    },
    async close() {
      try {
        const services = await opened?.catch(() => undefined)
        await services?.close()
      } finally {
        lock.release()
      }
    },
  }
}

// The module for upstreams is loaded on demand, because most commands do not use upstreams.
async function runWithUpstreams(
  services: OpenServices,
  { proxies }: Environment,
  operation: AnyOperation,
  input: unknown,
): Promise<unknown> {
  const { openUpstreams } = await import('../open-upstreams.ts')
  const upstreams = openUpstreams(services.secrets, proxies, services.settings)
  try {
    return await operation({ ...services, upstreams, endReads: () => {} }, input)
  } finally {
    upstreams.close()
  }
}

function backupInputs({ databaseUrl, secret, dataDir }: Environment): BackupInputs {
  const file = join(dataDir, 'secret')
  return { dataDir, databaseUrl, secretFile: secret === undefined && existsSync(file) ? file : undefined }
}

async function openStore(
  { databaseUrl }: Environment,
  secrets: Secrets,
  report: ReportProgress,
): Promise<Store> {
  const path = sqlitePath(databaseUrl)
  if (path !== undefined) return openSqliteStore({ path, secrets, onCallingThread: true })
  const { openPostgresStore } = await import('../../store/postgres/open.ts')
  return sharedStore(await openPostgresStore({ url: databaseUrl, secrets, report }))
}

/** The batches in a database whose gateway does not run, which hears at its start of what is cancelled. */
function batchesIn(store: Store, { place }: Pick<OpenObjects, 'place'>): ManagedBatches {
  const none = (): number => 0
  const kept = new KeptStore({
    rows: store,
    objects: { place, node: undefined },
    maxBytes: { user: none, cache: none, files: none },
    room: undefined,
  })
  return new ManagedBatches({ batches: new BatchStore(kept), files: new FileStore(kept) })
}

async function openServices(
  environment: Environment,
  { createsDatabase, report }: OpeningOptions,
): Promise<OpenServices> {
  if (!createsDatabase && !(await isDatabaseOfGateway(environment.databaseUrl)))
    throw new NoDatabase(environment)
  const config = readConfig(environment)
  const { users } = config
  const secrets = await gatewaySecrets(environment)
  const store = await openStore(environment, secrets, report)
  try {
    endSecretChange(environment, secrets, () => {})
    // Create the users that gateway.yaml declares before anything else, because their ids must still be free.
    const isNew = (await store.read('countUsers')) === 0
    const firstCredentials = isNew ? await seedAccounts(store, users) : undefined
    const liveConfig = await LiveConfig.open(store, config, () => {})
    const ledger = new Ledger(store, 'command')
    const content = openContentLog(environment, secrets, { settings: () => liveConfig.settings.contentLog })
    const objects = openObjects({
      environment,
      settings: () => liveConfig.settings,
      warn: () => {},
      hasOthers: sqlitePath(environment.databaseUrl) === undefined,
    })
    return {
      ...backupInputs(environment),
      store,
      ledger,
      apiKeys: new ApiKeys(store, ledger, (key) => keyHashes(secrets, key)),
      passwords: new Passwords(),
      content,
      batches: batchesIn(store, objects),
      settings: () => liveConfig.settings,
      liveConfig,
      secrets,
      nowMs: () => Date.now(),
      firstCredentials,
      async close() {
        await objects[Symbol.asyncDispose]()
        await content.close()
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}
