import { createHash } from 'node:crypto'
import type { TestDatabase } from './engines.ts'

type Cell = string | number | boolean | readonly string[]
type LitellmRow = Readonly<Record<string, Cell>>

/** Columns that a LiteLLM proxy has in its tables, as far as an import reads them. */
const LIMITS =
  'max_budget double precision, budget_duration text, tpm_limit bigint, rpm_limit bigint, max_parallel_requests integer'
const SCHEMA = `
  create table "LiteLLM_UserTable" (user_id text primary key, user_alias text, user_email text, user_role text,
    spend double precision not null default 0, models text[], created_at timestamp(3), ${LIMITS});
  create table "LiteLLM_TeamTable" (team_id text primary key, team_alias text, spend double precision not null default 0,
    models text[], blocked boolean not null default false, model_id integer, ${LIMITS});
  create table "LiteLLM_BudgetTable" (budget_id text primary key, ${LIMITS});
  create table "LiteLLM_VerificationToken" (token text primary key, key_name text, key_alias text,
    spend double precision not null default 0, total_spend double precision not null default 0, expires timestamp(3),
    models text[], aliases jsonb not null default '{}', user_id text, team_id text, blocked boolean, budget_id text,
    created_by text, created_at timestamp(3), ${LIMITS});
  create table "LiteLLM_ProxyModelTable" (model_id text primary key, model_name text, litellm_params jsonb);
  create table "LiteLLM_Config" (param_name text primary key, param_value jsonb);
  create table "LiteLLM_SpendLogs" (request_id text primary key);
`

/** The database of a LiteLLM proxy. */
export interface LitellmDatabase {
  readonly place: string
  insert(table: string, row: LitellmRow): Promise<void>
  /** Adds an API key, of which the proxy keeps the SHA-256 digest. */
  addKey(key: string, row: LitellmRow): Promise<void>
}

/** Makes the tables of a LiteLLM proxy in an empty database of PostgreSQL; `schema`: the proxy's own statements. */
export async function litellmDatabase(
  { place, sql }: TestDatabase,
  schema: readonly string[] = [SCHEMA],
): Promise<LitellmDatabase> {
  for (const statements of schema) await sql(statements)
  const insert = async (table: string, row: LitellmRow): Promise<void> => {
    const names = Object.keys(row).map((name) => `"${name}"`)
    await sql(
      `insert into "LiteLLM_${table}" (${names.join(', ')}) values (${Object.values(row).map(literal).join(', ')})`,
    )
  }
  return {
    place,
    insert,
    addKey: (key, row) =>
      insert('VerificationToken', {
        token: createHash('sha256').update(key).digest('hex'),
        key_name: `sk-...${key.slice(-4)}`,
        ...row,
      }),
  }
}

function literal(cell: Cell): string {
  if (typeof cell === 'string') return `'${cell.replaceAll("'", "''")}'`
  return typeof cell === 'object' ? `array[${cell.map(literal).join(', ')}]::text[]` : String(cell)
}
