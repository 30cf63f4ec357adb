import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { callContentSchema } from '../../src/management/usage/call-content.ts'
import { ApiError } from './api-error.ts'
import { request } from './client.ts'

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
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: async () => {
      try {
        return await request<CallContent>('GET', `/api/content/${encodeURIComponent(id)}`)
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
  })
}
