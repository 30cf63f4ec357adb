import { asGatewayError, GatewayError } from '../errors.ts'
import { chatErrorBody } from '@sluice/wire/chat'
import { geminiErrorText } from '@sluice/wire/gemini'
import { messagesErrorBody } from '@sluice/wire/messages'
import type { ServedProtocol } from '@sluice/wire/protocols'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import { type ErrorEnvelope, UpstreamRefusal } from '../call/failure.ts'
import { answerHeaders } from '../http/answer-headers.ts'
import { PAGE_HEADERS, refusalPage } from './refusal-page.ts'

/** A rendered error, ready to be sent. */
export interface RenderedError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Renderer = (error: ErrorFacts, requestId: string) => Buffer

/** The properties of an error that a client may see. */
interface ErrorFacts {
  readonly status: number
  readonly type: string
  readonly code: string
  /** For an error of the gateway itself: the code that clients of the messages protocol get. */
  readonly codeInMessages: string | undefined
  readonly message: string
  readonly retryAfter: string | undefined
  /**
   * True if the gateway itself made the error, not the upstream; the message then ends with the request's id.
   */
  readonly ours: boolean
  /** True if `type` comes from the upstream. */
  readonly hasOwnType: boolean
  /** True if `code` comes from the upstream. */
  readonly hasOwnCode: boolean
  /** True if an identical request would fail in the same way. */
  readonly recurs: boolean
  /** The upstream's whole error response; undefined if the gateway itself made the error. */
  readonly envelope: ErrorEnvelope | undefined
  readonly details: Readonly<Record<string, number>> | undefined
  readonly present: object | undefined
  /**
   * For a refusal because quota or a budget is insufficient: amounts spent, held, left and needed, in quota
   * units.
   */
  readonly funds: Readonly<Record<string, number>> | undefined
  /** Further members of an error about one of many requests. */
  readonly members: Readonly<Record<string, unknown>> | undefined
}

const relayError: Renderer = ({ type, code, message, ours, funds, members }, requestId) =>
  chatErrorBody({ type, code, message: ours ? withRequestId(message, requestId) : message }, funds ?? members)

const geminiError: Renderer = ({ status, code, message, ours, retryAfter, envelope, funds }, requestId) =>
  ownEnvelope('gemini', envelope) ??
  Buffer.from(
    geminiErrorText({
      status,
      code,
      message: ours ? withRequestId(message, requestId) : message,
      requestId,
      numbers: funds,
      retryAfter: retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
    }),
  )

/** The upstream's error response unchanged, if the client speaks the same protocol; otherwise undefined. */
function ownEnvelope(
  area: ErrorEnvelope['protocol'],
  envelope: ErrorEnvelope | undefined,
): Buffer | undefined {
  return envelope?.protocol === area ? envelope.body : undefined
}

const RENDERERS = {
  relay: relayError,
  'billing-subscription': (facts, requestId) =>
    chatErrorBody(balanceError(facts, 'upstream_error', requestId)),
  'billing-usage': (facts, requestId) => chatErrorBody(balanceError(facts, 'gateway_error', requestId)),
  usage: (facts, requestId) => {
    const error = balanceError(facts, 'gateway_error', requestId)
    return json({ code: false, message: error.message, data: {}, error })
  },
  messages: (
    { type, code, codeInMessages, hasOwnCode, message, ours, envelope, funds, members },
    requestId,
  ) =>
    ours
      ? messagesErrorBody({
          type: 'gateway_error',
          message: withRequestId(message, requestId),
          code: codeInMessages,
          requestId,
          members: funds ?? members,
        })
      : (ownEnvelope('messages', envelope) ??
        messagesErrorBody({ type, message, code: hasOwnCode ? code : undefined, requestId })),
  gemini: geminiError,
  'gemini-array': (facts, requestId) =>
    Buffer.concat([Buffer.from('['), geminiError(facts, requestId), Buffer.from(']')]),
  // Rerank errors differ from those of `relay` only in the type of a 429: `docs/api.md: Errors`.
  rerank: (facts, requestId) =>
    relayError(
      facts.status === 429 && !facts.hasOwnType ? { ...facts, type: 'gateway_error' } : facts,
      requestId,
    ),
  mcp: ({ status, code, message, ours, funds }, requestId) =>
    json({
      jsonrpc: '2.0',
      error: {
        code: status,
        message: ours ? withRequestId(message, requestId) : message,
        data: { code, ...funds },
      },
    }),
  page: ({ message }, requestId) => refusalPage('en', message, requestId),
  'page-zh': ({ message }, requestId) => refusalPage('zh', message, requestId),
  management: ({ code, message, details, present }) =>
    json({ success: false, message, code, ...details, ...(present && { data: present }) }),
} satisfies Record<string, Renderer>

