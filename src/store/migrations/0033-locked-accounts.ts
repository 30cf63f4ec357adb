import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { ACCOUNTS } from './bank/accounts.ts'
import { APPLY } from './bank/apply.ts'
import { remakeFunctions } from './bank/bank-function.ts'
import { LOST } from './bank/lost.ts'
import { RELEASE } from './bank/release.ts'
import { ACQUIRE } from './bank/take-lease.ts'
import type { ColumnTypes } from './column-types.ts'

/** Lets reports, loans and releases go on around accounts whose rows another session keeps locked. */
export function lockedAccounts({ isShared }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      if (!isShared) return
      await sql`drop function if exists bank_withdraw_estimates(text)`.execute(db)
      await remakeFunctions(db, [...ACCOUNTS, ...LOST, ...ACQUIRE, ...APPLY, ...RELEASE])
    },
  }
}
