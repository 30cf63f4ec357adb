import { QueryClient } from '@tanstack/react-query'
import { ApiError } from '../api/api-error.ts'

const STALE_MS = 30_000
const RETRIES = 2
/** Maximum seconds that a refused request waits before it is sent again. */
const MAX_WAIT_S = 180

/** The cache of the gateway's responses. */
export const queryClient = new QueryClient({
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
