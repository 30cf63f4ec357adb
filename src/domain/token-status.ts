import { TOKEN_STATUS, type Token, type TokenStatus } from './token.ts'

/**
 * The status that a token has at `nowMs` with `remain` quota units. Only disabling is somebody's decision;
 * expired and exhausted follow from time and quota alone, whatever of them is still stored, so that whoever
 * mends the cause has mended the token. `docs/api.md: States and transitions`.
 */
export function statusAt(
  token: Pick<Token, 'status' | 'expiredTime' | 'unlimitedQuota'>,
  remain: number,
  nowMs: number,
): TokenStatus {
  if (token.status === TOKEN_STATUS.disabled) return TOKEN_STATUS.disabled
  if (token.expiredTime !== -1 && token.expiredTime * 1000 <= nowMs) return TOKEN_STATUS.expired
  if (!token.unlimitedQuota && remain <= 0) return TOKEN_STATUS.exhausted
  return TOKEN_STATUS.enabled
}
