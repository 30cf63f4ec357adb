/** What the gateway itself may answer with; `docs/api.md: Errors`. */
export interface ErrorKind {
  readonly status: number
  readonly type: string
  /** What callers are told, where the same code goes by two statuses; else the error's name. */
  readonly code?: string
}

/** Every error of the gateway's own, by code. The code is what a program reads, the message what a person does. */
export const ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error' },
  invalid_request: { status: 400, type: 'invalid_request_error' },
  model_not_specified: { status: 400, type: 'gateway_error' },
  batch_too_many: { status: 400, type: 'invalid_request_error' },
  model_price_error: { status: 400, type: 'invalid_request_error' },
  unauthorized: { status: 401, type: 'authentication_error' },
  missing_api_key: { status: 401, type: 'authentication_error' },
  invalid_api_key: { status: 401, type: 'authentication_error' },
  token_disabled: { status: 401, type: 'authentication_error' },
  token_expired: { status: 401, type: 'authentication_error' },
  token_exhausted: { status: 401, type: 'authentication_error' },
  token_deleted: { status: 401, type: 'authentication_error' },
  user_disabled: { status: 403, type: 'permission_error' },
  ip_not_allowed: { status: 403, type: 'permission_error' },
  model_not_allowed: { status: 403, type: 'permission_error' },
  group_not_allowed: { status: 403, type: 'permission_error' },
  insufficient_quota: { status: 403, type: 'permission_error' },
  role_too_low: { status: 403, type: 'permission_error' },
  other_site: { status: 403, type: 'permission_error' },
  not_operator: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'invalid_request_error' },
  unknown_model: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  managed_by_file: { status: 409, type: 'invalid_request_error' },
  request_timeout: { status: 408, type: 'invalid_request_error' },
  expectation_failed: { status: 417, type: 'invalid_request_error' },
  request_too_large: { status: 413, type: 'request_too_large' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error' },
  headers_too_large: { status: 431, type: 'invalid_request_error' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  internal_error: { status: 500, type: 'api_error' },
  loop_detected: { status: 500, type: 'api_error' },
  upstream_error: { status: 500, type: 'api_error' },
  not_implemented: { status: 501, type: 'gateway_error' },
  model_not_found: { status: 503, type: 'gateway_error' },
  overloaded: { status: 503, type: 'gateway_error' },
} as const satisfies Record<string, ErrorKind>

/** A name in the table of errors. */
export type ErrorCode = keyof typeof ERRORS

/** Thrown anywhere with a code and a sentence for the caller; rendered in one place, by the door of the route. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Seconds after which the caller may try again; sent as `retry-after`. */
  readonly retryAfter: number | undefined
  /** The methods that a path takes instead; sent as `allow`. */
  readonly allow: string | undefined
  /** What a program may want to know beside the code: `{ limit: 100, given: 101 }`. */
  readonly details: Readonly<Record<string, number>> | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      retryAfter?: number
      allow?: string
      details?: Readonly<Record<string, number>>
      cause?: unknown
    } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'GatewayError'
    this.code = code
    this.retryAfter = options.retryAfter
    this.allow = options.allow
    this.details = options.details
  }

  get kind(): ErrorKind {
    return ERRORS[this.code]
  }
}
