import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { PageOfItems } from '../api/page-of-items.ts'
import { type Column, DataTable } from './data-table.tsx'
import { Pager } from './pager.tsx'
import { QueryResult } from './query-result.tsx'
import { useSearchState } from './search-state.ts'
import { sortingOf } from './sorting.ts'
import { useLastPage } from './use-last-page.ts'

/** The number of rows of the placeholder of a list ordered by time, which is mostly long. */
const ROWS_BY_TIME = 12

/** A table that the server divides into pages; its page and order are in the URL. */
export function PagedTable<Row extends { readonly id: number | string }>({
  label,
  columns,
  query,
  pageSize,
  isByTime = false,
  areOpened = false,
  above,
  empty,
}: {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly query: UseQueryResult<PageOfItems<Row>>
  readonly pageSize: number
  /** Whether the newest rows come first, and cannot be sorted in another order. */
  readonly isByTime?: boolean
  /** Whether a click anywhere on a row opens it. */
  readonly areOpened?: boolean
  /** Shown above a table that has rows. */
  readonly above?: ReactNode
  /** Shown in place of a table without rows. */
  readonly empty: ReactNode
}) {
  const [search, setSearch] = useSearchState()
  useLastPage(query, pageSize)
  return (
    <QueryResult query={query} rows={isByTime ? ROWS_BY_TIME : undefined}>
      {({ items, total }) =>
        items.length === 0 ? (
          empty
        ) : (
          <>
            {above}
            <DataTable
              label={label}
              columns={columns}
              rows={items}
              keyOf={({ id }) => id}
              isStale={query.isPlaceholderData}
              areOpened={areOpened}
              sorting={isByTime ? undefined : sortingOf(search, setSearch)}
            />
            <Pager
              page={Number(search['p'] ?? '1')}
              pageSize={pageSize}
              total={total}
              onPage={(next) => setSearch({ p: String(next) })}
              isByTime={isByTime}
            />
          </>
        )
      }
    </QueryResult>
  )
}
