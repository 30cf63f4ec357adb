import { hasWildcard, matches, matchesAnyCase, patternError } from '../../domain/search-pattern.ts'
import { GatewayError } from '../../errors.ts'
import { offsetOf, type Page } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { tokenPageObject, type TokenPage } from './token-page.ts'

/** A search for tokens; an empty or absent pattern matches everything. */
export interface TokenSearch extends Page {
  readonly user: number
  /** The pattern of the name. */
  readonly keyword?: string | undefined
  /** The pattern of the key, with or without `sk-`. */
  readonly token?: string | undefined
}

/**
 * A page of the user's tokens that match both patterns, newest first. Names match case-insensitively, keys
 * case-sensitively. Keys are stored encrypted, so they are decrypted and compared here, where a key is
 * wanted. An invalid pattern is `invalid_request`.
 */
export async function searchTokens(
  parts: ManagementParts,
  { user: userId, keyword = '', token = '', ...page }: TokenSearch,
): Promise<TokenPage> {
  const keyPattern = token.replace(/^(?:sk-)+/, '')
  refuse('keyword', patternError(keyword))
  refuse('token', patternError(keyPattern))
  const checkCount = (tokens: number): void => {
    if (tokens < parts.settings().options.max_user_tokens) return
    const error = 'at the maximum number of tokens, only an exact search is possible, without %'
    if (hasWildcard(keyword)) refuse('keyword', error)
    if (hasWildcard(keyPattern)) refuse('token', error)
  }
  const hasName = (name: string): boolean => keyword === '' || matchesAnyCase(keyword, name)
  const { store } = parts
  const all: readonly { readonly id: number; readonly name: string; readonly key?: string }[] =
    keyPattern === ''
      ? await store.read('ownTokenNames', { userId })
      : await store.read('ownTokenKeys', { userId })
  checkCount(all.length)
  const found = all.filter(({ name, key = '' }) => hasName(name) && matches(keyPattern, key))
  const start = offsetOf(page)
  const tokenIds = found.slice(start, start + page.pageSize).map(({ id }) => id)
  const tokens = tokenIds.length === 0 ? [] : await store.read('keyedTokensOf', { userId, tokenIds })
  return tokenPageObject(parts, page, found.length, tokens)
}

function refuse(field: string, error: string | undefined): void {
  if (error !== undefined) throw new GatewayError('invalid_request', `${field}: ${error}`)
}
