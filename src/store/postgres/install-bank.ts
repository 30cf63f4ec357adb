import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import type { FieldType } from '../../domain/records/field-types.ts'
import type { Column } from '../../domain/records/record.ts'
import { CHARGED, USAGE } from '../../domain/records/usage.ts'
import {
  RECALLING_TOKEN_COLUMNS,
  RECALLING_USER_COLUMNS,
  TOKEN_COLUMNS,
  USER_COLUMNS,
} from '../account-columns.ts'
import { ROW_COLUMNS } from '../usage-row.ts'
import { SUM_PARTS } from './sum-parts.ts'

/** Folder of the bank's SQL; the build copies it next to the modules. */
const FOLDER = new URL('bank/', import.meta.url)

const differs = (columns: readonly string[]): string =>
  columns.map((name) => `new.${name} is distinct from old.${name}`).join(' or ')

/** Columns of a call in a report. */
const CALL_COLUMNS = [...USAGE.columns, ...CHARGED.columns]

const sqlType = ({ column }: FieldType): string => (column === 'text' ? 'text' : 'bigint')

// The value of a column in a report; empty or 0 if the call does not state it.
function statedValue({ name, type }: Column): string {
  const empty = type.column === 'text' ? "''" : '0'
  return type.isNullable ? `c.${name}` : `coalesce(c.${name}, ${empty}) as ${name}`
}

/** Parts of the SQL that are generated from lists of columns; the SQL contains `{{name}}` in their place. */
const PARTS: Readonly<Record<string, string>> = {
  ...SUM_PARTS,
  call_columns: CALL_COLUMNS.map(({ name, type }) => `${name} ${sqlType(type)}`).join(', '),
  call_values: CALL_COLUMNS.map(statedValue).join(', '),
  row_columns: ROW_COLUMNS.join(', '),
  user_changed: differs(USER_COLUMNS),
  user_recalled: differs(RECALLING_USER_COLUMNS),
  token_changed: differs(TOKEN_COLUMNS),
  token_recalled: differs(RECALLING_TOKEN_COLUMNS),
}

/**
 * Creates the functions and triggers of the bank, replacing those of another version; call it in a
 * transaction. A function runs with its owner's rights and this search path, and cannot be called without a
 * grant.
 */
export async function installBank(db: Kysely<unknown>): Promise<void> {
  await sql`select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`.execute(db)
  for (const file of readdirSync(FOLDER).sort()) {
    const text = readFileSync(new URL(file, FOLDER), 'utf8')
    await sql.raw(text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => part(name))).execute(db)
  }
  await sql`
    do $$
    declare made regprocedure;
    begin
      for made in
        select oid::regprocedure from pg_proc
        where pronamespace = current_schema()::regnamespace and proname ~ '^(bank|call|alert)_' and prosecdef
      loop
        execute format('revoke all on function %s from public', made);
      end loop;
    end $$`.execute(db)
}

function part(name: string): string {
  const text = PARTS[name]
  if (text === undefined) throw new Error(`the SQL of the bank names "${name}", which is not defined`)
  return text
}
