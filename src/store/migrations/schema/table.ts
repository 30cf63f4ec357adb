import { type Kysely, sql } from 'kysely'
import type { Stored } from '../../../domain/records/field-types.ts'
import type { Column, RecordColumns } from '../../../domain/records/record.ts'

/** Definition of a table. */
export interface Table {
  readonly name: string
  /**
   * Types of the columns, with their constraints. A column is not null unless its type ends with `?`. `id` is
   * a generated id, `integer` has 64 bits, `small` has 32 where that saves space, and `sorted` is a text that
   * sorts by its bytes.
   */
  readonly columns: Readonly<Record<string, string>>
  /** Columns of the primary key, if there are several. */
  readonly key?: readonly string[]
  /**
   * Storage of the rows in SQLite: in the order of the key (`keyed`, the default), in the order of insertion
   * (`counted`), or without strict types (`plain`).
   */
  readonly rows?: 'keyed' | 'counted' | 'plain'
  /** How a shared database partitions the table, as SQL. */
  readonly partitionedBy?: string
  /**
   * SQL of each index by its name, without the beginning of the statement: the columns, and a condition if
   * there is one.
   */
  readonly indexes?: Readonly<Record<string, string>>
}

/** Creates tables with their indexes. */
export async function createTables(
  db: Kysely<unknown>,
  tables: readonly Table[],
  types: ColumnTypes,
): Promise<void> {
  for (const table of tables) {
    await sql.raw(tableStatement(table, types)).execute(db)
    for (const [name, on] of Object.entries(table.indexes ?? {}))
      await sql.raw(`create index ${name} on ${table.name} ${on}`).execute(db)
  }
}

/** Returns the SQL statement that creates the table. */
export function tableStatement(
  { name, columns, key, rows, partitionedBy }: Table,
  { ends, ...types }: ColumnTypes,
): string {
  const lines = Object.entries(columns).map(([column, type]) => `${column} ${columnDefinition(type, types)}`)
  if (key) lines.push(`constraint ${name}_key primary key (${key.join(', ')})`)
  const end = partitionedBy
    ? `partition by ${partitionedBy}`
    : ends[rows ?? (columns['id'] === 'id' ? 'counted' : 'keyed')]
  return `create table ${name} (${lines.join(', ')}) ${end}`
}

/** Adds those of a record's columns that its table lacks. `createSchema` creates all columns of a new database. */
export async function addMissingColumns(
  db: Kysely<unknown>,
  record: RecordColumns & { readonly table: string },
  names: readonly string[],
  types: ColumnTypes,
): Promise<void> {
  const tables = await db.introspection.getTables()
  const present = new Set(tables.find(({ name }) => name === record.table)?.columns.map(({ name }) => name))
  const columns = recordColumns(record)
  for (const name of names.filter((one) => !present.has(one)))
    await sql
      .raw(`alter table ${record.table} add column ${name} ${columnDefinition(columns[name] ?? '', types)}`)
      .execute(db)
}

/** Returns the SQL of a column's type and constraints. `type`: as in `Table.columns`. */
function columnDefinition(type: string, { id, integer, sorted }: Omit<ColumnTypes, 'ends'>): string {
  if (type === 'id') return id
  const said = type
    .replace(/^integer\b/, integer)
    .replace(/^small\b/, 'integer')
    .replace(/^sorted\b/, sorted)
  return said.endsWith('?') ? said.slice(0, -1) : `${said} not null`
}

/** Columns for the table of a record, in the format of `Table.columns`. */
export function recordColumns({ columns }: RecordColumns): Readonly<Record<string, string>> {
  return Object.fromEntries(columns.map((column) => [column.name, typeOf(column)]))
}

function typeOf({ type, key, default: value }: Column): string {
  // The database generates the ids of accounts.
  if (key === 'primary key' && type.column === 'integer') return 'id'
  const constraint = key === undefined || key === 'part' ? '' : ` ${key}`
  const usual = value === undefined || value === null ? '' : ` default ${literal(type.encode(value))}`
  return `${type.column}${constraint}${usual}${type.isNullable ? '?' : ''}`
}

function literal(value: Stored): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)
}

/** How databases differ in the definition of tables. */
export interface ColumnTypes {
  /** Type of an id that the database generates and never uses again. */
  readonly id: string
  /** Type of a 64-bit integer: quota, seconds, milliseconds, counts. */
  readonly integer: 'integer' | 'bigint'
  /** Type of a text that sorts by its bytes. */
  readonly sorted: string
  /** SQL at the end of a table's definition, by how its rows are stored (`Table.rows`). */
  readonly ends: Readonly<Record<'keyed' | 'counted' | 'plain', string>>
  /** Whether several nodes write to the database and borrow quota from its bank. */
  readonly isShared: boolean
}

/** Types for SQLite. Tables are strict, because SQLite would otherwise accept any type in any column. */
export const SQLITE_TYPES: ColumnTypes = {
  id: 'integer primary key autoincrement',
  integer: 'integer',
  sorted: 'text',
  ends: { keyed: 'strict, without rowid', counted: 'strict', plain: '' },
  isShared: false,
}

/** Types for PostgreSQL. The connection pool converts `bigint` to a number, and throws beyond 2^53. */
export const POSTGRES_TYPES: ColumnTypes = {
  id: 'bigserial primary key',
  integer: 'bigint',
  sorted: 'text collate "C"',
  ends: { keyed: '', counted: '', plain: '' },
  isShared: true,
}
