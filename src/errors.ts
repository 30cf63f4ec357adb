import { WireError } from '@sluice/wire/wire-error'

/** An error of the gateway itself, as sent to clients. `docs/api.md: Errors`. */
export interface ErrorKind {
  readonly status: number
  readonly type: string
  /** Code sent to clients if it differs from the name of the error. Two errors may have the same code. */
  readonly code?: string
  /**
   * Whether an identical request would fail in the same way, at once and also a minute later. If so,
   * `x-should-retry: false` is sent, which official clients obey.
   */
  readonly recurs: boolean
  /** Code sent to clients of the Messages protocol if it differs. */
  readonly inMessages?: string
}

/** All errors of the gateway itself, by name. The code is for programs, the message for people. */
export const ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error', recurs: true },
  invalid_request: { status: 400, type: 'invalid_request_error', recurs: true },
  model_not_specified: { status: 400, type: 'gateway_error', recurs: true },
  previous_response_not_found: { status: 400, type: 'invalid_request_error', recurs: true },
  invalid_stream_id: { status: 400, type: 'invalid_request_error', recurs: true },
  websocket_stream_limit_reached: { status: 400, type: 'invalid_request_error', recurs: true },
  websocket_connection_limit_reached: { status: 400, type: 'invalid_request_error', recurs: true },
  batch_too_many: { status: 400, type: 'invalid_request_error', recurs: true },
  unsupported_endpoint: { status: 400, type: 'invalid_request_error', recurs: true },
  guard_blocked: {
    status: 400,
    type: 'invalid_request_error',
    recurs: true,
  },
  tool_not_priced: { status: 400, type: 'invalid_request_error', recurs: true },
  model_price_error: {
    status: 400,
    type: 'invalid_request_error',
    recurs: true,
  },
  unauthorized: { status: 401, type: 'authentication_error', recurs: true },
  missing_api_key: { status: 401, type: 'authentication_error', recurs: true },
  invalid_api_key: { status: 401, type: 'authentication_error', recurs: true },
  token_disabled: { status: 401, type: 'authentication_error', recurs: true },
  token_expired: { status: 401, type: 'authentication_error', recurs: true },
  token_exhausted: { status: 401, type: 'authentication_error', recurs: true },
  token_deleted: { status: 401, type: 'authentication_error', recurs: true },
  user_disabled: { status: 403, type: 'permission_error', recurs: true },
  ip_not_allowed: { status: 403, type: 'permission_error', recurs: true },
  model_not_allowed: { status: 403, type: 'permission_error', recurs: true },
  group_not_allowed: { status: 403, type: 'permission_error', recurs: true },
  insufficient_quota: {
    status: 403,
    type: 'permission_error',
    recurs: true,
  },
  budget_exceeded: { status: 403, type: 'permission_error', recurs: true },
  quota_held: { status: 429, type: 'rate_limit_error', recurs: false },
  invalid_batch: { status: 400, type: 'invalid_request_error', recurs: true },
  batch_unsupported: { status: 400, type: 'invalid_request_error', recurs: true },
  too_many_batches: { status: 429, type: 'rate_limit_error', recurs: false },
  files_full: { status: 403, type: 'permission_error', recurs: true },
  role_too_low: { status: 403, type: 'permission_error', recurs: true },
  operator_limit: { status: 403, type: 'permission_error', recurs: true },
  other_site: { status: 403, type: 'permission_error', recurs: true },
  sign_in_refused: { status: 403, type: 'permission_error', recurs: true },
  not_operator: { status: 403, type: 'permission_error', recurs: true },
  not_found: { status: 404, type: 'invalid_request_error', recurs: true },
  unknown_model: {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
    recurs: true,
  },
  too_many_calls: { status: 400, type: 'invalid_request_error', recurs: true },
  idempotency_conflict: {
    status: 422,
    type: 'invalid_request_error',
    recurs: true,
  },
  idempotency_not_kept: {
    status: 409,
    type: 'invalid_request_error',
    recurs: true,
  },
  method_not_allowed: { status: 405, type: 'invalid_request_error', recurs: true },
  changed_meanwhile: { status: 409, type: 'invalid_request_error', recurs: true },
  managed_by_file: { status: 409, type: 'invalid_request_error', recurs: true },
  in_use: { status: 409, type: 'invalid_request_error', recurs: true },
  request_timeout: { status: 408, type: 'invalid_request_error', recurs: false },
  expectation_failed: { status: 417, type: 'invalid_request_error', recurs: true },
  request_too_large: {
    status: 413,
    type: 'request_too_large',
    recurs: true,
    inMessages: 'read_request_body_failed',
  },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', recurs: true },
  headers_too_large: { status: 431, type: 'invalid_request_error', recurs: true },
  upgrade_required: { status: 426, type: 'invalid_request_error', recurs: true },
  websocket_queue_full: { status: 429, type: 'rate_limit_error', recurs: false },
  rate_limited: { status: 429, type: 'rate_limit_error', recurs: false },
  too_many_reads: { status: 429, type: 'rate_limit_error', recurs: false },
  internal_error: { status: 500, type: 'api_error', recurs: false },
  loop_detected: { status: 500, type: 'api_error', recurs: true },
  upstream_error: { status: 500, type: 'api_error', recurs: false },
  not_implemented: { status: 501, type: 'gateway_error', recurs: true },
  model_not_found: { status: 503, type: 'gateway_error', recurs: true },
  identity_provider_unavailable: { status: 503, type: 'api_error', recurs: false },
  files_not_shared: { status: 503, type: 'gateway_error', recurs: true },
  call_stopped: { status: 503, type: 'gateway_error', recurs: true },
  overloaded: { status: 503, type: 'gateway_error', recurs: false },
  storage_unavailable: {
    status: 503,
    type: 'gateway_error',
    recurs: false,
  },
} as const satisfies Record<string, ErrorKind>

