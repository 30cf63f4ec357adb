import { type RawBuilder, sql } from 'kysely'
import {
  type NamedRefusedCall,
  type RefusedCall,
  REFUSED_CALL_RETENTION_MS,
  KEY_SHARE_DIVISOR,
} from '../../domain/refused-call.ts'
import type { RefusedLimit } from '../../errors.ts'
import { type UsageFilter, filterValueList } from '../../domain/usage-filter.ts'
import type { Db } from './operation.ts'
import { withUserIds } from './usage-log.ts'

/** Filter for refused calls; a call must match all values that are given. */
export type RefusedFilter = Omit<UsageFilter, 'channel' | 'reasons' | 'causes'> & {
  readonly codes?: readonly string[] | undefined
}

/**
 * Stores refused calls. Removes the oldest ones if there are more than `maxRows` in total, or more than a
 * share of it for a key in the batch.
 */
export async function addRefusedCalls(
  db: Db,
  { calls, maxRows }: { readonly calls: readonly RefusedCall[]; readonly maxRows: number },
): Promise<void> {
  for (const { group, limit, ...call } of calls)
    await db
      .insertInto('refused_calls')
      .values({ ...call, group_name: group, limited: limit && JSON.stringify(limit) })
      .onConflict((on) => on.doNothing())
      .execute()
  const ofKey = Math.max(1, Math.floor(maxRows / KEY_SHARE_DIVISOR))
  for (const tokenId of new Set(calls.map(({ token_id }) => token_id)))
    await removeOldest(db, sql`token_id = ${tokenId}`, ofKey)
  await removeOldest(db, sql`1 = 1`, maxRows)
}

async function removeOldest(db: Db, wanted: RawBuilder<unknown>, maxRows: number): Promise<void> {
  const { rows } = await sql<{ calls: number }>`
    select cast(count(*) as bigint) as calls from refused_calls where ${wanted}`.execute(db)
  const excess = (rows[0]?.calls ?? 0) - maxRows
  if (excess <= 0) return
  await sql`
    delete from refused_calls where id in (
      select id from refused_calls where ${wanted} order by id limit ${excess})`.execute(db)
}

/** Removes refused calls after 72 hours, at most `limit` at a time. Resolves to their number. */
export async function pruneRefusedCalls(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from refused_calls where id in (
      select id from refused_calls where refused_ms < ${nowMs - REFUSED_CALL_RETENTION_MS} order by id limit ${limit})`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0)
}

/** Reads a page of matching refused calls, newest first, and the number of all matching ones. */
export async function listRefusedCalls(
  db: Db,
  query: {
    readonly filter: RefusedFilter
    readonly offset: number
    readonly limit: number
    readonly nowMs: number
  },
): Promise<{ readonly total: number; readonly calls: readonly NamedRefusedCall[] }> {
  const filter = await withUserIds(db, query.filter)
  if (!filter) return { total: 0, calls: [] }
  const wanted = sql.join(conditions(filter, query.nowMs), sql` and `)
  const { rows: counts } = await sql<{ total: number }>`
    select cast(count(*) as bigint) as total from refused_calls r where ${wanted}`.execute(db)
  const { rows } = await sql<RefusedRow>`
    select r.*, coalesce(u.username, '') as username, coalesce(t.name, '') as token_name
    from refused_calls r left join users u on u.id = r.user_id left join tokens t on t.id = r.token_id
    where ${wanted} order by r.id desc limit ${query.limit} offset ${query.offset}`.execute(db)
  return { total: counts[0]?.total ?? 0, calls: rows.map(callFromRow) }
}

type RefusedRow = Omit<NamedRefusedCall, 'group' | 'limit'> & {
  readonly group_name: string
  readonly limited: string | null
}

function callFromRow({ group_name, limited, ...call }: RefusedRow): NamedRefusedCall {
  const limit = limited === null ? null : (JSON.parse(limited) as RefusedLimit)
  // A limit without a name is a limit of the call's key or user, whose name is shown.
  const names: Readonly<Record<string, string>> = { token: call.token_name, user: call.username }
  return {
    ...call,
    group: group_name,
    limit: limit && { ...limit, name: limit.name ?? names[limit.subject] ?? null },
  }
}

function conditions(filter: RefusedFilter, nowMs: number): RawBuilder<unknown>[] {
  const { fromMs = 0, beforeMs, token_name, codes } = filter
  const wanted = [sql`r.refused_ms >= ${Math.max(fromMs, nowMs - REFUSED_CALL_RETENTION_MS)}`]
  if (beforeMs !== undefined) wanted.push(sql`r.refused_ms < ${beforeMs}`)
  const among = (column: string, values: readonly (string | number)[]): void =>
    void wanted.push(sql`${sql.ref(`r.${column}`)} in (${sql.join(values)})`)
  for (const [column, given] of [
    ['id', filter.id],
    ['user_id', filter.user_id],
    ['token_id', filter.token_id],
    ['model', filter.model],
    ['group_name', filter.group],
  ] as const)
    if (given !== undefined) among(column, filterValueList<string | number>(given))
  if (codes !== undefined) among('code', codes)
  if (token_name !== undefined)
    wanted.push(
      sql`r.token_id in (select id from tokens where name in (${sql.join(filterValueList(token_name))}))`,
    )
  return wanted
}
