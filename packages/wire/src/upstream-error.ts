import { asRecord, parseRecord } from './json/record.ts'
import type { ProtocolName } from './protocols.ts'

/** Contents of an error response in any protocol. */
export interface ErrorContent {
  readonly type: string
  readonly code: string
  readonly message: string
  /**
   * Whether `code` was sent by an upstream; false if the upstream sent none, absent if this is an error of the
   * gateway.
   */
  readonly hasOwnCode?: boolean
  /** HTTP status that matches the error, if the error was sent within a stream and the status is known. */
  readonly status?: number
  /** Id of the request, for an error of the gateway in a stream. */
  readonly requestId?: string
}

/** What could be read of an upstream's error. The message must be redacted before it is sent to a client. */
export interface UpstreamErrorText {
  readonly message: string | undefined
  readonly type: string | undefined
  readonly code: string | undefined
}

/** Maximum number of characters of a message that are read. */
const MAX_MESSAGE_LENGTH = 65_536
const MAX_NAME_LENGTH = 128

/** Maximum number of bytes of an error body that are read. */
const MAX_BODY_BYTES = 65_536

/**
 * Members that may contain the message, in order of precedence. Each may be a text, an object with one of these
 * members, or a list of either: `detail: [{msg}]` (FastAPI), `message: {detail: [{msg}]}` (Mistral),
 * `errors: [{message}]` (Cloudflare), `error_msg` (Baidu), `status_msg` (MiniMax), `faultstring` (Apigee).
 */
const MESSAGE_KEYS = [
  'message',
  'Message',
  'detail',
  'msg',
  'error_message',
  'error_msg',
  'status_msg',
  'faultstring',
  'error',
  'errors',
  'fault',
  'base_resp',
  'title',
] as const

/** Maximum depth at which a message is searched. */
const MAX_DEPTH = 5

const NO_DETAILS: UpstreamErrorText = { message: undefined, type: undefined, code: undefined }

/**
 * Reads an upstream's error body of any structure; never throws. The error may be an object under `error` (or
 * the first of a list), an object without `error`, a string, or plain text. HTML is ignored, and so is a code
 * that only repeats the HTTP status.
 */
export function readUpstreamError(bytes: Buffer): UpstreamErrorText {
  const text = bytes.toString('utf8', 0, MAX_BODY_BYTES).trim()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const plain = text !== '' && !/^[<{["]/.test(text)
    return plain ? { ...NO_DETAILS, message: text.slice(0, MAX_MESSAGE_LENGTH) } : NO_DETAILS
  }
  const outer = first(value)
  if (typeof outer === 'string') return { ...NO_DETAILS, message: nonEmptyText(outer, MAX_MESSAGE_LENGTH) }
  const envelope = asRecord(outer)
  if (!envelope) return NO_DETAILS
  const error = errorObject(envelope)
  const code = name(error['code']) ?? name(envelope['code']) ?? name(envelope['error_code'])
  const raw = rawError(error)
  const message = messageIn(error) ?? messageIn(envelope)
  return {
    message: message === RAW_SAYS_MORE && raw?.message !== undefined ? `${message}: ${raw.message}` : message,
    type: name(error['type']) ?? name(envelope['error_type']) ?? name(envelope['__type']),
    code: /^[1-5]\d\d$/.test(code ?? '') ? raw?.code : code,
  }
}

/** The object with the facts of an error: `error`, the error of a failed response, or the body itself. */
function errorObject(envelope: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return (
    asRecord(first(envelope['error'])) ??
    asRecord(asRecord(envelope['response'])?.['error']) ??
    asRecord(envelope['base_resp']) ??
    envelope
  )
}

/** OpenRouter's message for an error of the provider behind it, whose own words are in `metadata.raw`. */
const RAW_SAYS_MORE = 'Provider returned error'

/** The error of the provider behind OpenRouter. */
function rawError(error: Readonly<Record<string, unknown>>): UpstreamErrorText | undefined {
  const raw = asRecord(error['metadata'])?.['raw']
  return typeof raw === 'string' && raw !== '' ? readUpstreamError(Buffer.from(raw)) : undefined
}

/** HTTP status by error type or code, including Google's status names. */
const STATUS_BY_TYPE: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['exceed_context_size_error', 400],
  ['invalid_prompt', 400],
  ['content_filter', 400],
  ['cyber_policy', 400],
  ['validationException', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['insufficient_quota', 429],
  ['billing_error', 402],
  ['throttlingException', 429],
  ['not_supported_error', 501],
  ['service_unavailable', 503],
  ['serviceUnavailableException', 503],
  ['server_is_overloaded', 503],
  ['slow_down', 503],
  ['unavailable_error', 503],
  ['timeout_error', 504],
  ['overloaded_error', 529],
  ['ABORTED', 409],
  ['DEADLINE_EXCEEDED', 504],
  ['FAILED_PRECONDITION', 400],
  ['INVALID_ARGUMENT', 400],
  ['NOT_FOUND', 404],
  ['OUT_OF_RANGE', 400],
  ['PERMISSION_DENIED', 403],
  ['RESOURCE_EXHAUSTED', 429],
  ['UNAUTHENTICATED', 401],
  ['UNAVAILABLE', 503],
])

/**
 * Finds the HTTP status of an error within a stream by its number, otherwise by its name; 500 if neither is
 * known.
 */
export function statusOfError(data: string): number {
  const envelope = parseRecord(data)
  if (!envelope) return 500
  const error = errorObject(envelope)
  for (const value of [...STATUS_KEYS.map((key) => error[key]), ...STATUS_KEYS.map((key) => envelope[key])]) {
    const status = Number(value)
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status
  }
  for (const key of ['type', 'status', 'code']) {
    const status = STATUS_BY_TYPE.get(error[key])
    if (status !== undefined) return status
  }
  return STATUS_OF_MINIMAX.get(asRecord(envelope['base_resp'])?.['status_code']) ?? 500
}

/** Members that may state an HTTP status. */
const STATUS_KEYS = ['code', 'status', 'http_code', 'status_code', 'statusCode', 'error_code'] as const

/** HTTP status by MiniMax's codes, which come with status 200: https://platform.minimax.io/docs/api-reference/errorcode */
const STATUS_OF_MINIMAX: ReadonlyMap<unknown, number> = new Map([
  [1002, 429],
  [1004, 401],
  [1008, 402],
  [1026, 400],
  [1027, 400],
  [1039, 429],
  [1041, 429],
  [2013, 400],
  [2049, 401],
  [2056, 429],
])

function messageIn(error: Readonly<Record<string, unknown>>, depth = 0): string | undefined {
  if (depth === MAX_DEPTH) return undefined
  for (const key of MESSAGE_KEYS) {
    const value = first(error[key])
    const inner = asRecord(value)
    const found = nonEmptyText(value, MAX_MESSAGE_LENGTH) ?? (inner && messageIn(inner, depth + 1))
    if (found !== undefined) return found
  }
  return undefined
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : value
}

function nonEmptyText(value: unknown, length: number): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, length) : undefined
}

