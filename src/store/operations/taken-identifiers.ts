import { sql } from 'kysely'
import type { Db } from './operation.ts'

/** Amounts that are added up over all users or all tokens. */
const SUMMED_COLUMNS = [
  'users.quota',
  'users.used_quota',
  'users.request_count',
  'tokens.remain_quota',
  'tokens.used_quota',
] as const

/** A column whose amounts are summed. */
export type SummedColumn = (typeof SUMMED_COLUMNS)[number]

/** Sums of absolute amounts. */
export type AmountSums = Readonly<Record<SummedColumn, number>>

/** The sums of a database without users. */
export const NO_AMOUNTS = Object.fromEntries(SUMMED_COLUMNS.map((column) => [column, 0])) as AmountSums

/** Ids, names and keys that existing users and tokens have, deleted ones included. */
export interface TakenIdentifiers {
  readonly users: readonly {
    readonly id: number
    /** Current name; of a deleted user, the name before the deletion. */
    readonly username: string
    readonly group: string
    readonly role: number
    readonly isDeleted: boolean
    readonly accessTokenHash: string | null
  }[]
  readonly tokens: readonly { readonly id: number; readonly keyHash: string }[]
  readonly sums: AmountSums
}

/** Reads the identifiers of all users and tokens, and the sums of their amounts. */
export async function takenIdentifiers(db: Db): Promise<TakenIdentifiers> {
  const users = await db
    .selectFrom('users')
    .select(['id', 'username', 'first_username', 'group_name', 'role', 'deleted_time', 'access_token_hash'])
    // A deleted and a live user may share a name; the live one comes last.
    .orderBy((eb) => eb.case().when('deleted_time', 'is', null).then(1).else(0).end())
    .orderBy('id')
    .execute()
  const tokens = await db.selectFrom('tokens').select(['id', 'key_hash']).orderBy('id').execute()
  return {
    users: users.map((row) => ({
      id: row.id,
      username: row.deleted_time === null ? row.username : (row.first_username ?? row.username),
      group: row.group_name,
      role: row.role,
      isDeleted: row.deleted_time !== null,
      accessTokenHash: row.access_token_hash,
    })),
    tokens: tokens.map((row) => ({ id: row.id, keyHash: row.key_hash })),
    sums: await amountSums(db),
  }
}

// Floating point, because the sums may be larger than any integer of the database.
async function amountSums(db: Db): Promise<AmountSums> {
  const sums: Record<SummedColumn, number> = { ...NO_AMOUNTS }
  for (const column of SUMMED_COLUMNS) {
    const [table = ''] = column.split('.')
    const { rows } = await sql<{ sum: number | null }>`
      select sum(abs(cast(${sql.ref(column)} as double precision))) as sum from ${sql.table(table)}`.execute(
      db,
    )
    sums[column] = rows[0]?.sum ?? 0
  }
  return sums
}
