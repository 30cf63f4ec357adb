import { type Kysely, sql } from 'kysely'

/** PL/pgSQL function of the bank. */
export interface BankFunction {
  /** Name with parameters. */
  readonly name: string
  readonly returns: string
  readonly body: string
}

/**
 * Returns the statements that create the function, in place of one of the same name. It runs with its owner's
 * rights and a fixed search path, and nobody may call it without a grant.
 */
export function statementsOf({ name, returns, body }: BankFunction, schema: string): readonly string[] {
  return [
    `create or replace function ${name} returns ${returns} language plpgsql security definer
       set search_path = pg_catalog, ${quoted(schema)}, pg_temp as $bank$${body}
$bank$`,
    `revoke all on function ${signature(name)} from public`,
  ]
}

/** Replaces functions of the bank by those of this version, or creates them. */
export async function remakeFunctions(
  db: Kysely<unknown>,
  functions: readonly BankFunction[],
): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  for (const one of functions) {
    for (const statement of statementsOf(one, rows[0]?.name ?? 'public')) await sql.raw(statement).execute(db)
  }
}

/** Returns the function's name and parameter types, for grants. */
export function signature(name: string): string {
  const [, called = '', parameters = ''] = /^(\w+)\((.*)\)$/s.exec(name) ?? []
  const types = parameters.split(',').map((parameter) => parameter.trim().split(' ').slice(1).join(' '))
  return `${called}(${types.join(', ')})`
}

/** Quotes an SQL identifier. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
