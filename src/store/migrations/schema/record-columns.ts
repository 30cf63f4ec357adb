import type { Stored } from '../../../domain/records/field-types.ts'
import type { Column, RecordColumns } from '../../../domain/records/record.ts'

/** Columns of a record's table, in the format of `Table.columns`. */
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
