import { GatewayError } from '../errors.ts'
import { chatErrorBody } from '../protocols/chat/index.ts'
import { UpstreamRefusal } from '../relay/failure.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'

/** The parts of the API whose errors look alike; `docs/api.md: Envelopes`. */
export type Area = 'relay'

/** An error, ready to be sent. */
export interface RenderedError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Renderer = (error: Told, requestId: string) => Buffer

/** What may be told of an error. */
interface Told {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly message: string
  readonly retryAfter: string | undefined
  /** Errors of the gateway's own end with the request's id. */
  readonly ours: boolean
}

const RENDERERS: Record<Area, Renderer> = {
  relay: ({ type, code, message, ours }, requestId) =>
    chatErrorBody({ type, code, message: ours ? `${message} (request id: ${requestId})` : message }),
}

/** The one place where errors become responses. What nobody foresaw is told as an internal error, without its text. */
export function renderError(area: Area, error: unknown, requestId: string): RenderedError {
  const told = toldOf(error)
  const body = RENDERERS[area](told, requestId)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'content-length': String(body.length),
    'cache-control': 'no-store',
    'x-request-id': requestId,
  }
  if (told.retryAfter !== undefined) headers['retry-after'] = told.retryAfter
  if (error instanceof GatewayError && error.allow !== undefined) headers['allow'] = error.allow
  return { status: told.status, headers, body }
}

function toldOf(error: unknown): Told {
  if (error instanceof UpstreamRefusal) {
    const { status, type, code, message, retryAfter } = error
    return { status, type, code, message, retryAfter, ours: false }
  }
  const known = error instanceof GatewayError ? error : unforeseen(error)
  const { code, message, kind, retryAfter } = known
  return {
    ...kind,
    code,
    message,
    retryAfter: retryAfter === undefined ? undefined : String(retryAfter),
    ours: true,
  }
}

function unforeseen(error: unknown): GatewayError {
  return error instanceof StoreUnavailable
    ? new GatewayError('overloaded', 'the gateway cannot reach its database at the moment; try again', {
        retryAfter: 5,
      })
    : new GatewayError('internal_error', 'internal error')
}
