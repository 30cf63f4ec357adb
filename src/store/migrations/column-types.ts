import { type ColumnDefinitionBuilder, type Expression, sql } from 'kysely'

/** Where the databases differ in how a table is made; a migration says everything else once. */
export interface ColumnTypes {
  /** An id that the database counts up, never giving one twice. */
  readonly id: 'integer' | 'bigserial'
  readonly asId: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder
  /** 64 bits: money, seconds, milliseconds, counts. */
  readonly integer: 'integer' | 'bigint'
  /** What ends the definition of a table whose rows are found by a key that the database counts up. */
  readonly counted: Expression<unknown>
  /** The same for a table whose rows are kept in the order of a key that we make. */
  readonly keyed: Expression<unknown>
  /** Several nodes may write it at once, and borrow from it. */
  readonly isShared: boolean
}

/** Strict: SQLite would otherwise keep any kind of value in any column. */
export const SQLITE_TYPES: ColumnTypes = {
  id: 'integer',
  asId: (column) => column.primaryKey().autoIncrement(),
  integer: 'integer',
  counted: sql`strict`,
  keyed: sql`strict, without rowid`,
  isShared: false,
}

/** A `bigint` arrives as text unless the driver is told to read it as a number, and to throw beyond 2^53. */
export const POSTGRES_TYPES: ColumnTypes = {
  id: 'bigserial',
  asId: (column) => column.primaryKey(),
  integer: 'bigint',
  counted: sql``,
  keyed: sql``,
  isShared: true,
}
