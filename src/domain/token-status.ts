import { TOKEN_STATUS, type Token, type TokenStatus } from './records/token.ts'

/**
 * Status of a token at `nowMs` with `remain` quota units. Being disabled is stored; expiry and exhaustion
 * follow only from time and quota, so that a renewed token works at once. `docs/api.md: States and
 * transitions`.
 */
export function statusAt(
  token: Pick<Token, 'status' | 'expired_time' | 'unlimited_quota'>,
  remain: number,
  nowMs: number,
): TokenStatus {
  if (token.status === TOKEN_STATUS.disabled) return TOKEN_STATUS.disabled
  if (token.expired_time !== -1 && token.expired_time * 1000 <= nowMs) return TOKEN_STATUS.expired
  if (!token.unlimited_quota && remain <= 0) return TOKEN_STATUS.exhausted
  return TOKEN_STATUS.enabled
}
