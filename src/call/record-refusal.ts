import type { Caller } from '../accounts/authentication/caller.ts'
import { asGatewayError } from '../errors.ts'
import type { Body, FormBody } from './body-reader.ts'
import { ComparedRequestTexts, oneLineMessage, storableMessage } from './provider-messages.ts'
import type { IncomingCall } from './request-stages.ts'

const NO_BYTES = Buffer.alloc(0)
const NO_FIELDS: readonly string[] = []

/** Texts of the fields of a form; undefined if one of them is too long to be held in memory. */
export function formFieldTexts({ parts }: FormBody): readonly string[] | undefined {
  const fields = parts.filter(({ filename }) => filename === undefined).map(({ text }) => text)
  return fields.every((text) => text !== undefined) ? fields : undefined
}

/**
 * Records the facts of a refused call that are shown to users. Text that the error message repeats from the
 * request is removed.
 */
export function recordRefusal(
  incoming: IncomingCall,
  { token, user }: Caller,
  body: Body | FormBody | undefined,
  thrown: unknown,
  kind = '',
): void {
  const error = incoming.record.reason === undefined ? asGatewayError(thrown) : undefined
  if (!error) return
  const sources = body && ('parts' in body ? { body: NO_BYTES, fields: formFieldTexts(body) } : body.bytes)
  const words = new ComparedRequestTexts(() => ({
    body: NO_BYTES,
    fields: NO_FIELDS,
    ...(Buffer.isBuffer(sources) ? { body: sources } : sources),
    url: incoming.request.url,
  }))
  // Only errors about a request's content (status 400) quote the request. Errors of limits, which may be very
  // frequent, contain only names and amounts, so bodies are not searched for them.
  const quotes = error.kind.status === 400
  const message =
    (error.limit ? '' : storableMessage(error.message, words)) ||
    (quotes ? '' : oneLineMessage(error.message))
  incoming.refusal = { kind, group: token.group || user.group, message }
}
