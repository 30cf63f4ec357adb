import { type ColumnDefinitionBuilder, type Expression, sql } from 'kysely'

/** Differences between databases in the definition of tables. */
export interface ColumnTypes {
  /** Type of generated ids, which are never reused. */
  readonly id: 'integer' | 'bigserial'
  readonly asId: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder
  /** 64-bit integer: quota, seconds, milliseconds, counts. */
  readonly integer: 'integer' | 'bigint'
  /** End of the definition of a table with generated ids. */
  readonly counted: Expression<unknown>
  /** End of the definition of a table that is stored in the order of another key. */
  readonly keyed: Expression<unknown>
  /** True = several nodes write the database and borrow from its bank. */
  readonly isShared: boolean
}

/** Types for SQLite. Tables are strict, else SQLite would accept values of any type in any column. */
export const SQLITE_TYPES: ColumnTypes = {
  id: 'integer',
  asId: (column) => column.primaryKey().autoIncrement(),
  integer: 'integer',
  counted: sql`strict`,
  keyed: sql`strict, without rowid`,
  isShared: false,
}

/** Types for PostgreSQL. The pool parses `bigint` as a number and throws beyond 2^53. */
export const POSTGRES_TYPES: ColumnTypes = {
  id: 'bigserial',
  asId: (column) => column.primaryKey(),
  integer: 'bigint',
  counted: sql``,
  keyed: sql``,
  isShared: true,
}
