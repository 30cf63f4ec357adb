import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { makeBudgetBank } from './bank/budgets.ts'
import type { ColumnTypes } from './column-types.ts'

const LIMITS = ['requests', 'tokens', 'parallel', 'window']

/** Adds budgets and rate limits of users and tokens, and the accounts of budgets. */
export function budgets(types: ColumnTypes): Migration {
  return {
    async up(db) {
      const { integer, isShared } = types
      for (const table of ['users', 'tokens']) {
        await addColumn(db, table, 'budget', `${integer} not null default 0`)
        await addColumn(db, table, 'budget_period', "text not null default ''")
        for (const limit of LIMITS)
          await addColumn(db, table, `rate_limit_${limit}`, `${integer} not null default 0`)
      }
      await addColumn(db, 'holds', 'budgets', "text not null default ''")
      await createTables(db, types)
      if (isShared) await makeBudgetBank(db)
      else for (const statement of SQLITE_TRIGGERS) await sql.raw(statement).execute(db)
    },
  }
}

async function createTables(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('budget_periods')
    .addColumn('account', 'text', (column) => column.notNull().primaryKey())
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('amount', integer, (column) => column.notNull())
    .addColumn('used', integer, (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
  await db.schema.createIndex('budget_periods_by_owner').on('budget_periods').column('owner').execute()
  await db.schema
    .createTable('budget_crossings')
    .addColumn('account', 'text', (column) => column.notNull())
    .addColumn('percent', integer, (column) => column.notNull())
    .addColumn('amount', integer, (column) => column.notNull())
    .addColumn('used', integer, (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_crossings_key', ['account', 'percent'])
    .modifyEnd(keyed)
    .execute()
}

async function addColumn(db: Kysely<unknown>, table: string, name: string, type: string): Promise<void> {
  await sql`alter table ${sql.table(table)} add column ${sql.ref(name)} ${sql.raw(type)}`.execute(db)
}

/** The transaction that uses a budget up to 80 % or 100 % notes it, once for each period. */
const SQLITE_TRIGGERS = ['insert', 'update of used, amount'].map(
  (event) => `
create trigger budget_crossed_by_${event.slice(0, 6)} after ${event} on budget_periods
when new.amount > 0 and new.used * 5 >= new.amount * 4
begin
  insert into budget_crossings (account, percent, amount, used) values (new.account, 80, new.amount, new.used)
    on conflict (account, percent) do nothing;
  insert into budget_crossings (account, percent, amount, used)
    select new.account, 100, new.amount, new.used where new.used >= new.amount
    on conflict (account, percent) do nothing;
end`,
)
