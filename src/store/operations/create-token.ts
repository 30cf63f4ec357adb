import { GatewayError } from '../../errors.ts'
import type { Token, TokenStatus } from '../../domain/token.ts'
import { hashKey, type Secrets, seal } from '../secrets.ts'
import { tokenFromRow } from '../token-rows.ts'
import type { Db } from './operation.ts'

/** A token to be made. Times are Unix seconds, quota is in whole units. */
export interface NewToken {
  /** Undefined = the next one that the database counts to. */
  readonly id?: number | undefined
  readonly userId: number
  readonly name: string
  /** The plain key without `sk-`. */
  readonly key: string
  readonly status: TokenStatus
  readonly createdTime: number
  /** −1 = never. */
  readonly expiredTime: number
  readonly remainQuota: number
  readonly unlimitedQuota: boolean
  readonly modelLimitsEnabled: boolean
  readonly modelLimits: string
  readonly allowIps: string | null
  readonly group: string
  readonly vendorRoutes: string
}

/**
 * Makes a token; its key is stored sealed, and found by its HMAC. A key that another token has, or had, is
 * refused.
 */
export async function createToken(db: Db, token: NewToken, secrets: Secrets): Promise<Token> {
  const keyHash = hashKey(secrets, token.key)
  await refuseTakenKey(db, token.name, keyHash)
  const row = await db
    .insertInto('tokens')
    .values({
      ...(token.id === undefined ? {} : { id: token.id }),
      user_id: token.userId,
      name: token.name,
      key_hash: keyHash,
      // Sealed below: the seal names the row, whose id is only known now.
      key_cipher: '',
      status: token.status,
      created_time: token.createdTime,
      accessed_time: 0,
      expired_time: token.expiredTime,
      remain_quota: token.remainQuota,
      unlimited_quota: token.unlimitedQuota ? 1 : 0,
      used_quota: 0,
      model_limits_enabled: token.modelLimitsEnabled ? 1 : 0,
      model_limits: token.modelLimits,
      allow_ips: token.allowIps,
      group_name: token.group,
      vendor_routes: token.vendorRoutes,
      deleted_time: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await db
    .updateTable('tokens')
    .set({ key_cipher: seal(secrets, token.key, { table: 'tokens', row: row.id }) })
    .where('id', '=', row.id)
    .execute()
  return tokenFromRow(row)
}

async function refuseTakenKey(db: Db, name: string, keyHash: string): Promise<void> {
  const holder = await db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .select(['tokens.id', 'tokens.deleted_time', 'users.username'])
    .where('key_hash', '=', keyHash)
    .executeTakeFirst()
  if (!holder) return
  const whose = `${holder.id} of the user "${holder.username}"`
  const which = holder.deleted_time === null ? `the token ${whose}` : `the deleted token ${whose}`
  throw new GatewayError(
    'invalid_request',
    `the key of the token "${name}" belongs to ${which} already: give it another key`,
  )
}
