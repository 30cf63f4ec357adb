import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { createPrivateFile, keepPrivate } from '../store/private-file.ts'
import { contentStatements, HEAD_COLUMNS } from './content-statements.ts'
import type { ContentEntry, ContentEntryHead } from './entries.ts'
import type { ContentDeletion } from './messages.ts'
import { newInstallationName } from './installation-name.ts'
import { dayOf, dayText, removalDaysOfCall } from './retention.ts'
import type {
  DeletionMark,
  DataKeyOwner,
  ContentDatabase,
  ContentTransaction,
  StoredDataKey,
} from './content-database.ts'

/** Maximum wait in milliseconds for another thread of this gateway that has locked a file. */
const BUSY_TIMEOUT_MS = 10_000
/** Maximum number of files that are kept open. */
const MAX_OPEN = 16
const FILE = /^(\d{4}-\d\d-\d\d)\.db$/
const DAY_MS = 86_400_000

const ENTRIES = `CREATE TABLE IF NOT EXISTS entries (
  id TEXT PRIMARY KEY, user_id INTEGER, token_id INTEGER, started_ms INTEGER, expires_ms INTEGER, what TEXT,
  bytes INTEGER, sha256 TEXT, lengths TEXT, key_id TEXT, object TEXT, object_at INTEGER, object_bytes INTEGER,
  sealed BLOB) STRICT;
  CREATE INDEX IF NOT EXISTS entries_by_key ON entries (key_id)`
const KEYS = `CREATE TABLE IF NOT EXISTS data_keys (
  id TEXT PRIMARY KEY, user_id INTEGER, day INTEGER, end_day INTEGER, cipher TEXT, number INTEGER) STRICT;
  CREATE INDEX IF NOT EXISTS data_keys_by_user ON data_keys (user_id, day);
  CREATE TABLE IF NOT EXISTS deletions (
  id INTEGER PRIMARY KEY, user_id INTEGER, token_id INTEGER, from_ms INTEGER, to_ms INTEGER, at_ms INTEGER,
  done INTEGER) STRICT;
  CREATE TABLE IF NOT EXISTS installation (number INTEGER PRIMARY KEY, name TEXT) STRICT`

const SQL = contentStatements({ keys: 'data_keys', entries: 'entries', deletions: 'deletions' })

/**
 * Stores content in files of the data folder: one file for each day on which content is removed, and one for
 * the data keys. Several threads may open them. Deleted rows are overwritten with zeros, and no journal
 * remains.
 */
