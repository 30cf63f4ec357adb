import { type Kysely, type RawBuilder, sql } from 'kysely'
import { seal, sealPrefix, type Secrets, unsealBytes } from '../secrets.ts'
import type { SealedRow, SealedTable } from './sealed-tables.ts'

/** Runs work in a transaction, and again if it conflicts with the transactions of running nodes. */
export type RunTransaction = (work: (db: Kysely<never>) => Promise<void>) => Promise<void>

/** What `resealTable` is given. */
export interface Resealing {
  readonly db: Kysely<never>
  readonly transaction: RunTransaction
  /** The secrets of a change that has begun: the new one, and the old one as the other. */
  readonly secrets: Secrets
  /** Called with the number of rows of each batch. */
  readonly onRows: (rows: number) => void
}

/** Counts the rows of a table that are not encrypted with the present secret. */
export async function countOldRows(db: Kysely<never>, table: SealedTable, secrets: Secrets): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table.table)} where ${isOld(table, secrets)}`.execute(db)
  return rows[0]?.count ?? 0
}

/**
 * Encrypts the rows of a table with the present secret that are encrypted with the other one, in batches of one
 * transaction each. A row that changes meanwhile is left to the next pass. Resolves to the names of rows that cannot
 * be decrypted, for which nothing can be done.
 */
export async function resealTable(table: SealedTable, { db, onRows, ...how }: Resealing): Promise<string[]> {
  const unreadable: string[] = []
  let last: SealedRow | undefined
  for (;;) {
    const rows = await oldRows(db, table, how.secrets, last)
    if (rows.length === 0) return unreadable
    const changed = rows.map((row) => ({ row, changes: resealed(table, row, how.secrets) }))
    await how.transaction(async (transaction) => {
      for (const { row, changes } of changed) if (changes) await update(transaction, table, row, changes)
    })
    for (const { row, changes } of changed)
      if (!changes) unreadable.push(`${table.table} ${keyOf(table, row).join(' ')}`)
    onRows(rows.length)
    last = rows.at(-1)
  }
}

async function oldRows(
  db: Kysely<never>,
  table: SealedTable,
  secrets: Secrets,
  last: SealedRow | undefined,
): Promise<readonly SealedRow[]> {
  const { key, column, needs = [], batch } = table
  const keys = columns(key)
  const after = last ? sql` and (${keys}) > (${sql.join(keyOf(table, last))})` : sql``
  const { rows } = await sql<SealedRow>`
    select ${columns([...key, ...needs, column])} from ${sql.table(table.table)}
    where ${isOld(table, secrets)}${after} order by ${keys} limit ${batch}`.execute(db)
  return rows
}

function isOld({ column, only }: SealedTable, secrets: Secrets): RawBuilder<unknown> {
  const value = sql.ref(column)
  const among = only ? sql` and ${sql.ref(only.column)} in (${sql.join(only.values)})` : sql``
  return sql`${value} is not null and ${value} not like ${`${sealPrefix(secrets)}%`}${among}`
}

function resealed(
  { column, context, derived }: SealedTable,
  row: SealedRow,
  secrets: Secrets,
): Readonly<Record<string, string>> | undefined {
  let plain: Buffer
  try {
    plain = unsealBytes(secrets, String(row[column]), context(row))
  } catch {
    return undefined
  }
  return { [column]: seal(secrets, plain, context(row)), ...derived?.(plain.toString('utf8'), secrets) }
}

async function update(
  db: Kysely<never>,
  table: SealedTable,
  row: SealedRow,
  changes: Readonly<Record<string, string>>,
): Promise<void> {
  const set = sql.join(Object.entries(changes).map(([name, value]) => sql`${sql.ref(name)} = ${value}`))
  const values = keyOf(table, row)
  const same = sql.join(
    table.key.map((name, index) => sql`${sql.ref(name)} = ${values[index]}`),
    sql` and `,
  )
  await sql`
    update ${sql.table(table.table)} set ${set}
    where ${same} and ${sql.ref(table.column)} = ${row[table.column]}`.execute(db)
}

function keyOf({ key }: SealedTable, row: SealedRow): (string | number)[] {
  return key.map((name) => row[name] ?? '')
}

function columns(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map((name) => sql.ref(name)))
}
