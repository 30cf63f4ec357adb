import { hasWildcard, matches, matchesAnyCase, patternError } from '../../domain/search-pattern.ts'
import { GatewayError } from '../../errors.ts'
import { offsetOf, type Page } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { tokenPageObject, type TokenPage } from './token-page.ts'

/** What is searched for; an empty pattern, and one that is not there, matches everything. */
export interface TokenSearch extends Page {
  readonly user: number
  /** Of a name. */
  readonly keyword?: string | undefined
  /** Of a key, with or without `sk-`. */
  readonly token?: string | undefined
}

/**
 * A page of those of a user's tokens that match both patterns, newest first. Names match without regard to
 * case, keys with. Keys are stored sealed, so that all of them are opened and looked at here, and every
 * database finds the same. A pattern that breaks a rule is `invalid_request`.
 */
export async function searchTokens(
  { store, settings, nowMs }: ManagementParts,
  { user: userId, keyword = '', token = '', ...page }: TokenSearch,
): Promise<TokenPage> {
  const keyPattern = token.replace(/^(?:sk-)+/, '')
  refuse('keyword', patternError(keyword))
  refuse('token', patternError(keyPattern))
  const tokens = await store.read('keyedTokens', { userId })
  if (tokens.length >= settings().options.maxUserTokens) {
    const mistake = 'with as many tokens as a user may have, only an exact search is possible, without %'
    if (hasWildcard(keyword)) refuse('keyword', mistake)
    if (hasWildcard(keyPattern)) refuse('token', mistake)
  }
  const found = tokens.filter(
    ({ token: { name }, key }) =>
      (keyword === '' || matchesAnyCase(keyword, name)) && (keyPattern === '' || matches(keyPattern, key)),
  )
  const start = offsetOf(page)
  return tokenPageObject(page, found.length, found.slice(start, start + page.pageSize), nowMs())
}

function refuse(field: string, mistake: string | undefined): void {
  if (mistake !== undefined) throw new GatewayError('invalid_request', `${field}: ${mistake}`)
}
