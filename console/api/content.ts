import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { callContentSchema } from '../../src/management/usage/call-content.ts'
import type { contentSearchSchema, firstWordsSchema } from '../../src/management/usage/search-content.ts'
import { ApiError, RETRIES, retryWhileBusy } from './api-error.ts'
import type { CallFilterValues } from './calls.ts'
import { queryString, request } from './client.ts'

/** The recorded request and response of a call. */
export type CallContent = z.output<typeof callContentSchema>

/** One recorded part of a call, such as its request or its response. */
export type ContentPart = NonNullable<CallContent['parts'][keyof CallContent['parts']]>

/** Consecutive messages of one side in a call. */
export type ConversationTurn = NonNullable<CallContent['conversation']>[number]

/** A part of a turn, such as a text, a tool call or a file. */
export type ConversationPart = ConversationTurn['parts'][number]

/** The recorded content of a call; null if nothing was recorded, or if the account may not read it. */
export function contentQuery(userId: number, id: string) {
  return queryOptions({
    queryKey: [userId, 'content', id],
    // Reading another user's content is audited, so the query never refetches by itself.
    staleTime: Infinity,
    retry: retryWhileBusy,
    refetchOnWindowFocus: false,
    queryFn: async () => {
      try {
        return await request<CallContent>('GET', `/api/content/${encodeURIComponent(id)}`)
      } catch (error) {
        if (error instanceof ApiError && error.isNotFound) return null
        throw error
      }
    },
  })
}

/** What a user said first in a call; the text is null if it is that of another user, and was not asked for. */
export type FirstWords = z.output<typeof firstWordsSchema>['items'][number]

/** The calls in which searched words were said, and how far the search went. */
export type ContentSearch = z.output<typeof contentSearchSchema>

/** A search in what was said; each page continues the one before it. */
export function contentSearchQuery(
  userId: number,
  filter: {
    readonly q: string
    readonly start_timestamp?: number | undefined
    readonly end_timestamp?: number | undefined
    readonly username?: CallFilterValues
  },
) {
  return infiniteQueryOptions({
    queryKey: [userId, 'content-search', filter],
    // Hits of other users are audited, so the query never refetches by itself.
    staleTime: Infinity,
    retry: retryWhileBusy,
    refetchOnWindowFocus: false,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }: ContentSearch) => next ?? undefined,
    queryFn: ({ pageParam: after }) =>
      request<ContentSearch>('GET', `/api/content/search${queryString({ ...filter, after })}`),
  })
}

/** Milliseconds until first words that could not be read are requested again. */
const AGAIN_MS = 1_000

/** What users said first in calls; with `others`, also in those of other users, which is audited. */
export function firstWordsQuery(userId: number, ids: readonly string[], others: boolean) {
  return queryOptions({
    queryKey: [userId, 'first-words', ids, others],
    staleTime: ({ state }) => (state.data?.unread ? 0 : Infinity),
    retry: retryWhileBusy,
    // The gateway was too busy for some. Reads of others are audited, so those are not repeated.
    refetchInterval: ({ state }) =>
      !others && state.data?.unread && state.dataUpdateCount <= RETRIES ? AGAIN_MS : false,
    refetchOnWindowFocus: false,
    enabled: ids.length > 0,
    queryFn: () =>
      request<z.output<typeof firstWordsSchema>>(
        'GET',
        `/api/content/words${queryString({ id: ids, others: others ? '1' : undefined })}`,
      ),
  })
}
