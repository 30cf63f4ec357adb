import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { usageSchema, usageStatSchema } from '../../src/management/usage/usage-object.ts'
import { ApiError } from './api-error.ts'
import { queryText, request } from './client.ts'

/** A settled call; the last two fields are for administrators. */
export type Call = Omit<z.output<typeof usageSchema>, 'channel' | 'upstream_model'> & {
  readonly channel?: string
  readonly upstream_model?: string
}

/** Something that a call was charged for. Amounts are decimal texts. */
export interface CostLine {
  /** `input`, `cached`, `cache_write_5m`, `output`, `web_search` and so on; `docs/api.md: Usage log`. */
  readonly kind: string
  readonly count: number
  /** Per million tokens or characters, or per one of anything else. */
  readonly price_usd: string
  /** Quota units before the ratio of the group. */
  readonly quota: string
}

/** A request to an upstream; times from the start of the call. */
export interface CallAttempt {
  readonly channel: string
  readonly started_ms: number
  readonly duration_ms: number
  /** Null: there was no answer. */
  readonly status: number | null
  /** Null: this one was answered. */
  readonly cause: string | null
}

/** A call with what it cost line by line. */
export interface CallDetail extends Call {
  /** Null: the charge does not follow from the counts, or their prices are not kept. */
  readonly cost: readonly CostLine[] | null
  readonly ratio: string | null
  readonly tier_above: number | null
  /** Quota units in one US dollar at that time. */
  readonly quota_per_unit: number | null
  /** Sum of the lines, a decimal text. */
  readonly rounded: string | null
  /** Whether the charge is 1 unit where it would be none. */
  readonly minimum: boolean
  readonly timing: {
    readonly queued_ms: number
    readonly connect_ms: number
    readonly first_byte_ms: number | null
    readonly total_ms: number
  }
  readonly dropped: readonly string[]
  /** For administrators; empty where the only one was answered. */
  readonly attempts?: readonly CallAttempt[]
}

/** Sums over calls. */
export type CallSums = z.output<typeof usageStatSchema>

/** A page of calls. */
export interface CallPage {
  readonly page: number
  readonly page_size: number
  readonly total: number
  readonly items: readonly Call[]
}

/** The filters that the gateway knows; empty ones are absent. */
export interface CallFilter {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
  readonly model_name?: string | undefined
  readonly token_name?: string | undefined
  readonly username?: string | undefined
  readonly channel?: string | undefined
  readonly group?: string | undefined
  readonly request_id?: string | undefined
}

/** Calls of the account alone, or of all users. */
export type Scope = 'own' | 'all'

export const CALL_PAGE_SIZE = 50

function callsPath(scope: Scope, part: '' | 'stat' | 'export'): string {
  if (scope === 'all') return `/api/log/${part}`
  return part === '' ? '/api/log/self' : `/api/log/self/${part}`
}

/** A page of calls, the newest first. */
export function callsQuery(
  userId: number,
  scope: Scope,
  filter: CallFilter,
  page: number,
  pageSize = CALL_PAGE_SIZE,
) {
  return queryOptions({
    queryKey: [userId, 'calls', scope, filter, page, pageSize],
    queryFn: () =>
      request<CallPage>(
        'GET',
        `${callsPath(scope, '')}${queryText({ ...filter, p: page, page_size: pageSize })}`,
      ),
  })
}

/** The sums of all calls that a filter finds. */
export function callSumsQuery(userId: number, scope: Scope, filter: CallFilter) {
  return queryOptions({
    queryKey: [userId, 'call-sums', scope, filter],
    queryFn: () => request<CallSums>('GET', `${callsPath(scope, 'stat')}${queryText({ ...filter })}`),
  })
}

/** The address of the calls that a filter finds, as CSV. */
export function callsCsvUrl(scope: Scope, filter: CallFilter): string {
  return `${callsPath(scope, 'export')}${queryText({ ...filter })}`
}

/** One call by its id; null where there is none, or not for this account. */
export function callQuery(userId: number, scope: Scope, id: string) {
  const path = scope === 'all' ? '/api/log/' : '/api/log/self/'
  return queryOptions({
    queryKey: [userId, 'call', scope, id],
    queryFn: async () => {
      try {
        return await request<CallDetail>('GET', `${path}${encodeURIComponent(id)}`)
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
  })
}
