import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from '../../store/schema.ts'
import type { CopiedTable } from './tables.ts'

/** A row as the drivers of both databases give it: numbers, texts and nulls. */
export type Row = Readonly<Record<string, unknown>>

type Db = Kysely<Database>

/** The columns of a table, by name. */
export async function columnsOf(db: Db, name: string): Promise<readonly string[]> {
  const tables = await db.introspection.getTables()
  return tables.find((table) => table.name === name)?.columns.map((column) => column.name) ?? []
}

/** How many rows a table has. */
export async function countRows(db: Db, name: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(db)
  return rows[0]?.count ?? 0
}

/** All rows in the order of their key, some at a time. The order is the database's own. */
export async function* readPages(db: Db, table: CopiedTable, columns: readonly string[]): AsyncGenerator<Row[]> {
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

/** Those of the rows that the database has, by key, whatever else they say. */
export async function rowsWithKeys(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
  wanted: readonly Row[],
): Promise<ReadonlyMap<string, Row>> {
  const [first = '', ...more] = table.key
  const one = (row: Row): RawBuilder<unknown> =>
    sql`(${sql.join(
      table.key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    )})`
  const those =
    more.length === 0
      ? sql`${sql.ref(first)} in (${sql.join(wanted.map((row) => row[first]))})`
      : sql.join(wanted.map(one), sql` or `)
  const { rows } =
    await sql<Row>`select ${columnList(columns)} from ${sql.table(table.name)} where ${those}`.execute(db)
  return new Map(rows.map((row) => [keyOf(table, row), row]))
}

/** Writes the rows whose keys are not there yet, all or none. */
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

/** A row's key as a text, to tell rows apart by. */
export function keyOf({ key }: CopiedTable, row: Row): string {
  return JSON.stringify(key.map((name) => row[name]))
}

function columnList(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((name) => sql.ref(name)))
}
