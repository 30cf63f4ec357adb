import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { PageOfItems } from '../api/page-of-items.ts'
import { type Column, DataTable } from './data-table.tsx'
import { Pager } from './pager.tsx'
import { QueryResult } from './query-result.tsx'
import { useSearchState } from './search-state.ts'
import { sortingOf } from './sorting.ts'

/** A table that the server sorts and divides into pages; its page and order are in the URL. */
export function PagedTable<Row extends { readonly id: number }>({
  label,
  columns,
  query,
  pageSize,
  empty,
}: {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly query: UseQueryResult<PageOfItems<Row>>
  readonly pageSize: number
  /** Shown in place of a table without rows. */
  readonly empty: ReactNode
}) {
  const [search, setSearch] = useSearchState()
  return (
    <QueryResult query={query}>
      {({ items, total }) =>
        items.length === 0 ? (
          empty
        ) : (
          <>
            <DataTable
              label={label}
              columns={columns}
              rows={items}
              keyOf={({ id }) => id}
              isStale={query.isPlaceholderData}
              sorting={sortingOf(search, setSearch)}
            />
            <Pager
              page={Number(search['p'] ?? '1')}
              pageSize={pageSize}
              total={total}
              onPage={(next) => setSearch({ p: String(next) })}
            />
          </>
        )
      }
    </QueryResult>
  )
}
