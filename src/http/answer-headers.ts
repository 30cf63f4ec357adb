import type { ServedProtocol } from '@sluice/wire/protocols'

/**
 * Names of the headers that `answerHeaders` makes. Pages of other origins may read them.
 * `docs/recipes/add-an-answer-header.md`.
 */
export const ANSWER_HEADER_NAMES = ['request-id', 'x-request-id'] as const

type AnswerHeaders = { [Name in (typeof ANSWER_HEADER_NAMES)[number]]?: string }

/** Whether clients of a protocol expect the header `request-id`. */
const READS_REQUEST_ID: Readonly<Record<ServedProtocol, boolean>> = {
  chat: false,
  messages: true,
  responses: false,
  gemini: false,
  rerank: false,
}

/**
 * The headers that answers of all kinds have: of calls, from the cache, of the JSON API, and errors. `protocol`
 * is undefined for routes that belong to no protocol. `docs/api.md: Envelopes`.
 */
export function answerHeaders(id: string, protocol: ServedProtocol | undefined): Record<string, string> {
  const headers: AnswerHeaders = { 'x-request-id': id }
  if (protocol !== undefined && READS_REQUEST_ID[protocol]) headers['request-id'] = id
  return headers
}