export class SqliteContentDatabase implements ContentDatabase {
  readonly #folder: string
  readonly #open = new Map<number, DatabaseSync>()
  #keys: DatabaseSync | undefined
  /** Resolves when the last exclusive transaction has ended, so that they run one after another. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(folder: string) {
    this.#folder = folder
  }

  addressOf({ id, dropDay }: ContentEntryHead): string {
    return `content/${dayText(dropDay)}.db#${id}`
  }

  write<Result>(work: (writer: ContentTransaction) => Promise<Result>): Promise<Result> {
    const running = this.#turn.then(() => this.#write(work))
    this.#turn = running.catch(() => {})
    return running
  }

  // The keys are committed after the entries. A crash in between leaves entries without a key, which count as
  // missing.
  async #write<Result>(work: (writer: ContentTransaction) => Promise<Result>): Promise<Result> {
    const keys = this.#keysFile()
    const files = new Set<DatabaseSync>()
    keys.exec('BEGIN IMMEDIATE')
    try {
      const fileOf = (dropDay: number): DatabaseSync => {
        const file = this.#file(dropDay)
        if (!files.has(file)) file.exec('BEGIN IMMEDIATE')
        files.add(file)
        return file
      }
      const result = await work(new SqliteWriter(keys, fileOf, () => this.#days()))
      for (const file of files) file.exec('COMMIT')
      keys.exec('COMMIT')
      return result
    } catch (error) {
      for (const db of [...files, keys]) if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    } finally {
      this.#closeSome()
    }
  }

  heads(ids: readonly string[]): Promise<readonly ContentEntryHead[]> {
    const byDay = new Map<number, string[]>()
    const present = new Set(this.#days())
    for (const id of ids)
      for (const day of removalDaysOfCall(id))
        if (present.has(day)) byDay.set(day, [...(byDay.get(day) ?? []), id])
    const found = [...byDay].flatMap(([day, some]) =>
      this.#file(day)
        .prepare(`SELECT ${HEAD_COLUMNS} FROM entries WHERE id IN (SELECT value FROM json_each(?))`)
        .all(JSON.stringify(some))
        .map((row) => ({ ...row, dropDay: day }) as unknown as ContentEntryHead),
    )
    this.#closeSome()
    return Promise.resolve(found)
  }

  sealedOf(head: ContentEntryHead): Promise<Buffer | undefined> {
    return Promise.resolve(sealedIn(this.#file(head.dropDay), head))
  }

  keys(ids: readonly string[]): Promise<readonly StoredDataKey[]> {
    if (!existsSync(join(this.#folder, 'keys.db'))) return Promise.resolve([])
    const rows = this.#keysFile()
      .prepare(`${SQL.selectKeys} WHERE id IN (SELECT value FROM json_each(?))`)
      .all(JSON.stringify(ids))
    return Promise.resolve(rows as unknown as StoredDataKey[])
  }

  marks(): Promise<readonly DeletionMark[]> {
    return Promise.resolve(existsSync(join(this.#folder, 'keys.db')) ? marksIn(this.#keysFile()) : [])
  }

  objects(dropDay: number): Promise<ReadonlySet<string>> {
    if (!this.#days().includes(dropDay)) return Promise.resolve(new Set())
    const rows = this.#file(dropDay).prepare(SQL.objects).all()
    return Promise.resolve(new Set(rows.map((row) => String(row['object']))))
  }

  installation(): Promise<string> {
    return this.write(async () => {
      const keys = this.#keysFile()
      keys.prepare('INSERT OR IGNORE INTO installation VALUES (1, ?)').run(newInstallationName())
      return String(keys.prepare('SELECT name FROM installation').get()?.['name'])
    })
  }

  users(): Promise<readonly number[]> {
    if (!existsSync(join(this.#folder, 'keys.db'))) return Promise.resolve([])
    const rows = this.#keysFile().prepare(SQL.usersOfKeys).all()
    return Promise.resolve(rows.map((row) => Number(row['id'])))
  }

  prune(today: number, marksMs: number): Promise<number> {
    if (!existsSync(join(this.#folder, 'keys.db'))) return Promise.resolve(0)
    return this.write(async () => {
      const keys = this.#keysFile()
      const removed = keys.prepare(SQL.removeKeysUntil).all(today)
      keys.prepare(SQL.removeMarks).run(1, marksMs)
      const past = this.#days().filter((day) => day <= today)
      for (const day of past) this.#removeFile(day)
      return removed.length + past.length
    })
  }

  close(): Promise<void> {
    for (const file of this.#open.values()) file.close()
    this.#open.clear()
    this.#keys?.close()
    this.#keys = undefined
    return Promise.resolve()
  }

  /** The days of removal for which a file exists. */
  #days(): number[] {
    if (!existsSync(this.#folder)) return []
    return readdirSync(this.#folder).flatMap((name) => {
      const [, date] = FILE.exec(name) ?? []
      return date === undefined ? [] : [Math.round(Date.parse(date) / DAY_MS)]
    })
  }

  #file(dropDay: number): DatabaseSync {
    const open = this.#open.get(dropDay)
    if (open) return open
    const file = openFile(this.#folder, `${dayText(dropDay)}.db`, ENTRIES, 'NORMAL')
    this.#open.set(dropDay, file)
    return file
  }

  #keysFile(): DatabaseSync {
    return (this.#keys ??= openFile(this.#folder, 'keys.db', KEYS, 'FULL'))
  }

  /**
   * Closes files if too many are open, and files whose day of removal has come, because another thread may
   * have removed them.
   */
  #closeSome(): void {
    const today = dayOf(Date.now())
    for (const [day, file] of this.#open) {
      if (this.#open.size <= MAX_OPEN && day > today) continue
      file.close()
      this.#open.delete(day)
    }
  }

  #removeFile(day: number): void {
    this.#open.get(day)?.close()
    this.#open.delete(day)
    for (const suffix of ['', '-journal'])
      rmSync(join(this.#folder, `${dayText(day)}.db${suffix}`), { force: true })
  }
}

function openFile(folder: string, name: string, schema: string, synchronous: string): DatabaseSync {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, name)
  createPrivateFile(path)
  keepPrivate(`${path}-journal`)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  db.exec('PRAGMA trusted_schema = OFF')
  db.exec('PRAGMA secure_delete = ON')
  // Without a WAL, in which deleted keys would remain until a checkpoint.
  db.exec('PRAGMA journal_mode = DELETE')
  db.exec(`PRAGMA synchronous = ${synchronous}`)
  db.exec(schema)
  return db
}

function marksIn(keys: DatabaseSync): DeletionMark[] {
  return keys
    .prepare(SQL.marks)
    .all()
    .map(
      (row) =>
        ({
          ...row,
          tokenId: row['tokenId'] ?? undefined,
          isDone: row['isDone'] === 1,
        }) as unknown as DeletionMark,
    )
}

