import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { connectionPool } from '../store/postgres/pool.ts'
import { contentStatements, HEAD_COLUMNS } from './content-statements.ts'
import type { ContentEntry, ContentEntryHead } from './entries.ts'
import type { ContentDeletion } from './messages.ts'
import { newInstallationName } from './installation-name.ts'
import { dayText, removalDaysOfCall } from './retention.ts'
import type {
  DeletionMark,
  DataKeyOwner,
  ContentDatabase,
  ContentTransaction,
  StoredDataKey,
} from './content-database.ts'

/**
 * Timeout of a statement in milliseconds. It is long, because a batch may be large and no call waits for it.
 */
const STATEMENT_MS = 60_000
/**
 * Ids of PostgreSQL advisory locks: one for creating the schema, one for writing. Many nodes may hold the
 * write lock together, but a deletion needs it alone.
 */
const SCHEMA_LOCK = 5_202_611_200_006n
const WRITE_LOCK = 5_202_611_200_007n
const DAY_MS = 86_400_000
/** Maximum wait in milliseconds for readers of the key table before it is rewritten. */
const REWRITE_LOCK_MS = 3_000

// `key_id` is not a foreign key, so that keys can be destroyed while entries still refer to them.
const SCHEMA = [
  `create table if not exists content_keys (
    id text primary key, user_id bigint, day bigint, end_day bigint, cipher text, number bigserial)`,
  'create index if not exists content_keys_by_user on content_keys (user_id, day)',
  `create table if not exists content_deletions (
    id bigserial primary key, user_id bigint, token_id bigint, from_ms bigint, to_ms bigint, at_ms bigint, done boolean)`,
  'create table if not exists content_installation (number bigint primary key, name text)',
  // One row for each removal of keys after which the key table was not rewritten yet.
  'create table if not exists content_rewrites (id bigserial primary key)',
  `create table if not exists content_entries (
    id text, drop_day bigint, user_id bigint, token_id bigint, started_ms bigint, expires_ms bigint, what text,
    bytes bigint, sha256 text, lengths text, key_id text, object text, object_at bigint, object_bytes bigint,
    sealed bytea, primary key (id, drop_day))
    partition by list (drop_day)`,
  'create index if not exists content_entries_by_key on content_entries (key_id)',
]

const HEAD = `drop_day as "dropDay", ${HEAD_COLUMNS}`
const SQL = contentStatements({
  keys: 'content_keys',
  entries: 'content_entries',
  deletions: 'content_deletions',
})

interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

type Query = (sql: string, values?: readonly unknown[]) => Promise<Result['rows']>

/** Stores content in PostgreSQL, with a table partition for each day on which content is removed. */
export class PostgresContentDatabase implements ContentDatabase {
  readonly #pool: PostgresPool
  /** Days whose partitions are known to exist. */
  readonly #partitions = new Set<number>()

  private constructor(pool: PostgresPool) {
    this.#pool = pool
  }

  /** Prepares the connection pool. The tables are created when content is first written. */
  static open(url: string): PostgresContentDatabase {
    return new PostgresContentDatabase(connectionPool(url, { statementMs: STATEMENT_MS }))
  }

  addressOf({ id, dropDay }: ContentEntryHead): string {
    return `${partitionName(dropDay)}#${id}`
  }

