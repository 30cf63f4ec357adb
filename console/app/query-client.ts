import { type InvalidateOptions, type InvalidateQueryFilters, QueryClient } from '@tanstack/react-query'
import { ApiError } from '../api/api-error.ts'

const STALE_MS = 30_000
const RETRIES = 2
/** Maximum seconds that a refused request waits before it is sent again. */
const MAX_WAIT_S = 180

/** A cache whose first answers are as new as the later ones. */
class ResponseCache extends QueryClient {
  /**
   * Fetches again, also what is still being fetched for the first time: the answer may be of the time before the change. The
   * library does so only where it has an earlier answer.
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
