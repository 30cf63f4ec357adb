import { TOKEN_STATUS, type Token, type TokenStatus } from './token.ts'

/**
 * The status that a token has at `nowMs` with `remain` quota units, whatever is still stored: an enabled one whose time or
 * quota ran out is expired or exhausted. `docs/api.md: States and transitions`.
 */
export function statusAt(
  token: Pick<Token, 'status' | 'expiredTime' | 'unlimitedQuota'>,
  remain: number,
  nowMs: number,
): TokenStatus {
  if (token.status !== TOKEN_STATUS.enabled) return token.status
  if (token.expiredTime !== -1 && token.expiredTime * 1000 <= nowMs) return TOKEN_STATUS.expired
  if (!token.unlimitedQuota && remain <= 0) return TOKEN_STATUS.exhausted
  return TOKEN_STATUS.enabled
}
