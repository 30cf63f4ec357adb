import { randomUUID } from 'node:crypto'
import { formatChange } from '../cluster/change-feed.ts'
import { RedisAnnouncements } from '../cluster/redis-announcements.ts'
import type { Environment } from '../config/environment.ts'
import type { ChangeOrigin } from '../domain/audit.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { DeclaredUser } from '../domain/records/user.ts'
import type { StoredConfiguration } from '../domain/settings.ts'
import { gatewaySecrets, secretsIfAny } from '../store/gateway-secrets.ts'
import { isSchemaCurrent } from '../store/migrations/steps.ts'
import { NodeMessages } from '../store/node-messages.ts'
import type { Db } from '../store/operations/operation.ts'
import { storedConfiguration } from '../store/operations/configuration.ts'
import { NO_AMOUNTS, type TakenIdentifiers, takenIdentifiers } from '../store/operations/find-accounts.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import { openPostgresStore } from '../store/postgres/open.ts'
import { secretState } from '../store/operations/secret-state.ts'
import { settleSecrets } from '../store/secret-state.ts'
import { hashAccessToken, keyHashes, namespaceOf, type Secrets } from '../store/secrets.ts'
import { openForReading } from '../store/sqlite/connection.ts'
import { createKysely } from '../store/sqlite/dialect.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import { isDatabaseOfGateway } from '../store/sqlite/prepare-database.ts'
import type { RowStore } from '../store/store.ts'
import {
  advanceSequences,
  databaseName,
  isEmptyDatabase,
  openTarget,
  withMappedErrors,
} from './postgres-target.ts'
import { lockFolder } from './lock-folder.ts'
import type { IdentifierHashes } from './identifier-allocator.ts'

/** The origin that the audit log states for imported objects. */
export function importOrigin(): ChangeOrigin {
  return { actorId: 0, actor: 'sluice import', via: 'command', address: '', atMs: Date.now() }
}

/** Contents of the target database before the import. */
export interface TargetState {
  readonly identifiers: TakenIdentifiers
  readonly stored: StoredConfiguration
}

/**
 * The database of this gateway, open for writing. A SQLite database is also locked against other processes.
 */
export interface WritableTarget {
  readonly rows: RowStore
  readonly hashes: IdentifierHashes
  readState(): Promise<TargetState>
  /** Ensures that the database gives new tokens only ids above `highestTokenId`. */
  reserve(highestTokenId: number): Promise<void>
  /** Notifies running nodes of the changes; rejects if that fails. A SQLite database has no other nodes. */
  notifyNodes(): Promise<void>
  close(): Promise<void>
}

const EMPTY_STATE: TargetState = {
  identifiers: { users: [], tokens: [], sums: NO_AMOUNTS },
  stored: { channels: [], entries: [] },
}

/** Describes the target database. */
export function targetName({ databaseUrl }: Environment): string {
  return sqlitePath(databaseUrl) ?? databaseName(databaseUrl)
}

/**
 * Reads the contents of the target without changing it. A new database counts as containing the users
 * declared in gateway.yaml.
 */
export async function inspectTarget(
  environment: Environment,
  seeds: readonly DeclaredUser[],
): Promise<{ readonly state: TargetState; readonly hashes: IdentifierHashes }> {
  const secrets = secretsIfAny(environment)
  const state = await readTargetState(environment, secrets)
  const isNew = state.identifiers.users.length === 0
  return {
    state: isNew ? { ...state, identifiers: identifiersOfSeeds(seeds, secrets) } : state,
    hashes: hashesOf(secrets),
  }
}

/** Opens the target for writing. If it is missing, creates it with the users declared in gateway.yaml. */
export async function openTargetToWrite(
  environment: Environment,
  seeds: readonly DeclaredUser[],
): Promise<WritableTarget> {
  const { databaseUrl, dataDir } = environment
  const path = sqlitePath(databaseUrl)
  const lock =
    path === undefined
      ? undefined
      : await lockFolder(dataDir, path, 'as it would not know of what is imported')
  try {
    const secrets = await secretsToWrite(environment)
    const rows: RowStore & { readonly bankId?: string } =
      path === undefined
        ? await openPostgresStore({ url: databaseUrl, secrets })
        : await openSqliteStore({ path, secrets, onCallingThread: true })
    if ((await rows.read('countUsers')) === 0) {
      await rows.write('seedUsers', {
        seeds,
        nowSeconds: Math.floor(Date.now() / 1000),
        origin: importOrigin(),
      })
    }
    return {
      rows,
      hashes: hashesOf(secrets),
      readState: async () => ({
        identifiers: await rows.read('takenIdentifiers'),
        stored: await rows.read('storedConfiguration'),
      }),
      reserve: (highestTokenId) => reserve(databaseUrl, highestTokenId),
      async notifyNodes() {
        const { bankId } = rows
        if (bankId !== undefined) await notifyNodes(environment, namespaceOf(secrets, bankId), secrets)
      },
      async close() {
        await rows.close()
        lock?.release()
      },
    }
  } catch (error) {
    lock?.release()
    throw error
  }
}

