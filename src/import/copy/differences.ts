import type { Kysely } from 'kysely'
import type { Database } from '../../store/schema.ts'
import { columnsOf, countRows, keyOf, readPages, type Row, rowsWithKeys } from './rows.ts'
import { COPIED_TABLES, type CopiedTable } from './tables.ts'

type Db = Kysely<Database>

/** Largest number of differences that are described one by one; the rest are only counted. */
const MAX_REPORTED = 20

/** Columns whose values must not be shown. */
const SECRET_COLUMNS: ReadonlySet<string> = new Set([
  'password_hash',
  'access_token_hash',
  'key_hash',
  'key_cipher',
  'keys_cipher',
  'id_hash',
])

/** Row counts of a table on both sides. */
export interface TableState {
  readonly table: string
  /** Rows in the source. */
  readonly here: number
  /** Rows in the target. */
  readonly there: number
}

/** Result of comparing a target with a source. */
export interface Comparison {
  readonly tables: readonly TableState[]
  /** Sentences about rows that the target has alone or with other values; the first ones only. */
  readonly contradictions: readonly string[]
  readonly contradictionCount: number
}

/** Tells whether the target has all rows of the source and no others. */
export function isComplete({ tables, contradictionCount }: Comparison): boolean {
  return contradictionCount === 0 && tables.every(({ here, there }) => here === there)
}

/** Compares every row of the copied tables, column by column. Ignores columns that only the target has. */
export async function compare(source: Db, target: Db): Promise<Comparison> {
  const found = new Contradictions()
  const tables: TableState[] = []
  for (const table of COPIED_TABLES) tables.push(await compareTable(source, target, table, found))
  return { tables, contradictions: found.sentences, contradictionCount: found.count }
}

async function compareTable(
  source: Db,
  target: Db,
  table: CopiedTable,
  found: Contradictions,
): Promise<TableState> {
  const columns = await columnsOf(source, table.name)
  const there = await countRows(target, table.name)
  let here = 0
  let matched = 0
  for await (const rows of readPages(source, table, columns)) {
    here += rows.length
    if (there === 0) continue
    const others = await rowsWithKeys(target, table, columns, rows)
    matched += others.size
    for (const row of rows) {
      const other = others.get(keyOf(table, row))
      if (!other) continue
      const column = columns.find((name) => row[name] !== other[name])
      if (column !== undefined) found.add(differenceBetween(table, row, other, column))
    }
  }
  if (matched < there) await findUnexpectedRows(source, target, table, found)
  return { table: table.name, here, there }
}

/** Finds rows of the target that the source does not have. */
async function findUnexpectedRows(
  source: Db,
  target: Db,
  table: CopiedTable,
  found: Contradictions,
): Promise<void> {
  for await (const rows of readPages(target, table, table.key)) {
    const known = await rowsWithKeys(source, table, table.key, rows)
    for (const row of rows) {
      if (!known.has(keyOf(table, row))) found.add(`${rowName(table, row)} exists in the target alone`)
    }
  }
}

class Contradictions {
  readonly sentences: string[] = []
  count = 0

  add(sentence: string): void {
    this.count += 1
    if (this.sentences.length < MAX_REPORTED) this.sentences.push(sentence)
  }
}

function differenceBetween(table: CopiedTable, row: Row, other: Row, column: string): string {
  const values = SECRET_COLUMNS.has(column)
    ? ''
    : ` (${displayed(row[column])} here, ${displayed(other[column])} there)`
  return `${rowName(table, row)} has another ${column}${values}`
}

function rowName(table: CopiedTable, row: Row): string {
  const key = table.key.map((name) => (SECRET_COLUMNS.has(name) ? '…' : displayed(row[name])))
  return `${table.name} ${key.join(', ')}`
}

function displayed(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
