import { TOKEN_STATUS, type TokenStatus } from '../../domain/records/token.ts'
import { statusAt } from '../../domain/token-status.ts'
import { GatewayError } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import { type KeyedToken, keyedToken } from './keyed-tokens.ts'
import type { Db } from './operation.ts'

/** Sets the status of a live token if it is `onlyFrom` now; resolves to whether it did. */
export async function setTokenStatus(
  db: Db,
  change: { readonly tokenId: number; readonly status: TokenStatus; readonly onlyFrom: TokenStatus },
): Promise<boolean> {
  const result = await db
    .updateTable('tokens')
    .set({ status: change.status })
    .where('id', '=', change.tokenId)
    .where('status', '=', change.onlyFrom)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/**
 * Enables or disables a live token; null if the user has no such token. Enabling an expired or exhausted
 * token is refused with `invalid_request`.
 */
export async function switchToken(
  db: Db,
  change: {
    readonly tokenId: number
    readonly userId: number
    readonly status: typeof TOKEN_STATUS.enabled | typeof TOKEN_STATUS.disabled
    readonly nowMs: number
  },
  secrets: Secrets,
): Promise<KeyedToken | null> {
  const { tokenId, userId, status, nowMs } = change
  const found = await keyedToken(db, { tokenId, userId }, secrets)
  if (!found) return null
  const { token, key } = found
  if (status === TOKEN_STATUS.enabled) refuseUnusable(statusAt(token, token.remain_quota, nowMs))
  await db.updateTable('tokens').set({ status }).where('id', '=', tokenId).execute()
  return { token: { ...token, status }, key }
}

function refuseUnusable(status: TokenStatus): void {
  switch (status) {
    case TOKEN_STATUS.expired:
      throw new GatewayError(
        'invalid_request',
        'status: the token has expired and cannot be enabled; set expired_time to a later time, or to -1 for never',
      )
    case TOKEN_STATUS.exhausted:
      throw new GatewayError(
        'invalid_request',
        'status: the token has no quota left and cannot be enabled; set remain_quota, or unlimited_quota to true',
      )
    case TOKEN_STATUS.enabled:
    case TOKEN_STATUS.disabled:
  }
}
