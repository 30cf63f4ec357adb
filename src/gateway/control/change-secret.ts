import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Environment } from '../../config/environment.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import { commandOrigin } from '../../management/audit-origin.ts'
import {
  DataFolderInUse,
  newSecretOfDataFolder,
  secretOfDataFolder,
  waitAndLockDataFolder,
  writeNewSecret,
} from '../../store/data-folder.ts'
import { createPostgresKysely } from '../../store/postgres/dialect.ts'
import { isRetryableConflict, mapDatabaseError } from '../../store/postgres/failure.ts'
import { openPostgresStore, storeMessageKey } from '../../store/postgres/open.ts'
import { connectionPool } from '../../store/postgres/pool.ts'
import type { RunTransaction } from '../../store/secret-change/reseal-table.ts'
import {
  DATA_KEYS_OF_FILE,
  SEALED_TABLES,
  SHARED_DATA_KEYS,
} from '../../store/secret-change/sealed-tables.ts'
import {
  changeSecret,
  type ChangedDatabase,
  liveNodesOf,
  type SealedDatabase,
  type SecretChangeReport,
} from '../../store/secret-change/secret-change.ts'
import { deriveSecrets, type SecretKeys, type Secrets } from '../../store/secrets.ts'
import { openForWriting } from '../../store/sqlite/connection.ts'
import { createKysely } from '../../store/sqlite/dialect.ts'
import { prepareDatabase } from '../../store/sqlite/prepare-database.ts'
import { completeSecretFile } from '../../store/gateway-secrets.ts'
import { isDatabaseOfGateway } from '../../store/is-database-of-gateway.ts'
import { NoDatabase } from './command-backend.ts'

/** Timeout of a statement in milliseconds: a count reads a whole table. */
const STATEMENT_MS = 600_000
/** Number of attempts at a batch that conflicts with running nodes, and the pause between them in milliseconds. */
const MAX_ATTEMPTS = 20
const RETRY_MS = 50

interface ChangeSecretOptions {
  readonly environment: Environment
  readonly finish: boolean
  readonly onProgress: (done: number, total: number) => void
}

/**
 * Changes the secret of the configured database from GATEWAY_SECRET, or the one of the data folder, to
 * GATEWAY_SECRET_NEW. Rejects with a sentence for the operator.
 */
export async function changeSecretOf(options: ChangeSecretOptions): Promise<SecretChangeReport> {
  const { environment } = options
  if (!(await isDatabaseOfGateway(environment.databaseUrl))) throw new NoDatabase(environment)
  const path = sqlitePath(environment.databaseUrl)
  if (path === undefined) {
    await using shared = await openShared(environment)
    return await changeIn(shared, options)
  }
  const lock = await waitAndLockDataFolder(environment.dataDir, 'command', path).catch((error: unknown) => {
    throw error instanceof DataFolderInUse
      ? new Error(
          `${error.message}. The secret of an embedded database is changed while no gateway runs on it`,
          {
            cause: error,
          },
        )
      : error
  })
  try {
    await using own = await openOwn(environment, path)
    return await changeIn(own, options)
  } finally {
    lock.release()
  }
}

interface OpenedChange extends AsyncDisposable {
  readonly secrets: Secrets
  readonly newCheck: string
  readonly old: SecretKeys
  readonly keepNew: () => void
  readonly database: ChangedDatabase
  readonly others: readonly SealedDatabase[]
}

async function changeIn(
  opened: OpenedChange,
  { environment, ...options }: ChangeSecretOptions,
): Promise<SecretChangeReport> {
  const origin = commandOrigin('operator', Date.now())
  const report = await changeSecret({ ...options, ...opened, origin })
  if (!report.finished) return report
  return { ...report, old_secret_file: completeSecretFile(environment, opened.secrets) }
}

