import { type RawBuilder, sql } from 'kysely'
import { TOKEN_KINDS } from '../../domain/token-kinds.ts'
import { DIMENSION_COLUMNS, smallestSumKind } from '../sum-kinds.ts'
import type { Db } from './operation.ts'

const DAYS = sql.lit(smallestSumKind('day', DIMENSION_COLUMNS).kind)
const DIMENSIONS = sql.join(DIMENSION_COLUMNS.map((name) => sql.ref(name)))
const EQUAL_DIMENSIONS = DIMENSION_COLUMNS.map(
  (name) => sql`${sql.ref(`days.${name}`)} = ${sql.ref(`log.${name}`)}`,
)
const DAY_KEYS = sql.lit(smallestSumKind('day', ['token_id']).kind)

/** Accounts and days whose sums do not match. If all lists are empty, every charge is accounted for. */
export interface UnbalancedAccounts {
  /** Ids of tokens whose `used_quota` is not the sum of their daily sums. */
  readonly tokens: readonly number[]
  /** Ids of users whose `used_quota` is not the sum of their daily sums. */
  readonly users: readonly number[]
  /**
   * Days (counted from 1970-01-01, UTC) for which the usage log has more usage than the sums. It may have
   * less, because old rows are removed.
   */
  readonly days: readonly number[]
  readonly openHolds: {
    readonly count: number
    /** Sum of the open holds in quota units. */
    readonly amount: number
  }
}

/** Compares balances with the daily sums, and the sums with the usage log. For tests and monitoring. */
export async function findUnbalancedAccounts(db: Db): Promise<UnbalancedAccounts> {
  const openHolds = await db
    .selectFrom('holds')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      sql<number>`coalesce(sum(cast(amount as double precision)), 0)`.as('amount'),
    ])
    .executeTakeFirstOrThrow()
  return {
    tokens: await accountsOutOfBalance(db, 'tokens', 'token_id'),
    users: await accountsOutOfBalance(db, 'users', 'user_id'),
    days: await daysOutOfBalance(db),
    openHolds: { count: openHolds.count, amount: openHolds.amount },
  }
}

async function accountsOutOfBalance(
  db: Db,
  table: 'tokens' | 'users',
  owner: 'token_id' | 'user_id',
): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select accounts.id
    from ${sql.table(table)} as accounts
    left join (select ${sql.ref(owner)} as id, sum(quota) as quota from usage_sums where kind = ${DAY_KEYS} group by ${sql.ref(owner)}) as used
      on used.id = accounts.id
    where accounts.used_quota <> coalesce(used.quota, 0)
    order by accounts.id`.execute(db)
  return rows.map(({ id }) => id)
}

/** SQL expression for the sum of all token counts in a row. */
function tokensOf(table: string): RawBuilder<number> {
  const columns = TOKEN_KINDS.flatMap(({ partOf, column }) => (partOf || !column ? [] : [column.name]))
  return sql`(${sql.join(
    columns.map((name) => sql.ref(`${table}.${name}`)),
    sql` + `,
  )})`
}

async function daysOutOfBalance(db: Db): Promise<number[]> {
  const { rows } = await sql<{ day: number }>`
    select distinct log.day
    from (
      select ended_ms / 86400000 as day, ${DIMENSIONS}, sum(quota) as quota,
        sum(${tokensOf('usage_log')}) as tokens
      from usage_log
      group by ended_ms / 86400000, ${DIMENSIONS}
    ) as log
    left join (select * from usage_sums where kind = ${DAYS}) as days
      on days.start = log.day and ${sql.join(EQUAL_DIMENSIONS, sql` and `)}
    where days.start is null
      or days.quota < log.quota
      or ${tokensOf('days')} < log.tokens
    order by log.day`.execute(db)
  return rows.map(({ day }) => day)
}
