import { callQuery } from '../../api/calls.ts'
import { type Answer, MEDIA_ENDPOINTS } from './answer.ts'

const ASK_AGAIN_MS = 500
/** Maximum number of requests for the log entry of a call, because a refused call never gets one. */
const MAX_REQUESTS = 12

/** The log entry of the call that a response belongs to. It is requested repeatedly until it exists. */
export function settledCallOfAnswer(userId: number, { callId = '', refused, state }: Answer) {
  const query = callQuery(userId, 'own', callId)
  return {
    ...query,
    enabled: callId !== '' && refused === undefined && state !== 'running',
    refetchInterval: ({ state: query }: { readonly state: { data?: unknown; dataUpdateCount: number } }) =>
      query.data || query.dataUpdateCount >= MAX_REQUESTS ? (false as const) : ASK_AGAIN_MS,
  }
}

/** Tokens per second after the first token; undefined if all of them arrived at once, as those of a picture. */
export function tokensPerSecond({ firstMs, totalMs, protocol }: Answer, tokens: number): number | undefined {
  const streamedMs = (totalMs ?? 0) - (firstMs ?? 0)
  const isMedia = MEDIA_ENDPOINTS.some((medium) => medium === protocol)
  return streamedMs > 0 && tokens > 0 && !isMedia ? Math.round((tokens / streamedMs) * 1000) : undefined
}
