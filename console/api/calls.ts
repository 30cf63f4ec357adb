import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { usageSchema, usageStatSchema } from '../../src/management/usage/usage-object.ts'
import { queryText, request } from './client.ts'

/** A settled call; the last two fields are for administrators. */
export type Call = Omit<z.output<typeof usageSchema>, 'channel' | 'upstream_model'> & {
  readonly channel?: string
  readonly upstream_model?: string
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
  return queryOptions({
    queryKey: [userId, 'call', scope, id],
    queryFn: async () => {
      const found = await request<CallPage>('GET', `${callsPath(scope, '')}${queryText({ request_id: id })}`)
      return found.items[0] ?? null
    },
  })
}
