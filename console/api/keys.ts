import { queryOptions } from '@tanstack/react-query'
import { Role } from '../../src/domain/role.ts'
import type { NewTokenFields, TokenObject } from '../../src/management/tokens/token-object.ts'
import type { TokenPage } from '../../src/management/tokens/list-tokens.ts'
import type { allTokensSchema } from '../../src/management/tokens/tokens-of-all.ts'
import type { z } from 'zod'
import { characterCount } from '../components/character-count.ts'
import type { ListOrder } from '../components/sorting.ts'
import { queryString, request } from './client.ts'

/** An API key, masked. */
export type ApiKey = TokenObject

/**
 * Whether an operator has set limits of the key that a user with this role may not change; root may always
 * change them.
 */
export function isLimitedByOperator(role: number, { limits_by }: ApiKey): boolean {
  return limits_by === 'operator' && role < Role.root
}

/** A key that was just created, in full. */
export interface NewKey {
  readonly id: number
  readonly key: string
}

export const KEY_PAGE_SIZE = 50
/** The most keys that the gateway returns at once. */
const MAX_PAGE_SIZE = 100
/** The minimum number of characters for which the gateway searches. */
const MIN_SEARCH = 2

/** A page of the account's keys whose name contains `search`, newest first unless sorted. */
export function keysQuery(userId: number, page: number, search: string, order: ListOrder = {}) {
  const part = search.replaceAll('%', '').trim()
  const keyword = characterCount(part) < MIN_SEARCH ? undefined : `%${part}%`
  return queryOptions({
    queryKey: [userId, 'keys', page, keyword, order],
    queryFn: () => {
      const query = queryString({ p: page, page_size: KEY_PAGE_SIZE, keyword, ...order })
      return request<TokenPage>('GET', `/api/token/${keyword === undefined ? '' : 'search'}${query}`)
    },
  })
}

/** All keys of the account, newest first. */
export function allKeysQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'keys', 'all'],
    queryFn: async () => {
      const keys: ApiKey[] = []
      // From the oldest on, so that a key that is made meanwhile moves none to the next page.
      for (let page = 1, total = 1; (page - 1) * MAX_PAGE_SIZE < total; page += 1) {
        const query = queryString({ p: page, page_size: MAX_PAGE_SIZE, sort: 'created_time', order: 'asc' })
        const answer = await request<TokenPage>('GET', `/api/token/${query}`)
        keys.push(...answer.items)
        total = answer.total
      }
      return keys.toReversed()
    },
  })
}

/** The names of the account's keys that contain a text: at most the first 100. */
export function keyNamesQuery(userId: number, part: string) {
  return queryOptions({
    queryKey: [userId, 'keys', 'names', part],
    queryFn: async () => {
      const query = queryString({ keyword: `%${part}%`, page_size: MAX_PAGE_SIZE })
      const { items } = await request<TokenPage>('GET', `/api/token/search${query}`)
      return new Set(items.map(({ name }) => name))
    },
    staleTime: 0,
  })
}

/** A key in the list of the keys of all users. */
export type KeyOfUser = z.output<typeof allTokensSchema>['items'][number]

/** Filters of the keys of all users; absent ones match everything. */
export interface KeysOfAllFilter {
  readonly keyword?: string | undefined
  readonly user?: string | undefined
  /** The last four characters of a key. */
  readonly last4?: string | undefined
  readonly status?: string | undefined
}

/** A page of the keys that an administrator manages, newest first unless sorted. */
export function keysOfAllQuery(userId: number, page: number, filter: KeysOfAllFilter, order: ListOrder = {}) {
  return queryOptions({
    queryKey: [userId, 'keys-of-all', page, filter, order],
    queryFn: () => {
      const query = queryString({ p: page, page_size: KEY_PAGE_SIZE, ...filter, ...order })
      return request<z.output<typeof allTokensSchema>>('GET', `/api/token/all${query}`)
    },
  })
}

/** The path of one key. `ofUser` is its owner, if that is another user than the signed-in one. */
function keyPath(id: number, ofUser: number | undefined): string {
  return ofUser === undefined ? `/api/token/${id}` : `/api/user/${ofUser}/tokens/${id}`
}

/** One of the account's keys, or of another user's keys, by its id. */
export function keyQuery(userId: number, id: number, ofUser?: number) {
  return queryOptions({
    queryKey: [userId, 'key', id, ofUser],
    queryFn: () => request<ApiKey>('GET', keyPath(id, ofUser)),
  })
}

/** The keys, among those given, that are enabled and that a used-up budget could stop. */
function limitedByBudget(keys: readonly ApiKey[]): readonly ApiKey[] {
  return keys.filter(({ status, left_by }) => status === 1 && left_by?.endsWith('budget'))
}

/**
 * The ids of the given keys whose calls a budget refuses; `ofUser` is the owner of the keys, if that is
 * another user.
 */
export function keysStoppedByBudgetQuery(userId: number, keys: readonly ApiKey[], ofUser?: number) {
  const ids = limitedByBudget(keys).map(({ id }) => id)
  const path = ofUser === undefined ? '/api/token' : `/api/user/${ofUser}/tokens`
  return queryOptions({
    queryKey: [userId, 'stopped-keys', ofUser, ...ids],
    queryFn: () => request<readonly number[]>('GET', `${path}/stopped${queryString({ ids: ids.join(',') })}`),
    enabled: ids.length > 0,
  })
}

/** Creates a key and returns it in full. */
export function createKey(fields: NewTokenFields): Promise<NewKey> {
  return request<NewKey>('POST', '/api/token/?reveal=1', fields)
}

/** Returns the full key, which is never stored in the query cache. */
export async function revealKey(id: number): Promise<string> {
  const { key } = await request<{ readonly key: string }>('POST', `/api/token/${id}/key`)
  return key
}

export function changeKey(
  id: number,
  fields: Partial<NewTokenFields> & { readonly version?: string | undefined },
  ofUser?: number,
): Promise<ApiKey> {
  const path = ofUser === undefined ? '/api/token/' : `/api/user/${ofUser}/tokens`
  return request<ApiKey>('PUT', path, { id, ...fields })
}

/** Enables or disables a key. */
export function setKeyEnabled(id: number, isEnabled: boolean, ofUser?: number): Promise<ApiKey> {
  const path = ofUser === undefined ? '/api/token/?status_only=1' : `/api/user/${ofUser}/tokens`
  return request<ApiKey>('PUT', path, { id, status: isEnabled ? 1 : 2 })
}

/** Gives a key a new secret, and returns it. The present one is refused from then on. */
export async function rotateKey(id: number, ofUser?: number): Promise<string> {
  const { key } = await request<ApiKey>('POST', `${keyPath(id, ofUser)}/rotate`)
  return key
}

export async function deleteKey(id: number, ofUser?: number): Promise<void> {
  await request('DELETE', keyPath(id, ofUser))
}
