import type { ProtocolName } from './protocols.ts'
import type { UpstreamErrorText } from './upstream-error.ts'

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

/** Error types that clients of a dialect know. Gemini's are names of statuses, which no other dialect has. */
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
 * Type and code of an upstream's error, for a client of another dialect. A type that this dialect does not
 * have is removed, so that the type for the status is used; if there is no code, the removed type becomes the
 * code.
 */
export function crossedError(
  { type, code }: Pick<UpstreamErrorText, 'type' | 'code'>,
  client: ProtocolName,
): Pick<UpstreamErrorText, 'type' | 'code'> {
  if (type === undefined || TYPES[client].has(type)) return { type, code }
  return { type: undefined, code: code ?? type }
}
