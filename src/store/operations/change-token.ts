import type { Token } from '../../domain/token.ts'
import { statusAt } from '../../domain/token-status.ts'
import { GatewayError } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { NewToken } from './create-token.ts'
import { type KeyedToken, keyedToken } from './keyed-tokens.ts'
import type { Db } from './operation.ts'

/** What an owner may write of a token; a field that is not there stays as it is. */
export type TokenFields = Partial<
  Pick<
    NewToken,
    | 'name'
    | 'expiredTime'
    | 'remainQuota'
    | 'unlimitedQuota'
    | 'modelLimitsEnabled'
    | 'modelLimits'
    | 'allowIps'
    | 'group'
    | 'vendorRoutes'
  >
>

/** A change of one token by its owner. */
export interface TokenChange {
  readonly tokenId: number
  readonly userId: number
  readonly fields: TokenFields
  /** The largest quota that a token with a limit may have. */
  readonly maxQuota: number
  readonly nowMs: number
}

/** The token as it is now, and the `remain_quota` that the change replaced. */
export interface ChangedToken extends KeyedToken {
  readonly remainBefore: number
}

/**
 * Writes the fields that are given, and the status that follows from them; null if that user has no such
 * token, or no longer. A quota out of bounds, for a token that has a limit afterwards, is `invalid_request`.
 * Called through `Ledger.changeToken` alone, for the balance in memory must move with the row.
 */
export async function changeToken(
  db: Db,
  { tokenId, userId, fields, maxQuota: most, nowMs }: TokenChange,
  secrets: Secrets,
): Promise<ChangedToken | null> {
  const before = await keyedToken(db, { tokenId, userId }, secrets)
  if (!before) return null
  const changed: Token = { ...before.token, ...fields }
  requireQuotaOf(changed, fields.remainQuota !== undefined, most)
  const token = { ...changed, status: statusAt(changed, changed.remainQuota, nowMs) }
  await db
    .updateTable('tokens')
    .set({
      name: token.name,
      status: token.status,
      expired_time: token.expiredTime,
      remain_quota: token.remainQuota,
      unlimited_quota: token.unlimitedQuota ? 1 : 0,
      model_limits_enabled: token.modelLimitsEnabled ? 1 : 0,
      model_limits: token.modelLimits,
      allow_ips: token.allowIps,
      group_name: token.group,
      vendor_routes: token.vendorRoutes,
    })
    .where('id', '=', tokenId)
    .execute()
  return { token, key: before.key, remainBefore: before.token.remainQuota }
}

// What calls have left, below zero even, is no mistake of whoever changes something else.
function requireQuotaOf({ unlimitedQuota, remainQuota }: Token, isGiven: boolean, most: number): void {
  if (unlimitedQuota || (remainQuota <= most && (remainQuota >= 0 || !isGiven))) return
  throw new GatewayError(
    'invalid_request',
    `remain_quota: expected whole quota units from 0 to ${most}, not ${remainQuota}`,
  )
}