  write<Work>(work: (writer: ContentTransaction) => Promise<Work>): Promise<Work> {
    return this.#withClient(async (query) => {
      await this.#prepare(query)
      await query('begin')
      try {
        const writer = new PostgresWriter(query, (day) => this.#partition(query, day))
        const result = await work(writer)
        if (writer.hasRemovedKeys) await query(TO_REWRITE)
        await query('commit')
        if (writer.hasRemovedKeys) await rewriteKeys(query)
        return result
      } catch (error) {
        this.#partitions.clear()
        await query('rollback').catch(() => {})
        throw error
      }
    })
  }

  heads(ids: readonly string[]): Promise<readonly ContentEntryHead[]> {
    const days = [...new Set(ids.flatMap(removalDaysOfCall))]
    return this.#read(
      `select ${HEAD} from content_entries where id = any($1::text[]) and drop_day = any($2::bigint[])`,
      [ids, days],
    )
  }

  async sealedOf(head: ContentEntryHead): Promise<Buffer | undefined> {
    const [row] = await this.#read<{ sealed: Buffer }>(SEALED, [head.id, head.dropDay])
    return row?.sealed
  }

  keys(ids: readonly string[]): Promise<readonly StoredDataKey[]> {
    return this.#read(`${SQL.selectKeys} where id = any($1::text[])`, [ids])
  }

  async marks(): Promise<readonly DeletionMark[]> {
    return marksOf(await this.#read(SQL.marks, []))
  }

  async objects(dropDay: number): Promise<ReadonlySet<string>> {
    const rows = await this.#read<{ object: string }>(`${SQL.objects} and drop_day = ?`, [dropDay])
    return new Set(rows.map(({ object }) => object))
  }

  installation(): Promise<string> {
    return this.#withClient(async (query) => {
      await this.#prepare(query)
      await query('insert into content_installation values (1, $1) on conflict do nothing', [
        newInstallationName(),
      ])
      const [row] = await query('select name from content_installation')
      return String(row?.['name'])
    })
  }

  async users(): Promise<readonly number[]> {
    const rows = await this.#read<{ id: number }>(SQL.usersOfKeys, [])
    return rows.map(({ id }) => id)
  }

  prune(today: number, marksMs: number): Promise<number> {
    return this.#withClient(async (query) => {
      if (!(await exists(query))) return 0
      const keys = await query(SQL.removeKeysUntil, [today])
      if (keys.length > 0) await query(TO_REWRITE)
      await rewriteKeys(query)
      await query(SQL.removeMarks, [true, marksMs])
      const past = await partitionsUntil(query, today)
      for (const name of past) await query(`drop table if exists ${name}`)
      this.#partitions.clear()
      return keys.length + past.length
    })
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  /** Creates the tables if they do not exist. */
  async #prepare(query: Query): Promise<void> {
    if (this.#partitions.size > 0 || (await exists(query))) return
    await query('begin')
    try {
      await query('select pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
      for (const statement of SCHEMA) await query(statement)
      await query('commit')
    } catch (error) {
      await query('rollback').catch(() => {})
      throw error
    }
  }

  async #partition(query: Query, day: number): Promise<void> {
    if (this.#partitions.has(day)) return
    const name = partitionName(day)
    const [found] = await query('select to_regclass($1) as name', [name])
    if (found?.['name'] === null) {
      await query('select pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
      await query(`create table if not exists ${name} partition of content_entries for values in (${day})`)
    }
    this.#partitions.add(day)
  }

  async #read<Row>(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#withClient(async (query) => {
      try {
        return (await query(sql, values)) as readonly Row[]
      } catch (error) {
        if (isUndefinedTable(error)) return []
        throw error
      }
    })
  }

  async #withClient<Work>(work: (query: Query) => Promise<Work>): Promise<Work> {
    const client = await this.#pool.connect()
    try {
      return await work(queryOf(client))
    } finally {
      client.release()
    }
  }
}

const SEALED = `${SQL.sealedOf} and drop_day = ?`

/** The statement with `$1`, `$2` … in place of each `?`. */
function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}

function queryOf(client: PostgresPoolClient): Query {
  return async (sql, values = []) => {
    const { rows } = (await client.query(numbered(sql), values as never)) as unknown as Result
    return rows
  }
}

function partitionName(day: number): string {
  return `content_entries_${dayText(day).replaceAll('-', '')}`
}

async function exists(query: Query): Promise<boolean> {
  const [row] = await query("select to_regclass('content_entries') as name")
  return row?.['name'] !== null
}

function isUndefinedTable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42P01'
}

/** The names of partitions whose day of removal is `today` or earlier. */
async function partitionsUntil(query: Query, today: number): Promise<readonly string[]> {
  const rows = await query(
    `select partition.relname as name from pg_inherits
     join pg_class as partition on partition.oid = pg_inherits.inhrelid
     where pg_inherits.inhparent = 'content_entries'::regclass`,
  )
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = /^content_entries_(\d{4})(\d\d)(\d\d)$/.exec(String(name)) ?? []
    const dropDay = Date.parse(`${year}-${month}-${day}`) / DAY_MS
    return dropDay <= today ? [String(name)] : []
  })
}

const TO_REWRITE = 'insert into content_rewrites default values'

/**
 * Writes the key table to a new file, because PostgreSQL keeps the bytes of deleted keys in its file until then. Unlike
 * `vacuum full`, this also removes rows that another transaction might still see. If it fails, for example because the
 * table is read all the time or the disk is full, the next call tries again.
 */
async function rewriteKeys(query: Query): Promise<void> {
  const [row] = await query('select max(id) as last from content_rewrites')
  const last = row?.['last']
  if (typeof last !== 'number') return
  try {
    await query('begin')
    await query(`set local lock_timeout = ${REWRITE_LOCK_MS}`)
    for (const statement of REWRITE) await query(statement)
    await query('delete from content_rewrites where id <= $1', [last])
    await query('commit')
  } catch {
    // The rows of content_rewrites stay, so that the next call tries again.
    await query('rollback').catch(() => {})
  }
}

