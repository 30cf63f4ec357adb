import { type InvalidateOptions, type InvalidateQueryFilters, QueryClient } from '@tanstack/react-query'
import { ApiError, RETRIES } from '../api/api-error.ts'

const STALE_MS = 30_000
/** Maximum seconds that a refused request waits before it is sent again. */
const MAX_WAIT_S = 180

/** A cache that is as new after a change whether or not it was filled before. */
class ResponseCache extends QueryClient {
  /**
   * Also fetches again what is being fetched for the first time, because that answer may be older than the change. The library
   * goes on with such a fetch.
   */
  override async invalidateQueries(
    filters: InvalidateQueryFilters = {},
    options?: InvalidateOptions,
  ): Promise<void> {
    const isFirst: typeof filters.predicate = (query) =>
      query.state.data === undefined && (filters.predicate?.(query) ?? true)
    await this.cancelQueries({ ...filters, type: 'active', predicate: isFirst })
    await super.invalidateQueries(filters, options)
  }
}

/** The cache of the gateway's responses. */
export const queryClient = new ResponseCache({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      // Always send requests: a gateway in a private network responds even if the browser is offline.
      networkMode: 'always',
      retry: (failures, error) => failures < RETRIES && error instanceof ApiError && error.isPassing,
      retryDelay: (failures, error) =>
        error instanceof ApiError && error.retryAfter !== undefined
          ? Math.min(error.retryAfter, MAX_WAIT_S) * 1000
          : 500 * 2 ** failures,
    },
    mutations: { networkMode: 'always' },
  },
})
