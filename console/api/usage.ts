import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { CalendarStep } from '../../src/domain/calendar.ts'
import type { failedCallsSchema } from '../../src/management/usage/refusals.ts'
import type { usageSeriesSchema } from '../../src/management/usage/usage-series.ts'
import { basePath } from './base-path.ts'
import type { CallOriginFilter, CallScope } from './calls.ts'
import { queryString, request } from './client.ts'

/** Sums of usage, with one entry per interval of time. */
export type Usage = z.output<typeof usageSeriesSchema>

/** The sums of usage in one interval of time. */
export type UsagePoint = Usage['totals']

/** A query for sums of usage; filters without a value are absent. */
export interface UsageQuery extends CallOriginFilter {
  readonly from: number
  readonly to: number
  readonly tz: string
  readonly step: CalendarStep
  readonly by: string
  readonly top: number
  readonly rank?: string | undefined
}

function usagePath(scope: CallScope): string {
  return scope === 'all' ? '/api/usage' : '/api/usage/self'
}

/** The sums of usage in a period. */
export function usageQuery(userId: number, scope: CallScope, params: UsageQuery) {
  return queryOptions({
    queryKey: [userId, 'usage', scope, params],
    queryFn: () => request<Usage>('GET', `${usagePath(scope)}${queryString({ ...params })}`),
  })
}

/** The URL of the CSV file with the sums of usage in a period. */
export function usageCsvUrl(scope: CallScope, params: UsageQuery): string {
  return `${basePath}${usagePath(scope)}${queryString({ ...params, format: 'csv' })}`
}

/** The number of failed or refused calls in each interval of time; null where a cause is not known any more. */
export type CallCounts = z.output<typeof failedCallsSchema>

/** The failed calls of a period, grouped by `by`, such as the cause or the model. */
export function failuresQuery(userId: number, scope: CallScope, params: UsageQuery, by: string) {
  return countedQuery(userId, scope, 'failures', { ...params, rank: undefined, by })
}

/** The refused calls of a period. Only the filters by key and user apply to them. */
export function refusalsQuery(userId: number, scope: CallScope, params: UsageQuery) {
  const { from, to, tz, step, top, token_id, token_name, username } = params
  const query = { from, to, tz, step, top, token_id, token_name, username, by: 'code' }
  return countedQuery(userId, scope, 'refusals', query)
}

/** The period and the filters by which refused calls are counted. */
export type RefusalCountQuery = Pick<UsageQuery, 'from' | 'to' | 'token_id' | 'token_name' | 'username'> & {
  readonly code: readonly string[]
}

/** The number of refused calls, also of those that their list does not keep. */
export function refusalCountQuery(userId: number, scope: CallScope, query: RefusalCountQuery) {
  return countedQuery(userId, scope, 'refusals', { ...query, step: 'month', by: 'none' })
}

function countedQuery(userId: number, scope: CallScope, kind: 'failures' | 'refusals', query: object) {
  return queryOptions({
    queryKey: [userId, kind, scope, query],
    queryFn: () => request<CallCounts>('GET', `${usagePath(scope)}/${kind}${queryString({ ...query })}`),
  })
}
