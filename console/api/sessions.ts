import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { usageSessionSchema } from '../../src/management/usage/usage-sessions.ts'
import type { CallFilterValues } from './calls.ts'
import { queryString, request } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'

/** A session (calls that belong to one conversation), with the sums of its calls. */
export type CallSession = z.output<typeof usageSessionSchema>

/** Filters of the list of sessions; a filter that is not set is absent. */
export interface SessionFilter {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
  readonly session?: string
  /** Only administrators may filter by user. */
  readonly username?: CallFilterValues
}

export const SESSION_PAGE_SIZE = 50

/**
 * A page of sessions; the session with the newest call comes first. Administrators see the sessions of all
 * users, other users their own.
 */
export function callSessionsQuery(userId: number, filter: SessionFilter, page: number) {
  return queryOptions({
    queryKey: [userId, 'sessions', filter, page],
    queryFn: () =>
      request<PageOfItems<CallSession>>(
        'GET',
        `/api/sessions${queryString({ ...filter, p: page, page_size: SESSION_PAGE_SIZE })}`,
      ),
  })
}
