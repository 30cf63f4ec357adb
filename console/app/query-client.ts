import { QueryClient } from '@tanstack/react-query'
import { ApiError } from '../api/api-error.ts'

const STALE_MS = 30_000
const RETRIES = 2
/** Longest wait before a refused request is sent again. */
const MAX_WAIT_S = 180

/** The one cache of what the server said. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      // A gateway in a private network answers also where the browser believes to be offline.
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
