import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { ACCOUNTS } from './bank/accounts.ts'
import { ACQUIRE } from './bank/take-lease.ts'
import { APPLY } from './bank/apply.ts'
import { statementsOf } from './bank/bank-function.ts'
import { changes } from './bank/changes.ts'
import { LOST } from './bank/lost.ts'
import { RELEASE } from './bank/release.ts'
import { TABLES } from './bank/tables.ts'
import type { ColumnTypes } from './column-types.ts'

/** Creates the bank that nodes of a cluster borrow from; does nothing in a database of one node. */
export function bank({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      if (isShared) await makeBank(db)
    },
  }
}

async function makeBank(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  const schema = rows[0]?.name ?? 'public'
  const functions = [...ACCOUNTS, ...LOST, ...ACQUIRE, ...APPLY, ...RELEASE]
  const statements = [...TABLES, ...functions.flatMap((one) => statementsOf(one, schema)), ...changes(schema)]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
