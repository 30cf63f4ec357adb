import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { postgresUrl } from '../database-name.ts'

/** A row of another gateway's database; what stands in it is anybody's guess. */
export type SourceRow = Readonly<Record<string, unknown>>

/** Another gateway's database as it is at one moment. It is read and never written. */
export interface SourceDatabase {
  /** The columns that a table has; none if there is no such table. */
  columnsOf(table: string): Promise<readonly string[]>
  /** All rows of a table, of these columns, in the order of `id` where it has one. */
  rows(table: string, columns: readonly string[]): Promise<readonly SourceRow[]>
  close(): Promise<void>
}

/** Opens a SQLite file, or the database of a `postgres:` URL. Rejects with a sentence for the operator. */
export async function openSourceDatabase(place: string): Promise<SourceDatabase> {
  const url = postgresUrl(place)
  if (url !== undefined) {
    const { openPostgresSource } = await import('./postgres-source.ts')
    return openPostgresSource(url)
  }
  if (/^[a-z]+:\/\//i.test(place) || /@tcp\(/.test(place)) {
    throw new Error(
      'expected a SQLite file or a URL such as postgres://user@host/database; MySQL is not read: ' +
        'let the old gateway move to one of these first, or convert a dump of its tables',
    )
  }
  const path = resolve(place.replace(/^sqlite:/i, ''))
  if (!existsSync(path)) throw new Error(`there is no file ${path}`)
  const { openSqliteSource } = await import('./sqlite-source.ts')
  return openSqliteSource(path)
}
