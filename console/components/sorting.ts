import type { Sorting } from './data-table.tsx'
import type { SearchState } from './search-state.ts'

/** The order of a list as parameters of the API; undefined for the default order. */
export interface ListOrder {
  readonly sort?: string | undefined
  readonly order?: string | undefined
}

/** Reads the order of a list from the page's URL. */
export function listOrderOf({ sort, order }: SearchState): ListOrder {
  return sort === undefined ? {} : { sort, order: order === 'desc' ? 'desc' : 'asc' }
}

/**
 * The order of a table, which is stored in the page's URL. A change of the order returns to the first page.
 */
export function sortingOf(search: SearchState, setSearch: (changes: SearchState) => void): Sorting {
  const { sort, order } = listOrderOf(search)
  return {
    order: sort === undefined ? undefined : { key: sort, isDescending: order === 'desc' },
    onOrder: ({ key, isDescending }) =>
      setSearch({ sort: key, order: isDescending ? 'desc' : 'asc', p: undefined }),
  }
}
