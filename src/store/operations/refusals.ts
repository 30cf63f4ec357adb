import { type RawBuilder, sql } from 'kysely'
import {
  REFUSAL,
  REFUSAL_COLUMNS,
  REFUSAL_KEY_COLUMNS,
  type RefusalCount,
  type RefusalDimension,
  type RefusalFilter,
} from '../../domain/records/refusal.ts'
import { namesOfAccounts, type Db } from './operation.ts'
import { filterValueList } from '../../domain/usage-filter.ts'
import { withUserIds } from './usage-log.ts'
import { isAmong } from './read-sums.ts'

/**
 * Number of refused calls in one half hour for one value of a dimension; `key` is null if there is no
 * dimension.
 */
export interface RefusedInHalfHour {
  readonly slot: number
  readonly key: string | number | null
  readonly calls: number
}

/** Adds refused calls to the counters of their half hours. */
export async function addRefusals(
  db: Db,
  { counts }: { readonly counts: readonly RefusalCount[] },
): Promise<void> {
  for (const count of counts) {
    await db
      .insertInto('usage_refusals')
      .values(REFUSAL.newRow(count))
      .onConflict((on) =>
        on.columns(REFUSAL_KEY_COLUMNS).doUpdateSet({ calls: sql`usage_refusals.calls + excluded.calls` }),
      )
      .execute()
  }
}

/**
 * Counts the refused calls in the half hours from `first` up to, but not including, `end`: all of them, and
 * those for each of the `top` values of the dimension with the most refused calls. `more` says whether the
 * dimension has further values.
 */
export async function refusedCalls(
  db: Db,
  query: {
    readonly filter: RefusalFilter
    readonly by: RefusalDimension
    readonly top: number
    readonly first: number
    readonly end: number
  },
): Promise<{
  readonly all: readonly RefusedInHalfHour[]
  readonly lines: readonly { readonly key: string | number; readonly label: string }[]
  readonly ofLines: readonly RefusedInHalfHour[]
  readonly more: boolean
}> {
  const filter = await withUserIds(db, query.filter)
  if (!filter) return { all: [], lines: [], ofLines: [], more: false }
  const within = conditions(query.filter.code, filter, query)
  const count = sql<number>`cast(sum(calls) as bigint)`
  const { rows: all } = await sql<RefusedInHalfHour>`
    select slot, null as key, ${count} as calls from usage_refusals where ${within} group by slot`.execute(db)
  if (query.by === 'none') return { all, lines: [], ofLines: [], more: false }
  const column = sql.ref(REFUSAL_COLUMNS[query.by])
  const { rows: ranked } = await sql<{ key: string | number }>`
    select ${column} as key, ${count} as calls from usage_refusals where ${within}
    group by ${column} order by calls desc, key limit ${query.top + 1}`.execute(db)
  const keys = ranked.slice(0, query.top).map(({ key }) => key)
  const { rows: ofLines } =
    keys.length === 0
      ? { rows: [] }
      : await sql<RefusedInHalfHour>`
          select slot, ${column} as key, ${count} as calls from usage_refusals
          where ${within} and ${column} in (${sql.join(keys)}) group by slot, ${column}`.execute(db)
  const names = await namesOfAccounts(db, query.by, keys)
  return {
    all,
    lines: keys.map((key) => ({ key, label: names.get(key) ?? (key === 0 ? '' : String(key)) })),
    ofLines,
    more: ranked.length > query.top,
  }
}

function conditions(
  code: string | undefined,
  { user_id, token_id, token_name }: RefusalFilter,
  { first, end }: { readonly first: number; readonly end: number },
): RawBuilder<unknown> {
  const wanted = [sql`slot >= ${first}`, sql`slot < ${end}`]
  if (user_id !== undefined) wanted.push(isAmong('user_id', filterValueList(user_id)))
  if (token_id !== undefined) wanted.push(isAmong('token_id', filterValueList(token_id)))
  if (code !== undefined) wanted.push(sql`code = ${code}`)
  if (token_name !== undefined)
    wanted.push(
      sql`token_id in (select id from tokens where ${isAmong('name', filterValueList(token_name))})`,
    )
  return sql.join(wanted, sql` and `)
}
