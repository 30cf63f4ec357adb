import { queryOptions } from '@tanstack/react-query'
import { ApiError } from './api-error.ts'
import { send } from './client.ts'

/** Whether this gateway has an endpoint: a page without its endpoint is not offered. Asked once. */
export function offeredQuery(userId: number, probe: string) {
  return queryOptions({
    queryKey: [userId, 'offered', probe],
    queryFn: async () => {
      try {
        await send('GET', probe)
        return true
      } catch (error) {
        return !(error instanceof ApiError && error.status === 404)
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
}
