import type { NewToken } from '../../domain/records/token.ts'
import { sql } from 'kysely'
import { generateKey } from '../generate-key.ts'
import type { ManagedUser, NewUser } from '../../domain/records/user.ts'
import type { Secrets } from '../secrets.ts'
import { createToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import { COUNT_COLUMNS } from '../usage-counts.ts'
import { POINT_COLUMNS } from '../usage-points.ts'
import type { Db } from './operation.ts'

/** Model and channel of imported usage in the daily sums; the original ones are unknown. */
const IMPORTED = '(imported)'

/** User of another gateway, with its usage there. */
export type ImportedUser = NewUser & Pick<ManagedUser, 'id' | 'used_quota' | 'request_count'>

/** Token of another gateway, with its usage there. */
export type ImportedToken = NewToken & { readonly id: number; readonly used_quota: number }

/** New user with its tokens, or tokens of an existing user. */
export interface ImportedAccount {
  readonly user: ImportedUser | undefined
  readonly tokens: readonly ImportedToken[]
  /** Usage of the user through tokens that are not imported; booked on a deleted token with this id. */
  readonly usedElsewhere: { readonly tokenId: number; readonly quota: number } | undefined
  /** Unix seconds. */
  readonly nowSeconds: number
}

/**
 * Creates a user with its tokens, all or none. Books the imported usage in the daily sums of the day of the
 * import, so that accounts add up. Refuses as `createUser` and `createToken` do.
 */
export async function importAccount(
  db: Db,
  { user, tokens, usedElsewhere, nowSeconds }: ImportedAccount,
  secrets: Secrets,
): Promise<void> {
  const day = Math.floor(nowSeconds / 86_400)
  if (user) await createUser(db, user, secrets)
  for (const token of tokens) await makeToken(db, token, day, secrets)
  if (!user || !usedElsewhere) return
  const { tokenId, quota } = usedElsewhere
  await makeToken(db, { ...deletedToken(user, nowSeconds), id: tokenId, used_quota: quota }, day, secrets)
  await db.updateTable('tokens').set({ deleted_time: nowSeconds }).where('id', '=', tokenId).execute()
}

async function makeToken(db: Db, token: ImportedToken, day: number, secrets: Secrets): Promise<void> {
  await createToken(db, token, secrets)
  const { user_id: userId, id: tokenId, group = '', used_quota } = token
  if (used_quota > 0) await recordUsage(db, { userId, tokenId, group, quota: used_quota, day })
}

const NO_COUNTS = Object.fromEntries(COUNT_COLUMNS.map((name) => [name, 0])) as Record<
  (typeof COUNT_COLUMNS)[number],
  number
>

const NO_POINT = Object.fromEntries(POINT_COLUMNS.map((name) => [name, 0])) as Record<
  (typeof POINT_COLUMNS)[number],
  number
>

async function recordUsage(
  db: Db,
  use: {
    readonly userId: number
    readonly tokenId: number
    readonly group: string
    readonly quota: number
    readonly day: number
  },
): Promise<void> {
  await db
    .insertInto('usage_days')
    .values({
      day: use.day,
      user_id: use.userId,
      token_id: use.tokenId,
      model: IMPORTED,
      channel: IMPORTED,
      group_name: use.group,
      requests: 0,
      failed: 0,
      ...NO_COUNTS,
      quota: use.quota,
    })
    .execute()
  const sums = { ...NO_POINT, quota: use.quota }
  await db
    .insertInto('usage_day_keys')
    .values({ day: use.day, user_id: use.userId, token_id: use.tokenId, ...sums })
    .execute()
  await db
    .insertInto('usage_day_routes')
    .values({ day: use.day, model: IMPORTED, channel: IMPORTED, group_name: use.group, ...sums })
    .onConflict((on) =>
      on
        .columns(['day', 'model', 'channel', 'group_name'])
        .doUpdateSet({ quota: sql`usage_day_routes.quota + excluded.quota` }),
    )
    .execute()
}

function deletedToken(
  { id, group }: ImportedUser,
  nowSeconds: number,
): Omit<ImportedToken, 'id' | 'used_quota'> {
  return {
    user_id: id,
    name: 'before the import',
    key: generateKey(),
    status: 2,
    created_time: nowSeconds,
    remain_quota: 0,
    group,
  }
}
