import type { ResponseHeaders } from '@sluice/http1'
import { answerHeaders } from '../../http/answer-headers.ts'
import { GUARDS_HEADER } from '../../domain/guard.ts'
import type { AnswerFacts } from './answer-facts.ts'
import type { CachedCall } from './shared-answer.ts'

/** Headers of an answer that are valid for every equal call. */
const SHARED_HEADERS = [
  'content-type',
  'cache-control',
  'x-accel-buffering',
  'x-gateway-dropped',
  'x-gateway-model',
]

/** Headers of an answer from the cache that are specific to the call that gets it. */
export function cacheHitHeaders(
  { dialect, request, decisions, incoming: { id } }: CachedCall,
  ageMs: number,
  facts?: AnswerFacts,
): ResponseHeaders {
  return {
    ...answerHeaders(id, dialect.name),
    ...(request.stream ? decisions?.streamHeaders : facts?.guards && { [GUARDS_HEADER]: facts.guards }),
    'x-gateway-cache': 'hit',
    age: String(Math.floor(ageMs / 1_000)),
  }
}

/** Headers of the first call's answer that an answer from the cache has, too. */
export function headersSharedByHits(head: ResponseHeaders): Record<string, string> {
  return Object.fromEntries(
    SHARED_HEADERS.flatMap((name) => (head[name] === undefined ? [] : [[name, head[name]]])),
  )
}
