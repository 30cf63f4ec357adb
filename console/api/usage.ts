import { queryOptions } from '@tanstack/react-query'
import type { Scope } from './calls.ts'
import { queryText, request } from './client.ts'

/** Sums of one slot. */
export interface UsagePoint {
  readonly requests: number
  readonly failed: number
  readonly quota: number
  readonly input: number
  readonly cached: number
  readonly cache_write: number
  readonly output: number
  readonly reasoning: number
}

/** Durations of the calls of a slot; null without calls. */
export interface UsageLatency {
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly first_p50_ms: number | null
  readonly first_p95_ms: number | null
}

/** The points of one model, key, user, channel or group. */
export interface UsageSeries {
  readonly key: string
  readonly label: string
  readonly points: readonly UsagePoint[]
}

/** Sums by time. */
export interface Usage {
  readonly step: 'hour' | 'day' | 'month'
  readonly tz: string
  /** Unix seconds of the start of each slot. */
  readonly slots: readonly number[]
  readonly series: readonly UsageSeries[]
  readonly other: { readonly points: readonly UsagePoint[] } | null
  readonly totals: UsagePoint
  readonly previous: UsagePoint
  readonly latency: readonly UsageLatency[]
  readonly exact: boolean
}

/** Query for sums; undefined filters are absent. */
export interface UsageQuery {
  readonly from: number
  readonly to: number
  readonly tz: string
  readonly step: Usage['step']
  readonly by: string
  readonly top: number
  readonly model_name?: string | undefined
  readonly token_name?: string | undefined
  readonly username?: string | undefined
  readonly channel?: string | undefined
  readonly group?: string | undefined
}

function usagePath(scope: Scope): string {
  return scope === 'all' ? '/api/usage' : '/api/usage/self'
}

/** The sums of a period. */
export function usageQuery(userId: number, scope: Scope, asked: UsageQuery) {
  return queryOptions({
    queryKey: [userId, 'usage', scope, asked],
    queryFn: () => request<Usage>('GET', `${usagePath(scope)}${queryText({ ...asked })}`),
  })
}

/** The address of the sums of a period as CSV. */
export function usageCsvUrl(scope: Scope, asked: UsageQuery): string {
  return `${usagePath(scope)}${queryText({ ...asked, format: 'csv' })}`
}

/** Calls that were refused before they began, by their code. */
export interface Refusals {
  readonly series: readonly { readonly key: string; readonly calls: readonly number[] }[]
  readonly other: { readonly calls: readonly number[] } | null
  readonly total: number
}

/** The refused calls of a period; of the filters, keys and users are known of them alone. */
export function refusalsQuery(userId: number, scope: Scope, asked: UsageQuery) {
  const { from, to, tz, step, top, token_name, username } = asked
  const query = { from, to, tz, step, top, token_name, username, by: 'code' }
  return queryOptions({
    queryKey: [userId, 'refusals', scope, query],
    queryFn: () => request<Refusals>('GET', `${usagePath(scope)}/refusals${queryText(query)}`),
  })
}
