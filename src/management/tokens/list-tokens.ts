import { z } from 'zod'
import { type Token, TOKEN_ORDERS } from '../../domain/records/token.ts'
import {
  hasWildcard,
  matchesPattern,
  matchesPatternInAnyCase,
  patternError,
} from '../../domain/search-pattern.ts'
import { GatewayError } from '../../errors.ts'
import type { TokenOrder } from '../../store/operations/find-accounts.ts'
import type { Store } from '../../store/store.ts'
import { readInput, requireFewIds, userInput } from '../input-fields.ts'
import { offsetOf, orderQuery, type PageRequest, pageObject, pageQuery, pageSchema } from '../page.ts'
import type { ManagementServices } from '../services.ts'
import { findUser } from '../users/list-users.ts'
import {
  maskedTokens,
  ownTokenNotFound,
  stoppedTokens,
  TOKEN_ID_SCHEMAS,
  type TokenObject,
  tokenSchema,
} from './token-object.ts'

/** Input of operations on any user's token. */
export const anyTokenInput = z.object(
  { id: TOKEN_ID_SCHEMAS.id },
  { error: 'expected an object that names a token' },
)

/**
 * The token with the id that an operator has given, unless it is deleted. Validates `given`. Throws
 * `not_found` if there is none.
 */
export async function findToken(
  store: Pick<Store, 'read'>,
  given: z.input<typeof anyTokenInput>,
): Promise<Token> {
  const { id } = readInput(anyTokenInput, given)
  const token = await store.read('tokenById', { tokenId: id })
  return token ?? tokenNotFound(id)
}

/** Throws the error `not_found` for a token. */
export function tokenNotFound(id: number): never {
  throw new GatewayError('not_found', `there is no token with the id ${id}`)
}

