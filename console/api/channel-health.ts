import { queryOptions } from '@tanstack/react-query'
import { ApiError } from './api-error.ts'
import { request } from './client.ts'

/** Attempts of one minute; durations are null without any that was answered. */
export interface ChannelMinute {
  readonly requests: number
  readonly failed: number
  readonly p50_ms: number | null
  readonly p95_ms: number | null
}

/** How a channel does, as one node sees it; times in Unix seconds. */
export interface ChannelHealth {
  readonly id: number
  readonly name: string
  readonly state: 'works' | 'failing' | 'resting' | 'probing' | 'disabled'
  /** Failures in a row. */
  readonly failures: number
  readonly rests_until: number | null
  readonly last_error: { readonly at: number; readonly cause: string } | null
  readonly keys: { readonly total: number; readonly set_aside: number }
  /** The last hour, the oldest minute first. */
  readonly minutes: readonly ChannelMinute[]
}

/** The channels as the node sees them that answered. */
export interface NodeHealth {
  readonly node: string
  /** The node's clock, in Unix seconds. */
  readonly at: number
  readonly items: readonly ChannelHealth[]
}

/** The health of all channels, asked for again and again while the page is visible. */
export function channelHealthQuery(userId: number, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'channel-health'],
    queryFn: () => request<NodeHealth>('GET', '/api/channel/health'),
    refetchInterval: everyMs,
    staleTime: 0,
    retry: (count, error) => count < 2 && error instanceof ApiError && error.isPassing,
  })
}
