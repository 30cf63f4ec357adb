import { parseRecord, asRecord } from '../json/record.ts'
import { type ErrorContent, redactedJson } from '../upstream-error.ts'

/**
 * Writes the body of an error for messages clients. `code` is given only for errors that programs must tell
 * apart. `docs/api.md: Envelopes`.
 */
export function messagesErrorBody(
  parts: Pick<ErrorContent, 'type' | 'message'> & {
    readonly code?: string | undefined
    readonly requestId: string
    /** Additional members of the error object, such as the amounts of quota that explain a refusal. */
    readonly members?: Readonly<Record<string, unknown>> | undefined
  },
): Buffer {
  const { type, message, code, requestId, members } = parts
  const error = { type, message, ...(code !== undefined && { code }), ...members }
  return Buffer.from(JSON.stringify({ type: 'error', error, request_id: requestId }))
}

/** Writes an error within a stream as an `error` event; `docs/api.md: Events`. */
export function messagesErrorFrame(parts: ErrorContent): Buffer {
  return Buffer.from(messagesErrorText(parts))
}

/**
 * Writes the text of an `error` event, with its code if it has one. An error of the gateway has the type that
 * all of its errors have in this protocol.
 */
export function messagesErrorText({ type, code, hasOwnCode, message, requestId }: ErrorContent): string {
  const isOurs = hasOwnCode === undefined
  const hasCode = code !== '' && hasOwnCode !== false
  const error = { type: isOurs ? 'gateway_error' : type, message, ...(hasCode && { code }) }
  const data = { type: 'error', error, ...(requestId !== undefined && { request_id: requestId }) }
  return `event: error\ndata: ${JSON.stringify(data)}\n\n`
}

/**
 * Returns an upstream's error for messages clients, with its `request_id`: the same bytes, unless `redact`
 * changes a text in them. Undefined if the body is not a messages error.
 */
export function forwardableError(bytes: Buffer, redact: (text: string) => string): Buffer | undefined {
  const body = parseRecord(bytes.toString())
  const error = asRecord(body?.['error'])
  if (
    body?.['type'] !== 'error' ||
    typeof error?.['type'] !== 'string' ||
    typeof error['message'] !== 'string'
  )
    return undefined
  return redactedJson(body, redact) ?? bytes
}
