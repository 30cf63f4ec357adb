import { GatewayError } from '../errors.ts'
import type { AddressSet } from './ip-allow-list.ts'
import { TOKEN_STATUS, type Token, type TokenStatus } from './records/token.ts'
import { USER_STATUS, type User } from './records/user.ts'

/**
 * Use of a key: for a call, or for reading its balance, for which expired and exhausted keys are accepted.
 */
export type KeyUse = 'call' | 'read'

/**
 * Refuses a key that is deleted, disabled, expired or exhausted (401), and a disabled user (403). Expired and
 * exhausted keys are accepted for reading. `docs/api.md: Authentication`.
 */
export function refuseUnusableKey(
  { deleted_time }: Pick<Token, 'deleted_time'>,
  user: Pick<User, 'status'>,
  status: TokenStatus,
  use: KeyUse,
): void {
  if (deleted_time !== null) throw new GatewayError('token_deleted', 'this API key was deleted')
  if (status !== TOKEN_STATUS.enabled && (use === 'call' || status === TOKEN_STATUS.disabled)) {
    throw refusal(status)
  }
  if (user.status !== USER_STATUS.enabled) {
    throw new GatewayError('user_disabled', 'the user of this API key is disabled')
  }
}

/** Refuses an address (403) that the key's list does not allow. */
export function refuseOtherAddress(allowed: AddressSet, address: string): void {
  if (allowed(address)) return
  throw new GatewayError('ip_not_allowed', 'this API key may not be used from this address')
}

function refusal(status: Exclude<TokenStatus, 1>): GatewayError {
  switch (status) {
    case TOKEN_STATUS.disabled:
      return new GatewayError('token_disabled', 'this API key is disabled')
    case TOKEN_STATUS.expired:
      return new GatewayError('token_expired', 'this API key has expired')
    case TOKEN_STATUS.exhausted:
      return new GatewayError('token_exhausted', 'the quota of this API key is exhausted')
  }
}
