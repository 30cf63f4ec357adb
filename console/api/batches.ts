import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { batchDetailSchema, batchSchema } from '../../src/management/batches/batches.ts'
import { basePath } from './base-path.ts'
import type { CallFilterValues } from './calls.ts'
import { queryString, request } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'

/** A batch with its progress and cost. */
export type Batch = z.output<typeof batchSchema>

/** A batch with the first lines that have failed. */
export type BatchDetail = z.output<typeof batchDetailSchema>

export const BATCH_PAGE_SIZE = 50
/** Interval at which the progress of batches is fetched again, in milliseconds. */
const REFRESH_MS = 5_000

/** A page of batches, the newest first. Administrators see those of all users. */
export function batchesQuery(userId: number, username: CallFilterValues, page: number) {
  return queryOptions({
    queryKey: [userId, 'batches', username, page],
    queryFn: () =>
      request<PageOfItems<Batch>>(
        'GET',
        `/api/batches${queryString({ username, p: page, page_size: BATCH_PAGE_SIZE })}`,
      ),
    refetchInterval: REFRESH_MS,
  })
}

export function batchQuery(userId: number, id: string) {
  return queryOptions({
    queryKey: [userId, 'batches', id],
    queryFn: () => request<BatchDetail>('GET', `/api/batches/${encodeURIComponent(id)}`),
    refetchInterval: ({ state }) => (state.data && state.data.ended_at === null ? REFRESH_MS : false),
  })
}

export async function cancelBatch(id: string): Promise<void> {
  await request('POST', `/api/batches/${encodeURIComponent(id)}/cancel`)
}

/** The URL of the results or the failed lines of an own batch. */
export function batchLinesUrl(id: string, which: 'results' | 'errors'): string {
  return `${basePath}/api/batches/${encodeURIComponent(id)}/${which}`
}
