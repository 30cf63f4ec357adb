import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { findSchema } from '../../src/management/find-objects.ts'
import { queryString, request } from './client.ts'

/** A key, model, channel, user, group or call that a search has found. */
export type FoundObject = z.output<typeof findSchema>['items'][number]

const FRESH_MS = 10_000

/** The objects that a search for a text finds. */
export function findQuery(userId: number, text: string) {
  return queryOptions({
    queryKey: [userId, 'find', text],
    queryFn: async () =>
      (
        await request<{ readonly items: readonly FoundObject[] }>(
          'GET',
          `/api/find${queryString({ q: text })}`,
        )
      ).items,
    enabled: text.trim() !== '',
    staleTime: FRESH_MS,
  })
}
