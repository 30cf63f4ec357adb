import { keepPreviousData, useQuery } from '@tanstack/react-query'
import {
  type Call,
  CALL_PAGE_SIZE,
  type CallFilter,
  type CallScope,
  callsQuery,
  type ListedRefusedCall,
  type RefusedCallFilter,
  refusedCallsQuery,
} from '../../api/calls.ts'
import type { PageOfItems } from '../../api/page-of-items.ts'
import { useSignedInAccount } from '../../components/session.tsx'

/** The refused calls of the time that a page of the log covers, and how many more there are in that time. */
interface RefusedOfPage {
  readonly items: readonly ListedRefusedCall[]
  readonly more: number
  /** The number of refused calls if the log has a single page; else 0, because that would be another request. */
  readonly total: number
}

const NONE: RefusedOfPage = { items: [], more: 0, total: 0 }

/**
 * The refused calls between the last call of a page and the last one of the page before it. The gateway keeps them in a list
 * of their own, so that a page of both is put together here.
 */
export function useRefusedOfPage(
  isIncluded: boolean,
  scope: CallScope,
  filters: { readonly settled: CallFilter; readonly refused: RefusedCallFilter },
  page: number,
  calls: PageOfItems<Call> | undefined,
): RefusedOfPage {
  const { profile } = useSignedInAccount()
  const isFirst = page === 1
  const before = useQuery({
    ...callsQuery(profile.id, scope, filters.settled, (page - 1) * CALL_PAGE_SIZE, { pageSize: 1 }),
    enabled: isIncluded && !isFirst,
  })
  const isLast = calls !== undefined && page * CALL_PAGE_SIZE >= calls.total
  const from = isLast ? filters.refused.start_timestamp : calls?.items.at(-1)?.created_at
  const bound = before.data?.items[0]?.created_at
  const to = isFirst || bound === undefined ? filters.refused.end_timestamp : bound - 1
  const { data } = useQuery({
    ...refusedCallsQuery(
      profile.id,
      scope,
      { ...filters.refused, start_timestamp: from, end_timestamp: to },
      1,
    ),
    enabled: isIncluded && calls !== undefined && (isFirst || before.data !== undefined),
    placeholderData: keepPreviousData,
  })
  if (!isIncluded || !data) return NONE
  return {
    items: data.items,
    more: data.total - data.items.length,
    total: isFirst && isLast ? data.total : 0,
  }
}