/** A user's tokens with masked keys, the oldest first. */
export async function listTokens(
  services: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<TokenObject[]> {
  const { user: idOrName } = readInput(userInput, given)
  const { id: userId } = await findUser(services.store, idOrName)
  const tokens = await services.store.read('listTokensWithKeys', { userId })
  return maskedTokens(services, tokens.toReversed())
}

/** A page of tokens as responses show it; `docs/api.md: Token page`. */
export const tokenPageSchema = pageSchema(tokenSchema)

export type TokenPage = z.output<typeof tokenPageSchema>

export const tokenPageQuery = pageQuery.extend(orderQuery(TOKEN_ORDERS).shape)

/** A page of a user's tokens in an order, by default the newest first. */
interface OrderedPage extends PageRequest {
  readonly user: number
  readonly order?: TokenOrder | undefined
}

/** A page of a user's tokens. */
export async function tokenPage(
  services: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  { user: userId, order, ...page }: OrderedPage,
): Promise<TokenPage> {
  const { tokens, total } = await services.store.read('findTokenPageWithKeys', {
    userId,
    offset: offsetOf(page),
    limit: page.pageSize,
    order,
  })
  return pageObject(page, total, await maskedTokens(services, tokens))
}

/** A search for tokens; an empty or missing pattern matches everything. */
interface TokenSearch extends OrderedPage {
  /** Pattern for the token's name. */
  readonly keyword?: string | undefined
  /** Pattern for the key, with or without `sk-`. */
  readonly token?: string | undefined
}

/**
 * A page of the user's tokens that match both patterns. Case matters for keys, but not for names. Keys are
 * stored encrypted, so for a key pattern this function decrypts and compares all keys. Throws
 * `invalid_request` for an invalid pattern.
 */
export async function searchTokens(
  services: ManagementServices,
  { user: userId, order, keyword = '', token = '', ...page }: TokenSearch,
): Promise<TokenPage> {
  const keyPattern = token.replace(/^(?:sk-)+/, '')
  refuse('keyword', patternError(keyword))
  refuse('token', patternError(keyPattern))
  const checkCount = (tokens: number): void => {
    if (tokens < services.settings().options.max_user_tokens) return
    const error = 'at the maximum number of tokens, only an exact search is possible, without %'
    if (hasWildcard(keyword)) refuse('keyword', error)
    if (hasWildcard(keyPattern)) refuse('token', error)
  }
  const hasName = (name: string): boolean => keyword === '' || matchesPatternInAnyCase(keyword, name)
  const { store } = services
  const all: readonly { readonly id: number; readonly name: string; readonly key?: string }[] =
    keyPattern === ''
      ? await store.read('ownTokenNames', { userId, order })
      : await store.read('ownTokenKeys', { userId, order })
  checkCount(all.length)
  const found = all.filter(({ name, key = '' }) => hasName(name) && matchesPattern(keyPattern, key))
  const start = offsetOf(page)
  const tokenIds = found.slice(start, start + page.pageSize).map(({ id }) => id)
  const tokens = tokenIds.length === 0 ? [] : await store.read('findTokensWithKeys', { userId, tokenIds })
  const placeOf = new Map(tokenIds.map((id, place) => [id, place]))
  const placed = tokens.toSorted(
    (one, other) => (placeOf.get(one.token.id) ?? 0) - (placeOf.get(other.token.id) ?? 0),
  )
  return pageObject(page, found.length, await maskedTokens(services, placed))
}

/** Maximum number of token ids in a request that asks whether their budgets are used up: the page size. */
const MAX_ASKED = 100
const IDS = `expected up to ${MAX_ASKED} ids of tokens with commas between them`

/** A query parameter with ids of tokens, separated by commas. */
export const tokenIdsText = z
  .string({ error: IDS })
  .regex(/^(?:\d{1,15}(?:,\d{1,15})*)?$/, { error: IDS })
  .default('')
  .transform((text) => text.split(',').filter(Boolean).map(Number))
  .refine((ids) => ids.length <= MAX_ASKED, { error: IDS })

/** Of the user's tokens with these ids, those whose calls are refused because a budget is used up. */
export async function stoppedTokensOf(
  services: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  userId: number,
  tokenIds: readonly number[],
): Promise<number[]> {
  if (tokenIds.length === 0) return []
  const tokens = await services.store.read('findTokensWithKeys', { userId, tokenIds })
  return stoppedTokens(
    services,
    tokens.map(({ token }) => token),
  )
}

function refuse(field: string, error: string | undefined): void {
  if (error !== undefined) throw new GatewayError('invalid_request', `${field}: ${error}`)
}

/** Maximum number of keys that one request may reveal; `docs/api.md: Limits`. */
const MAX_KEYS_PER_REQUEST = 100

/** The key of one of the user's tokens in plain text, including `sk-`. */
export async function revealKey(
  { store }: ManagementServices,
  { user: userId, id: tokenId }: { readonly user: number; readonly id: number },
): Promise<string> {
  await store.write('recordReveal', { kind: 'key', ids: [tokenId], userId })
  const key = (await store.read('revealKey', { tokenId, userId })) ?? ownTokenNotFound()
  if (key === '')
    throw new GatewayError(
      'invalid_request',
      'this key was imported as a digest: it can be shown once a call has used it',
    )
  return `sk-${key}`
}

/**
 * The keys in plain text, by id, of those tokens that belong to the user. Throws `batch_too_many` for more
 * than 100 ids.
 */
export async function revealKeys(
  { store }: ManagementServices,
  { user: userId, ids }: { readonly user: number; readonly ids: readonly number[] },
): Promise<Record<string, string>> {
  requireFewIds(ids, MAX_KEYS_PER_REQUEST, 'keys are revealed')
  await store.write('recordReveal', { kind: 'key', ids, userId })
  const found = await store.read('revealKeys', { tokenIds: ids, userId })
  // Of imported keys that were never used only a digest is known.
  const known = found.filter(({ key }) => key !== '')
  return Object.fromEntries(known.map(({ tokenId, key }) => [String(tokenId), `sk-${key}`]))
}
