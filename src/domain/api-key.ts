import { GatewayError } from '../errors.ts'
import type { AddressSet } from './ip-allow-list.ts'
import { type Token, TOKEN_STATUS, type TokenStatus } from './records/token.ts'
import { type User, USER_STATUS } from './records/user.ts'

const BASE62 = /^[0-9A-Za-z]{1,128}$/

/**
 * Returns the part of an API key by which it is looked up: without a leading `sk-`, and up to the first
 * hyphen. Undefined if the text cannot be a key. `docs/api.md: Authentication`, rule 4.
 */
export function lookupPartOfKey(sent: string): string | undefined {
  let start = 0
  while (sent.startsWith('sk-', start)) start += 3
  const hyphen = sent.indexOf('-', start)
  const key = sent.slice(start, hyphen === -1 ? undefined : hyphen)
  return BASE62.test(key) ? key : undefined
}

/** Minimum length of an imported key without `sk-`. A shorter one could be guessed. */
const MIN_IMPORTED_LENGTH = 16
const PRINTABLE = /^[!-~]{1,512}$/

/**
 * Returns the whole text of an API key without `sk-`, by which imported keys are looked up. Undefined if the text cannot be
 * such a key. `docs/moving.md: From LiteLLM`.
 */
export function wholeTextOfKey(sent: string): string | undefined {
  const key = sent.startsWith('sk-') ? sent.slice(3) : ''
  return key.length >= MIN_IMPORTED_LENGTH && PRINTABLE.test(key) ? key : undefined
}

/** What is stored in place of the HMAC of a key of which only the SHA-256 digest is known, in hexadecimal. */
export function importedKeyHash(digest: string): string {
  return `sha256:${digest}`
}

/**
 * Minimum length of a key of which some characters are shown. A mask of a shorter key would reveal most of
 * it.
 */
const MIN_SHOWN_LENGTH = 9

/**
 * Masks an API key (with `sk-`) for lists: the first four characters, ten asterisks, and the last four; only
 * asterisks for a very short key. `docs/api.md: Token`.
 */
export function maskedKey(key: string): string {
  const hidden = '*'.repeat(10)
  return key.length < MIN_SHOWN_LENGTH ? hidden : `${key.slice(0, 4)}${hidden}${key.slice(-4)}`
}

/**
 * Status of a token at `nowMs` with `remain` quota units. Being disabled is stored; expiry and exhaustion
 * follow only from time and quota, so that a renewed token works at once. `docs/api.md: States and
 * transitions`.
 */
export function tokenStatusAt(
  token: Pick<Token, 'status' | 'expired_time' | 'unlimited_quota'>,
  remain: number,
  nowMs: number,
): TokenStatus {
  if (token.status === TOKEN_STATUS.disabled) return TOKEN_STATUS.disabled
  if (token.expired_time !== -1 && token.expired_time * 1000 <= nowMs) return TOKEN_STATUS.expired
  if (!token.unlimited_quota && remain <= 0) return TOKEN_STATUS.exhausted
  return TOKEN_STATUS.enabled
}

/**
 * What a key is used for: a model call, or reading the key's balance, for which expired and exhausted keys
 * are accepted too.
 */
export type KeyPurpose = 'call' | 'read'

/**
 * Throws if the key is deleted, disabled, expired or exhausted (401), or its user is disabled (403). For
 * reading a balance, expired and exhausted keys are accepted. `docs/api.md: Authentication`.
 */
export function refuseUnusableKey(
  { deleted_time }: Pick<Token, 'deleted_time'>,
  user: Pick<User, 'status'>,
  status: TokenStatus,
  use: KeyPurpose,
): void {
  if (deleted_time !== null) throw new GatewayError('token_deleted', 'this API key was deleted')
  if (status !== TOKEN_STATUS.enabled && (use === 'call' || status === TOKEN_STATUS.disabled)) {
    throw refusal(status)
  }
  if (user.status !== USER_STATUS.enabled) {
    throw new GatewayError('user_disabled', 'the user of this API key is disabled')
  }
}

/** Throws (403) if the key's list of addresses does not contain the client's address. */
export function refuseOtherAddress(allowed: AddressSet, address: string): void {
  if (allowed(address)) return
  throw new GatewayError('ip_not_allowed', 'this API key may not be used from this address')
}

/** Who can raise the quota of a key; users of a client have often never seen the gateway. */
export const TOKEN_QUOTA_RAISED_BY =
  'whoever manages this API key, or an administrator of the gateway, can raise its quota'

function refusal(status: Exclude<TokenStatus, 1>): GatewayError {
  switch (status) {
    case TOKEN_STATUS.disabled:
      return new GatewayError('token_disabled', 'this API key is disabled')
    case TOKEN_STATUS.expired:
      return new GatewayError('token_expired', 'this API key has expired')
    case TOKEN_STATUS.exhausted:
      return new GatewayError(
        'token_exhausted',
        `the quota of this API key is exhausted; ${TOKEN_QUOTA_RAISED_BY}`,
      )
  }
}
