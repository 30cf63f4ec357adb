import type { Stored } from '../../../domain/records/field-types.ts'
import type { Column } from '../../../domain/records/record.ts'

/** Columns of a record's table, as `Table.columns` has them. */
export function recordColumns({
  columns,
}: {
  readonly columns: readonly Column[]
}): Readonly<Record<string, string>> {
  return Object.fromEntries(columns.map((column) => [column.name, typeOf(column)]))
}

function typeOf({ type, key, default: value }: Column): string {
  // The database makes the ids of accounts.
  if (key === 'primary' && type.column === 'integer') return 'id'
  const [, table, column] = /^references (\w+)\.(\w+)$/.exec(key ?? '') ?? []
  return [
    type.column,
    ...(key === 'primary' ? ['primary key'] : []),
    ...(key === 'unique' ? ['unique'] : []),
    ...(table ? [`references ${table} (${column})`] : []),
    ...(value === undefined || value === null ? [] : [`default ${literal(type.encode(value))}`]),
  ]
    .join(' ')
    .concat(type.isNullable ? '?' : '')
}

function literal(value: Stored): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)
}