async function readTargetState(
  { databaseUrl }: Environment,
  secrets: Secrets | undefined,
): Promise<TargetState> {
  const path = sqlitePath(databaseUrl)
  if (path === undefined) {
    const db = openTarget(databaseUrl)
    try {
      return await withMappedErrors(async () =>
        (await isEmptyDatabase(db, databaseUrl)) ? EMPTY_STATE : await stateFrom(db, secrets),
      )
    } finally {
      await db.destroy()
    }
  }
  if (!isDatabaseOfGateway(path)) return EMPTY_STATE
  const connection = openForReading(path)
  try {
    connection.exec('BEGIN')
    return await stateFrom(createKysely(connection), secrets)
  } finally {
    connection.close()
  }
}

async function stateFrom(db: Db, secrets: Secrets | undefined): Promise<TargetState> {
  const run = await db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom('kysely_migration')
    .select('name')
    .execute()
  if (!isSchemaCurrent(run.map(({ name }) => name))) {
    throw new Error('the database is one of an older version: start the gateway once, which updates it')
  }
  if (!secrets) throw new Error('set GATEWAY_SECRET to the secret that the database was made with')
  settleSecrets(secrets, await secretState(db))
  return {
    identifiers: await takenIdentifiers(db),
    stored: await storedConfiguration(db, undefined, secrets),
  }
}

/** Ensures that new tokens get only ids above `highestTokenId`. */
export async function reserve(databaseUrl: string, highestTokenId: number): Promise<void> {
  // SQLite continues after the highest id by itself.
  if (sqlitePath(databaseUrl) !== undefined) return
  const db = openTarget(databaseUrl)
  try {
    await withMappedErrors(() => advanceSequences(db, new Map([['tokens', highestTokenId]])))
  } finally {
    await db.destroy()
  }
}

// A secret is generated only for a SQLite database. The nodes of a shared database must have the same secret,
// which the operator sets.
async function secretsToWrite(environment: Environment): Promise<Secrets> {
  if (!secretsIfAny(environment) && sqlitePath(environment.databaseUrl) === undefined)
    throw new Error('set GATEWAY_SECRET, the same as on every node of this database')
  return gatewaySecrets(environment)
}

/**
 * Returns the functions that hash keys and access tokens. Without a secret they return their input, because
 * nothing is stored in that case.
 */
function hashesOf(secrets: Secrets | undefined): IdentifierHashes {
  return {
    keys: (key) => (secrets ? keyHashes(secrets, key) : [key]),
    accessToken: (token) => (secrets ? hashAccessToken(secrets, token) : token),
  }
}

function identifiersOfSeeds(seeds: readonly DeclaredUser[], secrets: Secrets | undefined): TakenIdentifiers {
  const hashes = hashesOf(secrets)
  let last = 0
  const users = seeds.map(({ id, username, group, role, access_token: accessToken }) => {
    last = id ?? last + 1
    const accessTokenHash = accessToken === undefined ? null : hashes.accessToken(accessToken)
    return { id: last, username, group, role, isDeleted: false, accessTokenHash }
  })
  const keys = seeds.flatMap(({ tokens }) =>
    tokens.map(({ key }) => (key === undefined ? '' : (hashes.keys(key)[0] ?? ''))),
  )
  const tokens = keys.map((keyHash, index) => ({ id: index + 1, keyHash }))
  return { users, tokens, sums: NO_AMOUNTS }
}

/**
 * Makes the running nodes read everything again: over Redis if they use it, otherwise over PostgreSQL.
 * `namespace` is their namespace in Redis. Rejects if the announcement cannot be sent.
 */
async function notifyNodes(
  { databaseUrl, redisUrl }: Environment,
  namespace: string,
  secrets: Secrets,
): Promise<void> {
  const messages = new NodeMessages(secrets)
  const announcements =
    redisUrl === undefined
      ? new Announcements(databaseUrl, messages)
      : new RedisAnnouncements(redisUrl, namespace, messages)
  try {
    await announcements.firstAttempt
    await announcements.announce(formatChange(randomUUID(), { of: 'anything' }))
  } finally {
    await announcements.close()
  }
}
