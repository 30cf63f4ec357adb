import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import {
  type ErrorContent,
  readUpstreamError,
  redactedJson,
  type UpstreamErrorText,
} from '../upstream-error.ts'

/** Google's names for HTTP statuses in its error objects (google.rpc.Code). */
const STATUS_NAMES: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [408, 'DEADLINE_EXCEEDED'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [499, 'CANCELLED'],
  [500, 'INTERNAL'],
  [501, 'UNIMPLEMENTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
])

/** HTTP status of an error within a stream, by its type or code. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['overloaded', 503],
  ['overloaded_error', 503],
  ['storage_unavailable', 503],
])

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** An error of the gateway, for a client of this protocol. */
export interface GatewayErrorContent {
  readonly status: number
  readonly message: string
  readonly code: string
  /** Id of the request; undefined for an upstream's error within a stream. */
  readonly requestId?: string | undefined
  /** Seconds after which the client may retry. */
  readonly retryAfter?: number | undefined
  /** Figures about the refused request, such as a limit, by name. */
  readonly numbers?: Readonly<Record<string, number>> | undefined
}

/** Writes an error of the gateway as Google does; `docs/api.md: Envelopes`. */
export function geminiErrorText({
  status,
  message,
  code,
  requestId,
  retryAfter,
  numbers = {},
}: GatewayErrorContent): string {
  // Values in Google's `metadata` must be strings.
  const texts = Object.entries(numbers).map(([name, value]) => [name, String(value)])
  const metadata = { ...(requestId !== undefined && { request_id: requestId }), ...Object.fromEntries(texts) }
  const details = [
    { '@type': ERROR_INFO, reason: code, domain: 'sluice', metadata },
    ...(retryAfter === undefined ? [] : [{ '@type': RETRY_INFO, retryDelay: `${retryAfter}s` }]),
  ]
  return JSON.stringify({ error: { code: status, message, status: nameOf(status), details } })
}

/** Returns the HTTP status that matches an error within a stream. */
export function statusOfStreamError({ type, code, status }: Omit<ErrorContent, 'message'>): number {
  return status ?? STATUSES.get(code) ?? STATUSES.get(type) ?? 500
}

/**
 * Google's name for a status. A status that has no name gets the name of a general error of the request or of
 * the server.
 */
function nameOf(status: number): string {
  const ofServer = status === 502 || status === 529 ? 'UNAVAILABLE' : 'INTERNAL'
  return STATUS_NAMES.get(status) ?? (status < 500 ? 'INVALID_ARGUMENT' : ofServer)
}

/** What the gateway reads from an upstream's error. */
export interface GeminiErrorText extends UpstreamErrorText {
  /** HTTP status that the error object states. */
  readonly status: number | undefined
  /**
   * Seconds after which the upstream may be tried again. Google states this in the error and not in a header.
   */
  readonly retryAfter: number | undefined
}

/**
 * Reads an upstream's error; never throws. If a stream was requested, the error is inside an array. The type
 * of the error is Google's name for the status, the code is the reason in its details.
 */
export function readGeminiError(bytes: Buffer): GeminiErrorText {
  const { message, ...rest } = readUpstreamError(bytes)
  const error = errorIn(bytes)
  if (!error) return { message, ...rest, status: undefined, retryAfter: undefined }
  const { code, status, details } = error
  const list = Array.isArray(details) ? details.map((detail: unknown) => asRecord(detail)) : []
  const find = (type: string): Fields | undefined => list.find((detail) => detail?.['@type'] === type)
  const reason = find(ERROR_INFO)?.['reason']
  const named = typeof reason === 'string' && /^\w{1,128}$/.test(reason) ? reason : undefined
  return {
    message,
    type: typeof status === 'string' && /^\w{1,128}$/.test(status) ? status : rest.type,
    code: named ?? rest.code,
    status: isHttpError(code) ? code : undefined,
    retryAfter: secondsOf(find(RETRY_INFO)?.['retryDelay']),
  }
}

/**
 * Returns an upstream's error with its details, for clients of this protocol: the same bytes, unless `redact`
 * changes a text or the error must be taken out of an array. Undefined if the body is not an error of this
 * protocol.
 */
export function forwardableError(bytes: Buffer, redact: (text: string) => string): Buffer | undefined {
  const value = jsonIn(bytes)
  const body = first(value)
  const error = asRecord(asRecord(body)?.['error'])
  if (!error || !isHttpError(error['code']) || typeof error['message'] !== 'string') return undefined
  return redactedJson(body, redact) ?? (body === value ? bytes : Buffer.from(JSON.stringify(body)))
}

function errorIn(bytes: Buffer): Fields | undefined {
  return asRecord(asRecord(first(jsonIn(bytes)))?.['error'])
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? (value[0] as unknown) : value
}

function isHttpError(code: unknown): code is number {
  return Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599
}

/** Converts a duration such as `34s` or `0.5s` to whole seconds, rounded up. */
function secondsOf(duration: unknown): number | undefined {
  const found = typeof duration === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(duration) : null
  return found ? Math.ceil(Number(found[1])) : undefined
}
