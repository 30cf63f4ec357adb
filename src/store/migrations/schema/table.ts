import { type Kysely, sql } from 'kysely'
import type { ColumnTypes } from '../column-types.ts'

/** Definition of a table. */
export interface Table {
  readonly name: string
  /**
   * Types of the columns, with their constraints. A column is not null unless its type ends with `?`. `id` is
   * a generated id, `integer` has 64 bits, `small` has 32 where that saves space, and `sorted` is a text that
   * sorts by its bytes.
   */
  readonly columns: Readonly<Record<string, string>>
  /** Primary key of several columns. */
  readonly key?: readonly string[]
  /** Order of the rows on SQLite: of the key (default), or as they are inserted. */
  readonly rows?: 'keyed' | 'counted' | 'plain'
  /** Partitions of a shared database. */
  readonly partitionedBy?: string
  /** Columns of the indexes by their names, with their conditions. */
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

/** Returns the statement that creates the table. */
export function tableStatement(
  { name, columns, key, rows, partitionedBy }: Table,
  { ends, ...types }: ColumnTypes,
): string {
  const lines = Object.entries(columns).map(([column, type]) => `${column} ${columnType(type, types)}`)
  if (key) lines.push(`constraint ${name}_key primary key (${key.join(', ')})`)
  const end = partitionedBy
    ? `partition by ${partitionedBy}`
    : ends[rows ?? (columns['id'] === 'id' ? 'counted' : 'keyed')]
  return `create table ${name} (${lines.join(', ')}) ${end}`
}

function columnType(type: string, { id, integer, sorted }: Omit<ColumnTypes, 'ends'>): string {
  if (type === 'id') return id
  const said = type
    .replace(/^integer\b/, integer)
    .replace(/^small\b/, 'integer')
    .replace(/^sorted\b/, sorted)
  return said.endsWith('?') ? said.slice(0, -1) : `${said} not null`
}
