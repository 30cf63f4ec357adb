import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { callSchema, ownCallSchema } from '../../src/management/usage/call-detail.ts'
import type { refusedCallSchema, refusedDetailSchema } from '../../src/management/usage/refused-calls.ts'
import type { ownUsageSchema, usageStatSchema } from '../../src/management/usage/usage-object.ts'
import type { ListOrder } from '../components/sorting.ts'
import { ApiError } from './api-error.ts'
import { queryText, request } from './client.ts'
import type { Paged } from './paged.ts'
import type { Usage } from './usage.ts'

type AnyCall = z.output<typeof callSchema>

/**
 * A call that has ended and was charged; only administrators get the channel and the upstream's name of the
 * model.
 */
export type Call = z.output<typeof ownUsageSchema> & Partial<Pick<AnyCall, 'channel' | 'upstream_model'>>

/**
 * A call with the lines of its cost. Only administrators get the attempts; these are empty if the only
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

/** Filters by model, key, user and so on; fields without a value are absent. */
export interface OriginFilter {
  readonly model_name?: OneOrMore
  readonly token_id?: OneOrMore
  readonly token_name?: OneOrMore
  readonly username?: OneOrMore
  readonly channel?: OneOrMore
  readonly group?: OneOrMore
  readonly service_tier?: OneOrMore
  readonly region?: OneOrMore
}

/** All filters that the gateway supports; fields without a value are absent. */
export interface CallFilter extends OriginFilter {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
  readonly request_id?: string | undefined
  /** Several reasons are separated by commas. */
  readonly reason?: string | undefined
  readonly cause?: OneOrMore
  readonly session?: OneOrMore
  readonly cache_break?: OneOrMore
}

/** One value of a filter, or several; a call must match one of them. */
export type OneOrMore = string | readonly string[] | undefined

/** `own`: the calls of the signed-in account. `all`: the calls of all users. */
export type Scope = 'own' | 'all'

export const CALL_PAGE_SIZE = 50
const HALF_HOUR_S = 1_800

function callsPath(scope: Scope, part: '' | 'stat' | 'export'): string {
  if (scope === 'all') return `/api/log/${part}`
  return part === '' ? '/api/log/self' : `/api/log/self/${part}`
}

/** A page of calls, newest first unless another order is chosen. */
export function callsQuery(
  userId: number,
  scope: Scope,
  filter: CallFilter,
  page: number,
  { pageSize = CALL_PAGE_SIZE, ...order }: ListOrder & { readonly pageSize?: number } = {},
) {
  return queryOptions({
    queryKey: [userId, 'calls', scope, filter, page, pageSize, order],
    queryFn: () =>
      request<Paged<Call>>(
        'GET',
        `${callsPath(scope, '')}${queryText({ ...filter, ...order, p: page, page_size: pageSize })}`,
      ),
  })
}

/** A refused call in a list. */
export type ListedRefusal = z.output<typeof refusedCallSchema>

/** The filters that refused calls support. */
export interface RefusedFilter extends CallFilter {
  readonly code?: OneOrMore
}

/** A page of refused calls, newest first. */
export function refusedCallsQuery(userId: number, scope: Scope, filter: RefusedFilter, page: number) {
  const path = scope === 'all' ? '/api/log/refused' : '/api/log/self/refused'
  return queryOptions({
    queryKey: [userId, 'refused-calls', scope, filter, page],
    queryFn: () =>
      request<Paged<ListedRefusal>>(
        'GET',
        `${path}${queryText({ ...filter, p: page, page_size: CALL_PAGE_SIZE })}`,
      ),
  })
}

/** The sums of all calls that a filter selects. */
export function callSumsQuery(userId: number, scope: Scope, filter: CallFilter) {
  return queryOptions({
    queryKey: [userId, 'call-sums', scope, filter],
    queryFn: async () =>
      (await sumsOfHalfHours(scope, filter)) ??
      request<CallSums>('GET', `${callsPath(scope, 'stat')}${queryText({ ...filter })}`),
  })
}

/**
 * The sums of calls since the start of a half hour, from the sums that the gateway stores for each half hour:
 * otherwise a million calls of today would be added up for each request. Undefined if the stored sums cannot
 * answer the filter.
 */
async function sumsOfHalfHours(
  scope: Scope,
  { start_timestamp: from, end_timestamp: to, ...given }: CallFilter,
): Promise<CallSums | undefined> {
  const isWhole = [from, to === undefined ? 0 : to + 1].every(
    (at) => at !== undefined && at % HALF_HOUR_S === 0,
  )
  const { reason, cause, request_id: id, session, cache_break: broke, ...filter } = given
  // The gateway does not store separate sums for these filters.
  if (!isWhole || [reason, cause, id, session, broke].some((one) => (one ?? '').length > 0)) return undefined
  const path = `/api/usage${scope === 'all' ? '' : '/self'}`
  const query = queryText({
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

/** The address of the CSV file with the calls that a filter selects. */
export function callsCsvUrl(scope: Scope, filter: CallFilter): string {
  return `${callsPath(scope, 'export')}${queryText({ ...filter })}`
}

/** One call by its id, charged or refused; null if it does not exist or belongs to another account. */
export function loggedCallQuery(userId: number, scope: Scope, id: string) {
  return queryOptions({
    queryKey: [userId, 'logged-call', scope, id],
    queryFn: () => findCall(scope, id),
  })
}

/** One settled call by its id; null if it does not exist or belongs to another account. */
export function callQuery(userId: number, scope: Scope, id: string) {
  return queryOptions({
    queryKey: [userId, 'call', scope, id],
    queryFn: async () => {
      const found = await findCall(scope, id)
      return found?.type === 2 ? found : null
    },
  })
}

async function findCall(scope: Scope, id: string): Promise<CallDetail | RefusedCall | null> {
  const path = scope === 'all' ? '/api/log/' : '/api/log/self/'
  try {
    return await request<CallDetail | RefusedCall>('GET', `${path}${encodeURIComponent(id)}`)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}
