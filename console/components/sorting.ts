import type { Sorting } from './data-table.tsx'
import type { SearchState } from './search-state.ts'

/** The order of a list as the gateway takes it; undefined for the default order of the list. */
export interface ListOrder {
  readonly sort?: string | undefined
  readonly order?: string | undefined
}

/** The order of a list in the address. */
export function listOrderOf({ sort, order }: SearchState): ListOrder {
  return sort === undefined ? {} : { sort, order: order === 'desc' ? 'desc' : 'asc' }
}

/** The order of a table in the address; another one begins with the first page. */
export function sortingOf(search: SearchState, setSearch: (changes: SearchState) => void): Sorting {
  const { sort, order } = listOrderOf(search)
  return {
    order: sort === undefined ? undefined : { key: sort, isDescending: order === 'desc' },
    onOrder: ({ key, isDescending }) =>
      setSearch({ sort: key, order: isDescending ? 'desc' : 'asc', p: undefined }),
  }
}
