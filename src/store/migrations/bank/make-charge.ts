import { type Kysely, sql } from 'kysely'
import { statementsOf } from './bank-function.ts'
import { CHARGE } from './charge.ts'

/** Replaces the function that charges calls by that of this version. */
export async function makeCharge(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  for (const one of CHARGE) {
    for (const statement of statementsOf(one, rows[0]?.name ?? 'public')) await sql.raw(statement).execute(db)
  }
}
