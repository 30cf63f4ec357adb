import { sql } from 'kysely'
import type { Db } from './operation.ts'

/** Where the accounts do not add up. Empty lists mean that every charge is accounted for. */
export interface Conservation {
  /** Ids of tokens whose `used_quota` is not the sum of their usage rows. */
  readonly tokens: readonly number[]
  /** The same of users. */
  readonly users: readonly number[]
  readonly openHolds: {
    readonly count: number
    /** Quota units. */
    readonly amount: number
  }
}

/** Compares what was charged with what was counted, row by row: for tests, and for a watch in production. */
export async function conservation(db: Db): Promise<Conservation> {
  const tokens = await db
    .selectFrom('tokens')
    .leftJoin('usage_log', 'usage_log.token_id', 'tokens.id')
    .select('tokens.id')
    .groupBy(['tokens.id', 'tokens.used_quota'])
    .having((eb) =>
      eb(
        eb.fn.coalesce(eb.fn.sum<number>('usage_log.quota'), sql<number>`0`),
        '<>',
        eb.ref('tokens.used_quota'),
      ),
    )
    .orderBy('tokens.id')
    .execute()
  const users = await db
    .selectFrom('users')
    .leftJoin('usage_log', 'usage_log.user_id', 'users.id')
    .select('users.id')
    .groupBy(['users.id', 'users.used_quota'])
    .having((eb) =>
      eb(
        eb.fn.coalesce(eb.fn.sum<number>('usage_log.quota'), sql<number>`0`),
        '<>',
        eb.ref('users.used_quota'),
      ),
    )
    .orderBy('users.id')
    .execute()
  const openHolds = await db
    .selectFrom('holds')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      sql<number>`cast(coalesce(sum(amount), 0) as bigint)`.as('amount'),
    ])
    .executeTakeFirstOrThrow()
  return {
    tokens: tokens.map((row) => row.id),
    users: users.map((row) => row.id),
    openHolds: { count: openHolds.count, amount: openHolds.amount },
  }
}