/** The areas of the API; each has its own format of errors. `docs/api.md: Envelopes`. */
export type ApiArea = keyof typeof RENDERERS

const PROTOCOL_OF_AREA: { readonly [In in ApiArea]?: ServedProtocol } = {
  messages: 'messages',
  gemini: 'gemini',
  'gemini-array': 'gemini',
  rerank: 'rerank',
}

/**
 * The protocol of an area's clients; undefined if several protocols share the area, or if it serves no model
 * calls.
 */
export function protocolOf(area: ApiArea): ServedProtocol | undefined {
  return PROTOCOL_OF_AREA[area]
}

// The endpoints for balances use special error types for 429 and 500; `docs/api.md: Errors`.
function balanceError(
  { status, type, code, message }: ErrorFacts,
  internal: string,
  requestId: string,
): ErrorContent {
  const types = new Map([
    [429, 'gateway_error'],
    [500, internal],
  ])
  return { type: types.get(status) ?? type, code, message: withRequestId(message, requestId) }
}

/**
 * Wraps a successful result in the envelope of its area, if it has one. `data` is undefined if an endpoint
 * returns nothing.
 */
export function inEnvelope(area: ApiArea, data: unknown): unknown {
  return SUCCESS_ENVELOPES[area]?.(data) ?? data
}

/** Whether an area wraps successful results in an envelope. */
export function hasEnvelope(area: ApiArea): boolean {
  return SUCCESS_ENVELOPES[area] !== undefined
}

/** The envelopes of successful results; areas that are not listed have none. */
const SUCCESS_ENVELOPES: { readonly [In in ApiArea]?: (data: unknown) => object } = {
  management: (data) => ({ success: true, message: '', data }),
  usage: (data) => ({ code: true, message: 'ok', data }),
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function withRequestId(message: string, requestId: string): string {
  return `${message} (request id: ${requestId})`
}

/**
 * The headers of a 426 response. They name the protocol that the client should use, which is the one it
 * already used (RFC 9110, 15.5.22 and 7.8).
 */
const UPGRADE = { upgrade: 'HTTP/1.1', connection: 'upgrade' }

/** Turns an error into a response; no other code does so. The message of an unexpected error is not shown. */
export function renderError(area: ApiArea, error: unknown, requestId: string): RenderedError {
  const facts = errorFacts(error)
  const body = RENDERERS[area](facts, requestId)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'content-length': String(body.length),
    'cache-control': 'no-store',
    ...answerHeaders(requestId, protocolOf(area)),
    ...((area === 'page' || area === 'page-zh') && PAGE_HEADERS),
  }
  if (facts.retryAfter !== undefined) headers['retry-after'] = facts.retryAfter
  if (facts.recurs) headers['x-should-retry'] = 'false'
  // Without metadata of an OAuth server: keys are the only credentials.
  if (area === 'mcp' && facts.status === 401) headers['www-authenticate'] = 'Bearer'
  if (facts.ours && facts.code === 'upgrade_required') Object.assign(headers, UPGRADE)
  if (error instanceof GatewayError) {
    if (error.allow !== undefined) headers['allow'] = error.allow
    Object.assign(headers, error.headers)
  }
  return { status: facts.status, headers, body }
}

function errorFacts(error: unknown): ErrorFacts {
  if (error instanceof UpstreamRefusal) {
    return {
      ...error.facts,
      message: error.message,
      codeInMessages: undefined,
      ours: false,
      details: undefined,
      present: undefined,
      funds: undefined,
      members: undefined,
    }
  }
  const known = asGatewayError(error) ?? new GatewayError('internal_error', 'internal error')
  const { code, message, kind, retryAfter } = known
  return {
    status: kind.status,
    type: kind.type,
    code: kind.code ?? code,
    codeInMessages: kind.inMessages ?? kind.code ?? code,
    message,
    retryAfter: retryAfter === undefined ? undefined : String(retryAfter),
    ours: true,
    hasOwnType: false,
    hasOwnCode: false,
    recurs: kind.recurs,
    envelope: undefined,
    details: known.details,
    present: known.present,
    funds: fundsOf(known),
    members: known.members,
  }
}

/** The amounts that an error states if quota or a budget is insufficient, in quota units. */
function fundsOf({ limit }: GatewayError): ErrorFacts['funds'] {
  if (limit?.kind !== 'quota' && limit?.kind !== 'budget') return undefined
  const { spent, held, left, needed } = limit
  return Object.fromEntries(
    Object.entries({ spent, held, left, needed }).flatMap(([name, sum]) =>
      sum === null ? [] : [[name, sum]],
    ),
  )
}
