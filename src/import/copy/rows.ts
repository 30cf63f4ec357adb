import { isUtf8 } from 'node:buffer'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from '../../store/schema.ts'
import type { CopiedTable } from './tables.ts'

/** Row as the drivers of both databases return it: numbers, texts and nulls. */
export type Row = Readonly<Record<string, unknown>>

type Db = Kysely<Database>

/** Returns the names of a table's columns. */
export async function columnsOf(db: Db, name: string): Promise<readonly string[]> {
  const tables = await db.introspection.getTables()
  return tables.find((table) => table.name === name)?.columns.map((column) => column.name) ?? []
}

/** Counts the rows of a table. */
export async function countRows(db: Db, name: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Reads all rows in batches, ordered by key as this database orders texts. */
export async function* readPages(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
): AsyncGenerator<Row[]> {
  let after: RawBuilder<unknown> = sql``
  for (;;) {
    const { rows } = await sql<Row>`
      select ${columnList(columns)} from ${sql.table(table.name)} ${after}
      order by ${columnList(table.key)} limit ${sql.lit(table.batchSize)}`.execute(db)
    const last = rows.at(-1)
    if (!last) return
    yield rows
    if (rows.length < table.batchSize) return
    after = sql`where (${columnList(table.key)}) > (${sql.join(table.key.map((name) => last[name]))})`
  }
}

/** Reads the rows that have the same keys as `wanted`, by key. */
export async function rowsWithKeys(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
  wanted: readonly Row[],
): Promise<ReadonlyMap<string, Row>> {
  const [first = '', ...more] = table.key
  const hasKey = (row: Row): RawBuilder<unknown> =>
    sql`(${sql.join(
      table.key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    )})`
  const condition =
    more.length === 0
      ? sql`${sql.ref(first)} in (${sql.join(wanted.map((row) => row[first]))})`
      : sql.join(wanted.map(hasKey), sql` or `)
  const { rows } =
    await sql<Row>`select ${columnList(columns)} from ${sql.table(table.name)} where ${condition}`.execute(db)
  return new Map(rows.map((row) => [keyOf(table, row), row]))
}

/**
 * Refuses texts of SQLite that are not UTF-8, because a different text would arrive. The driver replaces such
 * bytes by U+FFFD, so only rows with that character are read again.
 */
export async function refuseBrokenTexts(db: Db, table: CopiedTable, rows: readonly Row[]): Promise<void> {
  for (const row of rows)
    for (const [column, value] of Object.entries(row)) {
      if (typeof value !== 'string' || !value.includes('\uFFFD')) continue
      const found = await sql<{ bytes: Uint8Array }>`
        select cast(${sql.ref(column)} as blob) as bytes from ${sql.table(table.name)}
        where (${columnList(table.key)}) = (${sql.join(table.key.map((name) => row[name]))})`.execute(db)
      const [{ bytes } = { bytes: undefined }] = found.rows
      if (!bytes || !isUtf8(bytes))
        throw new Error(`${table.name}.${column}: a text is not UTF-8, in the row ${keyOf(table, row)}`)
    }
}

/** Inserts all or none of the rows whose keys are missing. */
export async function insertMissing(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
  rows: readonly Row[],
): Promise<void> {
  const values = rows.map((row) => sql`(${sql.join(columns.map((name) => row[name]))})`)
  await sql`
    insert into ${sql.table(table.name)} (${columnList(columns)}) values ${sql.join(values)}
    on conflict do nothing`.execute(db)
}

/** Returns a row's key as one text. */
export function keyOf({ key }: CopiedTable, row: Row): string {
  return JSON.stringify(key.map((name) => row[name]))
}

function columnList(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((name) => sql.ref(name)))
}
