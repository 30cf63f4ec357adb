import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { sqlitePath } from '../domain/database-url.ts'
import { postgresUrl } from './database-name.ts'
import { mysqlAddress } from './mysql-address.ts'

/** Row of another gateway's database, unchecked. */
export type SourceRow = Readonly<Record<string, unknown>>

/** Snapshot of another gateway's database, read-only. */
export interface SourceDatabase {
  /** Names of a table's columns; empty if there is no such table. */
  columnsOf(table: string): Promise<readonly string[]>
  /** Reads these columns of all rows, ordered by `id` if that is among them. */
  rows(table: string, columns: readonly string[]): Promise<readonly SourceRow[]>
  /** Names of the plain tables that can be read, in order; at most `MAX_TABLES`. */
  tables(): Promise<readonly string[]>
  /** Counts the rows of a plain table, up to one more than `most`. */
  countRows(table: string, most: number): Promise<number>
  close(): Promise<void>
}

/** Maximum number of tables that are named; both families have some thirty. */
export const MAX_TABLES = 200

/** Opens a SQLite file, or the database of a URL. Rejects with a sentence for the operator. */
export async function openSourceDatabase(place: string): Promise<SourceDatabase> {
  const url = postgresUrl(place)
  if (url !== undefined) {
    const { openPostgresSource } = await import('./postgres-source.ts')
    return openPostgresSource(url)
  }
  const address = mysqlAddress(place)
  if (address) {
    const { openMysqlSource } = await import('./mysql-source.ts')
    return openMysqlSource(address)
  }
  if (/^[a-z]+:\/\//i.test(place)) {
    throw new Error(
      'expected a SQLite file, or a URL such as postgres://user@host/database or mysql://user@host/database',
    )
  }
  const path = resolve(sqlitePath(place) ?? place)
  if (!existsSync(path)) throw new Error(`there is no file ${path}`)
  const { openSqliteSource } = await import('./sqlite-source.ts')
  return openSqliteSource(path)
}
