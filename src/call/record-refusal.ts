import type { Caller } from '../accounts/authentication/caller.ts'
import { asGatewayError } from '../errors.ts'
import type { Body, FormBody } from './body-reader.ts'
import type { EndpointDialects } from './parse-request.ts'
import { ComparedRequestTexts, oneLineMessage, storableMessage } from './provider-messages.ts'
import type { IncomingCall } from './incoming-call.ts'

const NO_BYTES = Buffer.alloc(0)
const NO_FIELDS: readonly string[] = []

/** A request as far as it was read before it was refused. */
interface RefusedRequest {
  readonly dialects: Partial<EndpointDialects>
  readonly body: Pick<Body, 'bytes'> | FormBody | undefined
}

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
  { dialects: { json, form }, body }: RefusedRequest,
  thrown: unknown,
): void {
  const error = incoming.record.reason === undefined ? asGatewayError(thrown) : undefined
  if (!error) return
  const isForm = body !== undefined && 'parts' in body
  const words = new ComparedRequestTexts(() => ({
    body: body && !isForm ? body.bytes : NO_BYTES,
    shapeOf: (scan) => (json?.ofForm?.(scan) ?? json)?.shape,
    fields: isForm ? formFieldTexts(body) : NO_FIELDS,
    url: incoming.request.url,
  }))
  // Only errors about a request's content (status 400) quote the request. Errors of limits, which may be very
  // frequent, contain only names and amounts, so bodies are not searched for them.
  const quotes = error.kind.status === 400
  const message =
    (error.limit ? '' : storableMessage(error.message, words)) ||
    (quotes ? '' : oneLineMessage(error.message))
  const kind = (body && (isForm ? form : json)?.endpoint) ?? ''
  incoming.refusal = { kind, group: token.group || user.group, message }
}
