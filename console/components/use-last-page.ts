import type { UseQueryResult } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import type { PageOfItems } from '../api/page-of-items.ts'
import type { SearchState } from './search-state.ts'

/** Leads from a page beyond the end of a list, as after the deletion of the only item of a page, to the last page. */
export function useLastPage(
  { data, isPlaceholderData }: UseQueryResult<PageOfItems<unknown>>,
  pageSize: number,
): void {
  const navigate = useNavigate()
  const isBeyond = data !== undefined && !isPlaceholderData && data.items.length === 0 && data.total > 0
  const last = Math.ceil((data?.total ?? 0) / pageSize)
  useEffect(() => {
    if (!isBeyond) return
    void navigate({
      to: '.',
      search: (before: SearchState) => ({ ...before, p: String(last) }) as never,
      replace: true,
      resetScroll: false,
    })
  }, [isBeyond, last, navigate])
}
