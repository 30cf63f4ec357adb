import { WireError } from '@sluice/wire/wire-error'

/** A kind of error that the gateway itself responds with. `docs/api.md: Errors`. */
export interface ErrorKind {
  readonly status: number
  readonly type: string
  /** The code for clients if it differs from the error's name; two errors may share one. */
  readonly code?: string
  /**
   * Whether an identical request would meet the error again, at once and a minute later. Sent as
   * `x-should-retry: false`, which official clients follow. Errors that time or another attempt may resolve
   * do not recur.
   */
  readonly recurs: boolean
  /** The code that clients of the messages protocol see; none if absent. */
  readonly inMessages?: string
}

/** All of the gateway's own errors, by code. Programs read the code, people the message. */
export const ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error', recurs: true },
  invalid_request: { status: 400, type: 'invalid_request_error', recurs: true },
  model_not_specified: { status: 400, type: 'gateway_error', recurs: true },
  previous_response_not_found: { status: 400, type: 'invalid_request_error', recurs: true },
  batch_too_many: { status: 400, type: 'invalid_request_error', recurs: true },
  unsupported_endpoint: { status: 400, type: 'invalid_request_error', recurs: true },
  guard_blocked: {
    status: 400,
    type: 'invalid_request_error',
    recurs: true,
    inMessages: 'guard_blocked',
  },
  tool_not_priced: { status: 400, type: 'invalid_request_error', recurs: true },
  model_price_error: {
    status: 400,
    type: 'invalid_request_error',
    recurs: true,
    inMessages: 'model_price_error',
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
    inMessages: 'insufficient_quota',
  },
  budget_exceeded: { status: 403, type: 'permission_error', recurs: true, inMessages: 'budget_exceeded' },
  quota_held: { status: 429, type: 'rate_limit_error', recurs: false, inMessages: 'quota_held' },
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
    inMessages: 'model_not_found',
  },
  too_many_calls: { status: 400, type: 'invalid_request_error', recurs: true },
  idempotency_conflict: {
    status: 422,
    type: 'invalid_request_error',
    recurs: true,
    inMessages: 'idempotency_conflict',
  },
  idempotency_not_kept: {
    status: 409,
    type: 'invalid_request_error',
    recurs: true,
    inMessages: 'idempotency_not_kept',
  },
  method_not_allowed: { status: 405, type: 'invalid_request_error', recurs: true },
  changed_meanwhile: { status: 409, type: 'invalid_request_error', recurs: true },
  managed_by_file: { status: 409, type: 'invalid_request_error', recurs: true },
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
  rate_limited: { status: 429, type: 'rate_limit_error', recurs: false },
  too_many_reads: { status: 429, type: 'rate_limit_error', recurs: false },
  internal_error: { status: 500, type: 'api_error', recurs: false },
  loop_detected: { status: 500, type: 'api_error', recurs: true },
  upstream_error: { status: 500, type: 'api_error', recurs: false },
  not_implemented: { status: 501, type: 'gateway_error', recurs: true },
  model_not_found: { status: 503, type: 'gateway_error', recurs: true, inMessages: 'model_not_found' },
  identity_provider_unavailable: { status: 503, type: 'api_error', recurs: false },
  call_stopped: { status: 503, type: 'gateway_error', recurs: true },
  overloaded: { status: 503, type: 'gateway_error', recurs: false, inMessages: 'overloaded' },
  storage_unavailable: {
    status: 503,
    type: 'gateway_error',
    recurs: false,
    inMessages: 'storage_unavailable',
  },
} as const satisfies Record<string, ErrorKind>

/** Name of an error of the gateway. */
export type ErrorCode = keyof typeof ERRORS

/** The limit that refused a call; null for what does not apply. `docs/api.md: Refused calls`. */
export interface RefusedLimit {
  readonly subject: 'token' | 'user' | 'group' | 'model' | 'address'
  readonly id: number | null
  readonly name: string | null
  readonly kind: 'quota' | 'budget' | 'requests' | 'tokens' | 'parallel'
  /** Quota units. */
  readonly spent: number | null
  readonly held: number | null
  readonly left: number | null
  readonly needed: number | null
  /** Unix seconds. */
  readonly resets_at: number | null
}

/**
 * An error with a code and a message for the client. It can be thrown anywhere; one place renders it,
 * according to the area of the route.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Seconds after which the client may retry; sent as `retry-after`. */
  readonly retryAfter: number | undefined
  /** The methods that the path supports; sent as `allow`. */
  readonly allow: string | undefined
  /** Numbers for programs, in addition to the code: `{ limit: 100, given: 101 }`. */
  readonly details: Readonly<Record<string, number>> | undefined
  /** The current object, if a change was based on an older version of it. */
  readonly present: object | undefined
  /** The limit that refused the call, if one did. */
  readonly limit: RefusedLimit | undefined
  /** Further headers of the response. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** The key that was recognized, and its user, if the key cannot be used. */
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
  }

  get kind(): ErrorKind {
    return ERRORS[this.code]
  }
}

/** An error for the client: the gateway's own, or one that a codec found; undefined for all others. */
export function asGatewayError(error: unknown): GatewayError | undefined {
  if (error instanceof GatewayError) return error
  if (error instanceof WireError) return new GatewayError(error.code, error.message, { cause: error })
  return undefined
}
