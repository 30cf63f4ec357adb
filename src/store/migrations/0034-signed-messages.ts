import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { ANNOUNCE, MESSAGE_KEY } from './bank/announce.ts'
import { remakeFunctions } from './bank/bank-function.ts'
import { BUDGETS } from './bank/budgets.ts'
import { changesWithOperatorTerms } from './bank/changes.ts'
import type { ColumnTypes } from './column-types.ts'

/** Lets the database sign what it tells the nodes, over whatever connection an account is changed. */
export function signedMessages({ isShared }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      if (!isShared) return
      await sql.raw(MESSAGE_KEY).execute(db)
      await remakeFunctions(db, [...ANNOUNCE, ...BUDGETS])
      const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
      for (const statement of changesWithOperatorTerms(rows[0]?.name ?? 'public'))
        await sql.raw(statement).execute(db)
    },
  }
}
