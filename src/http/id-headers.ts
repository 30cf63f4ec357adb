import type { ServedProtocol } from '@sluice/wire/protocols'

/** Whether clients of a protocol expect the header `request-id`. */
const READS_REQUEST_ID: Readonly<Record<ServedProtocol, boolean>> = {
  chat: false,
  messages: true,
  responses: false,
  gemini: false,
  rerank: false,
}

/**
 * Response headers with the id of a request: always `x-request-id`, and also `request-id` if clients of the
 * protocol expect it. `protocol` is undefined for routes that belong to no protocol. `docs/api.md:
 * Envelopes`.
 */
export function idHeaders(id: string, protocol: ServedProtocol | undefined): Record<string, string> {
  return protocol !== undefined && READS_REQUEST_ID[protocol]
    ? { 'x-request-id': id, 'request-id': id }
    : { 'x-request-id': id }
}
