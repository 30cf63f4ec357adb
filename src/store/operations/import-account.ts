import type { NewToken } from '../../domain/records/token.ts'
import { sql } from 'kysely'
import { generateKey } from '../generate-key.ts'
import type { ManagedUser, NewUser } from '../../domain/records/user.ts'
import type { Secrets } from '../secrets.ts'
import { createToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import { dimensionsIn, SUM_KEY, SUM_KINDS } from '../sum-kinds.ts'
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
  const { user_id, id: token_id, group = '', used_quota } = token
  if (used_quota <= 0) return
  const values = { user_id, token_id, model: IMPORTED, channel: IMPORTED, group_name: group }
  const key = sql.join(SUM_KEY.map((name) => sql.ref(name)))
  for (const kind of SUM_KINDS.filter(({ unit }) => unit === 'day')) {
    const row = [kind.kind, day, ...dimensionsIn(kind, values), used_quota]
    await sql`
      insert into usage_sums (${key}, quota) values (${sql.join(row)})
      on conflict (${key}) do update set quota = usage_sums.quota + excluded.quota`.execute(db)
  }
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
