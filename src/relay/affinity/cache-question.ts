import { applyEdits } from '@sluice/wire/json/json-edit'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { AttemptRequest } from '../request-stages.ts'

/** The feature under which Anthropic compares requests, where it is not for everybody. */
const BETA = 'cache-diagnosis-2026-04-07'

/**
 * Adds the question why the cache was missed to a request for a channel with `cache_diagnostics`; all other bytes
 * stay. A question of the client stays, too. `previousId`: the provider's id of the answer with which it is to be
 * compared; empty if there is none. `docs/caches.md: Verdict of the provider`.
 */
export function withCacheQuestion(request: AttemptRequest, previousId: string): AttemptRequest {
  const { body, path } = request
  const ask = QUESTIONS[path]
  return ask && Buffer.isBuffer(body) ? ask(request, body, previousId) : request
}

type Ask = (request: AttemptRequest, body: Buffer, previousId: string) => AttemptRequest

/** By the path of the endpoint. */
const QUESTIONS: Readonly<Record<string, Ask>> = {
  '/messages': (request, body, previousId) => {
    const scan = scanObject(body)
    if (scan.has('diagnostics')) return request
    // Null has the provider remember the first request.
    const question = { previous_message_id: previousId === '' ? null : previousId }
    const headers = withBeta(request.headers)
    return { ...request, headers, body: withMember(body, scan, 'diagnostics', question) }
  },
  '/responses': (request, body, previousId) => {
    if (previousId === '') return request
    const scan = scanObject(body)
    const given: unknown = scan.has('prompt_cache_options') ? scan.value('prompt_cache_options') : {}
    if (typeof given !== 'object' || given === null || 'comparison_response_id' in given) return request
    const question = { ...given, comparison_response_id: previousId }
    return { ...request, body: withMember(body, scan, 'prompt_cache_options', question) }
  },
}

function withMember(body: Buffer, scan: ScannedObject, name: string, value: object): Buffer {
  return applyEdits(body, scan, { remove: [], replace: new Map([[name, JSON.stringify(value)]]) })
}

/** Names and values in turn. */
function withBeta(headers: readonly string[]): readonly string[] {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name === 'anthropic-beta')
  if (at < 0) return [...headers, 'anthropic-beta', BETA]
  const given = headers[at + 1] ?? ''
  return given.includes(BETA) ? headers : headers.with(at + 1, `${given},${BETA}`)
}