async function openOwn(environment: Environment, path: string): Promise<OpenedChange> {
  const given = secretsOf(environment)
  const { secrets } = given
  await using opened = new AsyncDisposableStack()
  const connection = opened.adopt(openForWriting(path), (open) => open.close())
  await prepareDatabase(connection, secrets)
  const keys = join(environment.dataDir, 'content', 'keys.db')
  const others = existsSync(keys)
    ? [
        sealedFile(
          opened.adopt(new DatabaseSync(keys), (open) => open.close()),
          DATA_KEYS_OF_FILE,
        ),
      ]
    : []
  const { db, transaction } = ofConnection(connection)
  const database = {
    db,
    transaction,
    tables: SEALED_TABLES,
    liveNodes: undefined,
    onFinish: () => Promise.resolve(),
  }
  const resources = opened.move()
  return {
    ...given,
    database,
    others,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

function sealedFile(connection: DatabaseSync, table: (typeof SEALED_TABLES)[number]): SealedDatabase {
  // Nothing of a deleted or replaced key may remain in the file.
  connection.exec('PRAGMA secure_delete = ON; PRAGMA synchronous = FULL')
  return { ...ofConnection(connection), tables: [table] }
}

function ofConnection(connection: DatabaseSync): Pick<SealedDatabase, 'db' | 'transaction'> {
  const db = createKysely(connection) as unknown as Kysely<never>
  const transaction: RunTransaction = async (work) => {
    connection.exec('BEGIN IMMEDIATE')
    try {
      await work(db)
      connection.exec('COMMIT')
    } catch (error) {
      if (connection.isTransaction) connection.exec('ROLLBACK')
      throw error
    }
  }
  return { db, transaction }
}

async function openShared(environment: Environment): Promise<OpenedChange> {
  const { databaseUrl: url } = environment
  const given = secretsOf(environment)
  const { secrets } = given
  // Opens the database as a start does: it migrates the schema, and refuses another secret.
  await (await openPostgresStore({ url, secrets })).close()
  const pool = connectionPool(url, { statementMs: STATEMENT_MS })
  const db = createPostgresKysely(pool) as unknown as Kysely<never>
  const present = await db.introspection.getTables()
  const hasContent = present.some(({ name }) => name === SHARED_DATA_KEYS.table)
  const database: ChangedDatabase = {
    db,
    transaction: (work) => repeatedTransaction(db, work),
    tables: hasContent ? [...SEALED_TABLES, SHARED_DATA_KEYS] : SEALED_TABLES,
    liveNodes: () => liveNodesOf(db),
    onFinish: storeMessageKey,
  }
  return { ...given, database, others: [], [Symbol.asyncDispose]: () => db.destroy() }
}

async function repeatedTransaction(
  db: Kysely<never>,
  work: (db: Kysely<never>) => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(work)
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRetryableConflict(error)) throw mapDatabaseError(error)
      await delay(Math.random() * RETRY_MS * attempt)
    }
  }
}

/** The secrets of both variables, or of the data folder; refuses a new one that would be no change, or a mistake. */
function secretsOf({
  secret,
  newSecret,
  dataDir,
}: Environment): Pick<OpenedChange, 'secrets' | 'newCheck' | 'old' | 'keepNew'> {
  const kept = secret === undefined ? newSecretOfDataFolder(dataDir) : undefined
  const next = newSecret ?? kept
  if (next === undefined)
    throw new Error('set GATEWAY_SECRET_NEW to the new secret ("openssl rand -hex 32" makes a good one)')
  const old = secret ?? secretOfFile(dataDir)
  if (next === old) throw new Error('GATEWAY_SECRET_NEW is the present secret: choose another one')
  if (next.trim() === old.trim())
    throw new Error(
      'GATEWAY_SECRET_NEW differs from the present secret only by white space at its end, such as a line break: choose ' +
        'another secret',
    )
  if (next.trim() !== next)
    throw new Error('GATEWAY_SECRET_NEW begins or ends with white space, such as a line break: leave it out')
  // The file may be the only copy of a secret that values are encrypted with already.
  if (kept !== undefined && kept !== next)
    throw new Error(
      `a change to the secret in ${join(dataDir, 'secret.new')} was begun and not ended: run the command without ` +
        'GATEWAY_SECRET_NEW, which ends it',
    )
  const secrets = deriveSecrets(old, next)
  const keepNew = (): void => {
    if (secret === undefined && kept === undefined) writeNewSecret(dataDir, next)
  }
  return { secrets, newCheck: secrets.other?.check ?? '', old: deriveSecrets(old), keepNew }
}

function secretOfFile(dataDir: string): string {
  if (existsSync(join(dataDir, 'secret'))) return secretOfDataFolder(dataDir)
  throw new Error(
    `set GATEWAY_SECRET to the present secret: it is neither there nor in the file "secret" of ${dataDir}`,
  )
}
