import type { ServedProtocol } from '@sluice/wire/protocols'

/** Whether clients of a protocol read `request-id`. */
const READS_REQUEST_ID: Readonly<Record<ServedProtocol, boolean>> = {
  chat: false,
  messages: true,
  responses: false,
  gemini: false,
  rerank: false,
}

/**
 * Headers with the id of a request: `x-request-id` everywhere, and `request-id` too where clients of the
 * protocol read it; `protocol` is undefined where none is spoken. `docs/api.md: Envelopes`.
 */
export function idHeaders(id: string, protocol: ServedProtocol | undefined): Record<string, string> {
  return protocol !== undefined && READS_REQUEST_ID[protocol]
    ? { 'x-request-id': id, 'request-id': id }
    : { 'x-request-id': id }
}
