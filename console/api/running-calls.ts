import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { runningSchema } from '../../src/management/usage/running-calls.ts'
import { request } from './client.ts'

/** The calls under way on one node. */
type Running = z.output<typeof runningSchema>

/** A call under way, with its node. */
export type RunningCall = Running['items'][number] & { readonly node: string }

/** Milliseconds between two requests for the calls under way. */
const LOOK_MS = 1000

/** The calls under way on all nodes, the oldest first, while the page is visible. */
export function runningCallsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'running'],
    queryFn: async () => {
      const { others, ...own } = await request<Running>('GET', '/api/running?nodes=all')
      const nodes = [own, ...others]
      const items = nodes.flatMap(({ node, items: calls }) => calls.map((one) => ({ ...one, node })))
      return {
        at: own.at,
        total: nodes.reduce((sum, { total }) => sum + total, 0),
        items: items.toSorted((a, b) => a.started_at - b.started_at),
      }
    },
    refetchInterval: LOOK_MS,
    staleTime: 0,
  })
}

/** Ends a call under way. */
export async function stopCall(id: string): Promise<void> {
  await request('POST', `/api/running/${id}/stop`)
}