/** Name of an error of the gateway. */
export type ErrorCode = keyof typeof ERRORS

/**
 * The limit because of which a call was refused; fields that do not apply are null. `docs/api.md: Refused
 * calls`.
 */
export interface RefusedLimit {
  readonly subject: 'token' | 'user' | 'group' | 'model' | 'address'
  readonly id: number | null
  readonly name: string | null
  readonly kind: 'quota' | 'budget' | 'requests' | 'tokens' | 'parallel'
  /** Quota units that are already spent; `held`, `left` and `needed` are in quota units too. */
  readonly spent: number | null
  readonly held: number | null
  readonly left: number | null
  readonly needed: number | null
  /** Time at which the limit resets, in Unix seconds. */
  readonly resets_at: number | null
}

/**
 * An error with a code and a message for the client. It can be thrown anywhere. One place turns it into a
 * response, in the format of the requested route.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Seconds after which the client may retry; sent as `retry-after`. */
  readonly retryAfter: number | undefined
  /** HTTP methods that the path supports; sent as `allow`. */
  readonly allow: string | undefined
  /** Numbers for programs, in addition to the code: `{ limit: 100, given: 101 }`. */
  readonly details: Readonly<Record<string, number>> | undefined
  /** The current state of an object, if the refused change was based on an older version of it. */
  readonly present: object | undefined
  /** The limit that refused the call, if one did. */
  readonly limit: RefusedLimit | undefined
  /** Further headers of the response. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Further members of the error, for a program that sent many requests at once. */
  readonly members: Readonly<Record<string, unknown>> | undefined
  /** Whether the call ends with the error, although another channel might serve it. */
  readonly isFinal: boolean
  /** The recognized key and its user, for an error that says that the key cannot be used. */
  caller: { readonly userId: number; readonly tokenId: number } | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      retryAfter?: number
      allow?: string
      details?: Readonly<Record<string, number>>
      present?: object | undefined
      limit?: RefusedLimit | undefined
      headers?: Readonly<Record<string, string>> | undefined
      members?: Readonly<Record<string, unknown>>
      isFinal?: boolean
      cause?: unknown
    } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'GatewayError'
    this.code = code
    this.retryAfter = options.retryAfter
    this.allow = options.allow
    this.details = options.details
    this.present = options.present
    this.limit = options.limit
    this.headers = options.headers
    this.members = options.members
    this.isFinal = options.isFinal ?? false
  }

  get kind(): ErrorKind {
    return ERRORS[this.code]
  }
}

/**
 * Returns an error for the client if this is one of the gateway or of a decoder; undefined for any other
 * error.
 */
export function asGatewayError(error: unknown): GatewayError | undefined {
  if (error instanceof GatewayError) return error
  if (error instanceof WireError) return new GatewayError(error.code, error.message, { cause: error })
  return undefined
}

/** Maximum number of faults that a message names. */
const MAX_NAMED_FAULTS = 10
/** Maximum length of such a message, in UTF-16 code units. */
const MAX_FAULTS_LENGTH = 4096

/**
 * An `invalid_request` for input with these faults. Only the first ones are named, because the message would
 * otherwise grow with the input, and it may be many times as long.
 */
export function invalidInput(faults: readonly string[]): GatewayError {
  const named = faults.slice(0, MAX_NAMED_FAULTS).join('; ')
  const isShort = named.length <= MAX_FAULTS_LENGTH
  const shown = isShort ? named : `${named.slice(0, MAX_FAULTS_LENGTH).toWellFormed()}…`
  const others = faults.length - MAX_NAMED_FAULTS
  return new GatewayError('invalid_request', others > 0 ? `${shown}; and ${others} more` : shown)
}
