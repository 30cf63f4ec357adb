/** Differences between databases in the definition of tables. */
export interface ColumnTypes {
  /** Generated id, never reused. */
  readonly id: string
  /** 64-bit integer: quota, seconds, milliseconds, counts. */
  readonly integer: 'integer' | 'bigint'
  /** Text that sorts by its bytes. */
  readonly sorted: string
  /**
   * Ends of the table definitions: with rows in the order of the key, with rows in the order of insertion,
   * and without strict types.
   */
  readonly ends: Readonly<Record<'keyed' | 'counted' | 'plain', string>>
  /** True = several nodes write the database and borrow from its bank. */
  readonly isShared: boolean
}

/** Types for SQLite. Tables are strict, else SQLite would accept values of any type in any column. */
export const SQLITE_TYPES: ColumnTypes = {
  id: 'integer primary key autoincrement',
  integer: 'integer',
  sorted: 'text',
  ends: { keyed: 'strict, without rowid', counted: 'strict', plain: '' },
  isShared: false,
}

/** Types for PostgreSQL. The pool parses `bigint` as a number and throws beyond 2^53. */
export const POSTGRES_TYPES: ColumnTypes = {
  id: 'bigserial primary key',
  integer: 'bigint',
  sorted: 'text collate "C"',
  ends: { keyed: '', counted: '', plain: '' },
  isShared: true,
}
