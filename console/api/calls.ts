import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { callSchema, ownCallSchema } from '../../src/management/usage/call-detail.ts'
import type { refusedCallSchema, refusedDetailSchema } from '../../src/management/usage/refused-calls.ts'
import type { ownUsageSchema, usageStatSchema } from '../../src/management/usage/usage-object.ts'
import type { ListOrder } from '../components/sorting.ts'
import { HALF_HOUR_S } from '../components/time.ts'
import { ApiError } from './api-error.ts'
import { basePath } from './base-path.ts'
import { queryString, request } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'
import type { Usage } from './usage.ts'

type AnyCall = z.output<typeof callSchema>

/**
 * A call that has ended and was charged; only administrators get the channel and the upstream's name of the
 * model.
 */
export type Call = z.output<typeof ownUsageSchema> & Partial<Pick<AnyCall, 'channel' | 'upstream_model'>>

/**
 * A call with the items of its cost. Only administrators get the attempts; these are empty if the only
 * attempt succeeded.
 */
export type CallDetail = z.output<typeof ownCallSchema> &
  Partial<Pick<AnyCall, 'attempts' | 'channel' | 'upstream_model'>>

/** A call that was refused before it began. */
export type RefusedCall = z.output<typeof refusedDetailSchema>

/** A request to an upstream; its times are in milliseconds since the start of the call. */
export type CallAttempt = Omit<AnyCall['attempts'][number], 'key_index'>

/** Sums over the calls that a filter selects. */
export type CallSums = Pick<
  z.output<typeof usageStatSchema>,
  'quota' | 'requests' | 'prompt_tokens' | 'completion_tokens'
>

/** Filters by model, key, user and so on; a filter that is not set is absent. */
export interface CallOriginFilter {
  readonly model_name?: CallFilterValues
  readonly token_id?: CallFilterValues
  readonly token_name?: CallFilterValues
  readonly username?: CallFilterValues
  readonly channel?: CallFilterValues
  readonly group?: CallFilterValues
  readonly service_tier?: CallFilterValues
  readonly region?: CallFilterValues
}

/** All filters for calls that the gateway supports; a filter that is not set is absent. */
export interface CallFilter extends CallOriginFilter {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
  readonly request_id?: string | undefined
  /** Reasons for which calls ended, separated by commas. */
  readonly reason?: string | undefined
  readonly cause?: CallFilterValues
  readonly session?: CallFilterValues
  readonly batch?: CallFilterValues
  readonly cache_break?: CallFilterValues
}

/** One value of a filter, or several; a call must match one of them. */
export type CallFilterValues = string | readonly string[] | undefined

/** `own`: the calls of the signed-in account. `all`: the calls of all users. */
export type CallScope = 'own' | 'all'

export const CALL_PAGE_SIZE = 50

function callsPath(scope: CallScope, part: '' | 'stat' | 'export'): string {
  if (scope === 'all') return `/api/log/${part}`
  return part === '' ? '/api/log/self' : `/api/log/self/${part}`
}

/** A page of calls, newest first unless another order is chosen. */
export function callsQuery(
  userId: number,
  scope: CallScope,
  filter: CallFilter,
  page: number,
  { pageSize = CALL_PAGE_SIZE, ...order }: ListOrder & { readonly pageSize?: number } = {},
) {
  return queryOptions({
    queryKey: [userId, 'calls', scope, filter, page, pageSize, order],
    queryFn: () =>
      request<PageOfItems<Call>>(
        'GET',
        `${callsPath(scope, '')}${queryString({ ...filter, ...order, p: page, page_size: pageSize })}`,
      ),
  })
}

export type ListedRefusedCall = z.output<typeof refusedCallSchema>

/** The filters that refused calls support. */
export interface RefusedCallFilter extends CallFilter {
  readonly code?: CallFilterValues
}

/** A page of refused calls, newest first. */
export function refusedCallsQuery(userId: number, scope: CallScope, filter: RefusedCallFilter, page: number) {
  const path = scope === 'all' ? '/api/log/refused' : '/api/log/self/refused'
  return queryOptions({
    queryKey: [userId, 'refused-calls', scope, filter, page],
    queryFn: () =>
      request<PageOfItems<ListedRefusedCall>>(
        'GET',
        `${path}${queryString({ ...filter, p: page, page_size: CALL_PAGE_SIZE })}`,
      ),
  })
}

/** The sums of all calls that a filter selects. */
export function callSumsQuery(userId: number, scope: CallScope, filter: CallFilter) {
  return queryOptions({
    queryKey: [userId, 'call-sums', scope, filter],
    queryFn: async () =>
      (await sumsOfHalfHours(scope, filter)) ??
      request<CallSums>('GET', `${callsPath(scope, 'stat')}${queryString({ ...filter })}`),
  })
}

/**
 * The sums of calls since the start of a half hour. They come from the sums that the gateway stores for each
 * half hour, because a busy day may have a million calls to add up. Undefined if the stored sums cannot
 * answer the filter.
 */
async function sumsOfHalfHours(
  scope: CallScope,
  { start_timestamp: from, end_timestamp: to, ...given }: CallFilter,
): Promise<CallSums | undefined> {
  const isWhole = [from, to === undefined ? 0 : to + 1].every(
    (at) => at !== undefined && at % HALF_HOUR_S === 0,
  )
  const { reason, cause, request_id: id, session, batch, cache_break: broke, ...filter } = given
  // The gateway does not store separate sums for these filters.
  const others = [reason, cause, id, session, batch, broke]
  if (!isWhole || others.some((one) => (one ?? '').length > 0)) return undefined
  const path = `/api/usage${scope === 'all' ? '' : '/self'}`
  const query = queryString({
    ...filter,
    from,
    to: to === undefined ? undefined : to + 1,
    by: 'none',
    step: 'month',
  })
  const { totals, exact } = await request<Usage>('GET', `${path}${query}`)
  if (!exact) return undefined
  const { quota, requests, input, cached, cache_write, output } = totals
  return { quota, requests, prompt_tokens: input + cached + cache_write, completion_tokens: output }
}

/** The URL of the CSV file with the calls that a filter selects, with times in a time zone. */
export function callsCsvUrl(scope: CallScope, filter: CallFilter, timeZone: string): string {
  return `${basePath}${callsPath(scope, 'export')}${queryString({ ...filter, tz: timeZone })}`
}

/** One call by its id, charged or refused; null if it does not exist or belongs to another account. */
export function loggedCallQuery(userId: number, scope: CallScope, id: string) {
  return queryOptions({
    queryKey: [userId, 'logged-call', scope, id],
    queryFn: () => findCall(scope, id),
  })
}

/** One settled call by its id; null if it does not exist or belongs to another account. */
export function callQuery(userId: number, scope: CallScope, id: string) {
  return queryOptions({
    queryKey: [userId, 'call', scope, id],
    queryFn: async () => {
      const found = await findCall(scope, id)
      return found?.type === 2 ? found : null
    },
  })
}

async function findCall(scope: CallScope, id: string): Promise<CallDetail | RefusedCall | null> {
  const path = scope === 'all' ? '/api/log/' : '/api/log/self/'
  try {
    return await request<CallDetail | RefusedCall>('GET', `${path}${encodeURIComponent(id)}`)
  } catch (error) {
    if (error instanceof ApiError && error.isNotFound) return null
    throw error
  }
}