function sealedIn(file: DatabaseSync, { id }: Pick<ContentEntryHead, 'id'>): Buffer | undefined {
  const sealed = file.prepare(SQL.sealedOf).get(id)?.['sealed']
  return sealed instanceof Uint8Array
    ? Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length)
    : undefined
}

function placeOf({ object, objectAt, objectBytes, sealed }: ContentEntry): SQLInputValue[] {
  return [object, objectAt, objectBytes, sealed]
}

/** Reads and writes within one transaction. */
class SqliteWriter implements ContentTransaction {
  readonly #keys: DatabaseSync
  readonly #fileOf: (dropDay: number) => DatabaseSync
  readonly #days: () => readonly number[]

  constructor(keys: DatabaseSync, fileOf: (dropDay: number) => DatabaseSync, days: () => readonly number[]) {
    this.#keys = keys
    this.#fileOf = fileOf
    this.#days = days
  }

  keysOf(owners: readonly DataKeyOwner[]): Promise<readonly StoredDataKey[]> {
    const select = this.#keys.prepare(
      `${SQL.selectKeys} WHERE user_id = ? AND day = ? AND end_day = ? ORDER BY number`,
    )
    const rows = owners.flatMap(({ userId, day, endDay }) => select.all(userId, day, endDay))
    return Promise.resolve(rows as unknown as StoredDataKey[])
  }

  keysOfUser(userId: number, fromDay: number, toDay: number): Promise<readonly StoredDataKey[]> {
    const rows = this.#keys.prepare(SQL.keysOfUser).all(userId, fromDay, toDay)
    return Promise.resolve(rows as unknown as StoredDataKey[])
  }

  addKeys(keys: readonly StoredDataKey[]): Promise<void> {
    const insert = this.#keys.prepare(
      'INSERT INTO data_keys VALUES (?, ?, ?, ?, ?, (SELECT coalesce(max(number), 0) + 1 FROM data_keys))',
    )
    for (const { id, userId, day, endDay, cipher } of keys) insert.run(id, userId, day, endDay, cipher)
    return Promise.resolve()
  }

  removeKeys(ids: readonly string[]): Promise<void> {
    this.#keys
      .prepare('DELETE FROM data_keys WHERE id IN (SELECT value FROM json_each(?))')
      .run(JSON.stringify(ids))
    return Promise.resolve()
  }

  append(entries: readonly ContentEntry[]): Promise<void> {
    for (const [dropDay, some] of Map.groupBy(entries, (entry) => entry.dropDay)) {
      const insert = this.#fileOf(dropDay).prepare(
        'INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      )
      for (const entry of some) {
        const { id, userId, tokenId, startedMs, expiresMs, what, bytes, sha256, lengths, keyId } = entry
        const values: SQLInputValue[] = [id, userId, tokenId, startedMs, expiresMs, what, bytes, sha256]
        insert.run(...values, lengths, keyId, ...placeOf(entry))
      }
    }
    return Promise.resolve()
  }

  entriesOfKey(keyId: string): Promise<readonly ContentEntryHead[]> {
    const found = this.#days().flatMap((dropDay) =>
      this.#fileOf(dropDay)
        .prepare(`SELECT ${HEAD_COLUMNS} FROM entries WHERE key_id = ?`)
        .all(keyId)
        .map((row) => ({ ...row, dropDay }) as unknown as ContentEntryHead),
    )
    return Promise.resolve(found)
  }

  sealedOf(head: ContentEntryHead): Promise<Buffer | undefined> {
    return Promise.resolve(sealedIn(this.#fileOf(head.dropDay), head))
  }

  replace(entry: ContentEntry): Promise<void> {
    this.#fileOf(entry.dropDay)
      .prepare(SQL.replaceEntry)
      .run(entry.keyId, ...placeOf(entry), entry.id)
    return Promise.resolve()
  }

  removeEntriesOfKeys(keyIds: readonly string[]): Promise<void> {
    const ids = JSON.stringify(keyIds)
    for (const day of this.#days())
      this.#fileOf(day)
        .prepare('DELETE FROM entries WHERE key_id IN (SELECT value FROM json_each(?))')
        .run(ids)
    return Promise.resolve()
  }

  marks(): Promise<readonly DeletionMark[]> {
    return Promise.resolve(marksIn(this.#keys))
  }

  addMark({ userId, tokenId, fromMs, toMs }: ContentDeletion, atMs: number): Promise<number> {
    const row = this.#keys.prepare(SQL.addMark).get(userId, tokenId ?? null, fromMs, toMs, atMs, 0)
    return Promise.resolve(Number(row?.['id']))
  }

  finishMark(id: number): Promise<void> {
    this.#keys.prepare(SQL.finishMark).run(1, id)
    return Promise.resolve()
  }
}
