import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { AttemptRequest } from '../../call/request-stages.ts'

/**
 * Anthropic's beta feature that reports why a cache was missed; needed where it is not generally available.
 */
const BETA = 'cache-diagnosis-2026-04-07'

/**
 * Adds the question why the prompt cache was missed to a request for a channel with `cache_diagnostics`. All
 * other bytes stay the same. If the client asks such a question itself, nothing is added. `previousId`: the
 * provider's id of the answer to compare with; empty if there is none. `docs/caches.md: Verdict of the
 * provider`.
 */
export function withCacheDiagnosisRequest(request: AttemptRequest, previousId: string): AttemptRequest {
  const { body, path } = request
  const ask = QUESTIONS[path]
  return ask && Buffer.isBuffer(body) ? ask(request, body, previousId) : request
}

type AddQuestion = (request: AttemptRequest, body: Buffer, previousId: string) => AttemptRequest

/** Functions that add the question why the cache was missed, by the path of the endpoint. */
const QUESTIONS: Readonly<Record<string, AddQuestion>> = {
  '/messages': (request, body, previousId) => {
    const scan = scanObject(body, RESPONSE_LIMITS)
    if (scan.has('diagnostics')) return request
    // With null the provider remembers this request, so that the next one can be compared with it.
    const question = { previous_message_id: previousId === '' ? null : previousId }
    const headers = withBeta(request.headers)
    return { ...request, headers, body: withMember(body, scan, 'diagnostics', question) }
  },
  '/responses': (request, body, previousId) => {
    if (previousId === '') return request
    const scan = scanObject(body, RESPONSE_LIMITS)
    const given: unknown = scan.has('prompt_cache_options') ? scan.value('prompt_cache_options') : {}
    if (typeof given !== 'object' || given === null || 'comparison_response_id' in given) return request
    const question = { ...given, comparison_response_id: previousId }
    return { ...request, body: withMember(body, scan, 'prompt_cache_options', question) }
  },
}

function withMember(body: Buffer, scan: ScannedObject, name: string, value: object): Buffer {
  return applyEdits(body, scan, { remove: [], replace: new Map([[name, JSON.stringify(value)]]) })
}

/** Adds the beta feature to headers, in which names and values alternate. */
function withBeta(headers: readonly string[]): readonly string[] {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name === 'anthropic-beta')
  if (at < 0) return [...headers, 'anthropic-beta', BETA]
  const given = headers[at + 1] ?? ''
  return given.includes(BETA) ? headers : headers.with(at + 1, `${given},${BETA}`)
}