const REWRITE = [
  'lock table content_keys in access exclusive mode',
  'create temporary table kept_content_keys on commit drop as select * from content_keys',
  'truncate content_keys',
  'insert into content_keys select * from kept_content_keys',
]

function marksOf(rows: readonly Readonly<Record<string, unknown>>[]): DeletionMark[] {
  return rows.map((row) => ({ ...row, tokenId: row['tokenId'] ?? undefined }) as unknown as DeletionMark)
}

function placeOf({ object, objectAt, objectBytes, sealed }: ContentEntry): readonly unknown[] {
  return [object, objectAt, objectBytes, sealed]
}

/** Reads and writes within one transaction. */
class PostgresWriter implements ContentTransaction {
  hasRemovedKeys = false
  readonly #query: Query
  readonly #partition: (day: number) => Promise<void>
  #isLocked = false

  constructor(query: Query, partition: (day: number) => Promise<void>) {
    this.#query = query
    this.#partition = partition
  }

  async keysOf(owners: readonly DataKeyOwner[]): Promise<readonly StoredDataKey[]> {
    await this.#lock('shared')
    const rows = await this.#query(
      `${SQL.selectKeys}
       join unnest($1::bigint[], $2::bigint[], $3::bigint[]) as owner (u, d, e)
       on user_id = u and day = d and end_day = e order by number`,
      [owners.map(({ userId }) => userId), owners.map(({ day }) => day), owners.map(({ endDay }) => endDay)],
    )
    return rows as unknown as StoredDataKey[]
  }

  async keysOfUser(userId: number, fromDay: number, toDay: number): Promise<readonly StoredDataKey[]> {
    await this.#lock('alone')
    const rows = await this.#query(SQL.keysOfUser, [userId, fromDay, toDay])
    return rows as unknown as StoredDataKey[]
  }

  async addKeys(keys: readonly StoredDataKey[]): Promise<void> {
    for (const { id, userId, day, endDay, cipher } of keys)
      await this.#query(
        'insert into content_keys (id, user_id, day, end_day, cipher) values ($1, $2, $3, $4, $5)',
        [id, userId, day, endDay, cipher],
      )
  }

  async removeKeys(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    this.hasRemovedKeys = true
    await this.#query('delete from content_keys where id = any($1::text[])', [ids])
  }

  async append(entries: readonly ContentEntry[]): Promise<void> {
    for (const entry of entries) {
      await this.#partition(entry.dropDay)
      const { id, dropDay, userId, tokenId, startedMs, expiresMs, what, bytes, sha256, lengths, keyId } =
        entry
      const head = [id, dropDay, userId, tokenId, startedMs, expiresMs, what, bytes, sha256, lengths, keyId]
      await this.#query(
        `insert into content_entries values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         on conflict (id, drop_day) do update set key_id = excluded.key_id, object = excluded.object,
         object_at = excluded.object_at, object_bytes = excluded.object_bytes, sealed = excluded.sealed`,
        [...head, ...placeOf(entry)],
      )
    }
  }

  async entriesOfKey(keyId: string): Promise<readonly ContentEntryHead[]> {
    const rows = await this.#query(`select ${HEAD} from content_entries where key_id = $1`, [keyId])
    return rows as unknown as ContentEntryHead[]
  }

  async sealedOf({ id, dropDay }: ContentEntryHead): Promise<Buffer | undefined> {
    const [row] = await this.#query(SEALED, [id, dropDay])
    return row?.['sealed'] as Buffer | undefined
  }

  async replace(entry: ContentEntry): Promise<void> {
    await this.#query(`${SQL.replaceEntry} and drop_day = ?`, [
      entry.keyId,
      ...placeOf(entry),
      entry.id,
      entry.dropDay,
    ])
  }

  async removeEntriesOfKeys(keyIds: readonly string[]): Promise<void> {
    if (keyIds.length > 0)
      await this.#query('delete from content_entries where key_id = any($1::text[])', [keyIds])
  }

  async marks(): Promise<readonly DeletionMark[]> {
    await this.#lock('shared')
    return marksOf(await this.#query(SQL.marks))
  }

  async addMark({ userId, tokenId, fromMs, toMs }: ContentDeletion, atMs: number): Promise<number> {
    await this.#lock('alone')
    const [row] = await this.#query(SQL.addMark, [userId, tokenId ?? null, fromMs, toMs, atMs, false])
    return Number(row?.['id'])
  }

  async finishMark(id: number): Promise<void> {
    await this.#query(SQL.finishMark, [true, id])
  }

  // Nodes may write at the same time as each other, but not at the same time as a deletion.
  async #lock(how: 'shared' | 'alone'): Promise<void> {
    if (this.#isLocked) return
    this.#isLocked = true
    const name = how === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock'
    await this.#query(`select ${name}($1)`, [WRITE_LOCK])
  }
}