/**
 * Converts a type or code, which may be a number, to a string; undefined if it contains white space or
 * control characters.
 */
function name(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && /^[\x21-\x7e]+$/.test(text) ? text.slice(0, MAX_NAME_LENGTH) : undefined
}

/** Error types of OpenAI's dialects and of `docs/api.md: Errors`. */
const OPENAI_TYPES: ReadonlySet<string> = new Set([
  'api_error',
  'authentication_error',
  'insufficient_quota',
  'invalid_request_error',
  'overloaded_error',
  'permission_error',
  'rate_limit_error',
  'request_too_large',
  'requests',
  'server_error',
  'tokens',
])

const NO_TYPES: ReadonlySet<string> = new Set()

/**
 * Error types that clients of each protocol know. Gemini's types are status names, which no other protocol
 * uses.
 */
const TYPES: Readonly<Record<ProtocolName, ReadonlySet<string>>> = {
  chat: OPENAI_TYPES,
  responses: OPENAI_TYPES,
  messages: new Set([
    'api_error',
    'authentication_error',
    'billing_error',
    'invalid_request_error',
    'not_found_error',
    'overloaded_error',
    'permission_error',
    'rate_limit_error',
    'request_too_large',
    'timeout_error',
  ]),
  gemini: NO_TYPES,
  converse: NO_TYPES,
  rerank: NO_TYPES,
}

/**
 * Converts type and code of an upstream's error for a client of another protocol. A type that this protocol
 * does not have is removed, so that the type follows from the HTTP status. If there is no code, the removed
 * type becomes the code.
 */
export function convertErrorType(
  { type, code }: Pick<UpstreamErrorText, 'type' | 'code'>,
  client: ProtocolName,
): Pick<UpstreamErrorText, 'type' | 'code'> {
  if (type === undefined || TYPES[client].has(type)) return { type, code }
  return { type: undefined, code: code ?? type }
}

/** Redacts the texts in a JSON value. Returns undefined if none of them changes. */
export function redactedJson(value: unknown, redact: (text: string) => string): Buffer | undefined {
  let isRedacted = false
  const redacted = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner !== 'string') return inner
    const text = redact(inner)
    isRedacted ||= text !== inner
    return text
  })
  return isRedacted ? Buffer.from(redacted) : undefined
}
