import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from '../../store/row-types.ts'
import { smallestSumKind } from '../../store/sum-kinds.ts'

type Db = Kysely<Database>

/** Balance and usage of one user or token, in quota units. */
export interface AccountSums {
  readonly id: number
  readonly remain: number
  readonly used: number
  /** Sum of the charges in the usage log, in quota units. */
  readonly logged: number
  /** Sum of the charges in the daily sums, in quota units. */
  readonly days: number
}

/** Sums over a whole database, as decimal texts because they may exceed 2^53. */
type Totals = Readonly<Record<(typeof TOTALS)[number]['name'], string>>

/** Sums that must be equal in the source and in the target. */
export interface QuotaSums {
  readonly totals: Totals
  readonly users: readonly AccountSums[]
  readonly tokens: readonly AccountSums[]
}

/** Columns that are summed up, with their names in a report. */
const TOTALS = [
  { name: 'quota of users', table: 'users', column: 'quota' },
  { name: 'used by users', table: 'users', column: 'used_quota' },
  { name: 'remaining on tokens', table: 'tokens', column: 'remain_quota' },
  { name: 'used by tokens', table: 'tokens', column: 'used_quota' },
  { name: 'charged in the usage log', table: 'usage_log', column: 'quota' },
  { name: 'charged in daily sums', table: 'usage_sums', column: 'quota' },
] as const

/** Sums up the quota columns of a database, in total and for each user and token. */
export async function readQuotaSums(db: Db): Promise<QuotaSums> {
  const totals: [string, string][] = []
  for (const { name, table, column } of TOTALS) totals.push([name, await sumColumn(db, table, column)])
  return {
    totals: Object.fromEntries(totals) as Totals,
    users: await sumAccounts(db, 'users', 'quota', 'user_id'),
    tokens: await sumAccounts(db, 'tokens', 'remain_quota', 'token_id'),
  }
}

/** Describes the sums that differ, in sentences. */
export function describeDifferingSums(here: QuotaSums, there: QuotaSums): string[] {
  const totals = TOTALS.flatMap(({ name }) =>
    here.totals[name] === there.totals[name]
      ? []
      : [`${name}: ${here.totals[name]} here, ${there.totals[name]} there`],
  )
  return [
    ...totals,
    ...differingAccounts('user', here.users, there.users),
    ...differingAccounts('token', here.tokens, there.tokens),
  ]
}

function differingAccounts(
  kind: string,
  here: readonly AccountSums[],
  there: readonly AccountSums[],
): string[] {
  const others = new Map(there.map((sums) => [sums.id, sums]))
  return here.flatMap((sums) => {
    const [a, b] = [describe(sums), describe(others.get(sums.id))]
    return a === b ? [] : [`${kind} ${sums.id}: ${a} here, ${b} there`]
  })
}

function describe(sums: AccountSums | undefined): string {
  if (!sums) return 'nothing'
  const { remain, used, logged, days } = sums
  return `${remain} left and ${used} used (${logged} in the log, ${days} in daily sums)`
}

/** The table to sum up. Of the daily sums only one kind is used, because each kind contains all calls. */
function sourceOf(table: string): RawBuilder<unknown> {
  if (table !== 'usage_sums') return sql.table(table)
  return sql`usage_sums where kind = ${sql.lit(smallestSumKind('day', ['token_id']).kind)}`
}

async function sumColumn(db: Db, table: string, column: string): Promise<string> {
  const { rows } = await sql<{ sum: string }>`
    select cast(coalesce(sum(${sql.ref(column)}), 0) as text) as sum from ${sourceOf(table)}`.execute(db)
  return rows[0]?.sum ?? '0'
}

async function sumAccounts(
  db: Db,
  table: 'users' | 'tokens',
  remain: string,
  owner: 'user_id' | 'token_id',
): Promise<AccountSums[]> {
  const charged = async (from: string): Promise<ReadonlyMap<number, number>> => {
    const { rows } = await sql<{ id: number; sum: number }>`
      select ${sql.ref(owner)} as id, cast(sum(quota) as bigint) as sum from ${sourceOf(from)}
      group by ${sql.ref(owner)}`.execute(db)
    return new Map(rows.map(({ id, sum }) => [id, sum]))
  }
  const [logged, days] = [await charged('usage_log'), await charged('usage_sums')]
  const { rows } = await sql<{ id: number; remain: number; used: number }>`
    select id, ${sql.ref(remain)} as remain, used_quota as used from ${sql.table(table)} order by id`.execute(
    db,
  )
  return rows.map((row) => ({ ...row, logged: logged.get(row.id) ?? 0, days: days.get(row.id) ?? 0 }))
}
