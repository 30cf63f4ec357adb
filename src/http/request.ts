import {
  HeaderNames,
  type Headers as ReadHeaders,
  type Request as ServedRequest,
  type RequestListener as ServerListener,
} from '@sluice/http1'

/** Names of the request headers that the gateway reads. */
export const HEADER_NAMES = new HeaderNames([
  'accept',
  'accept-encoding',
  'accept-language',
  'access-control-request-headers',
  'access-control-request-method',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'cache-control',
  'content-encoding',
  'content-type',
  'cookie',
  'forwarded',
  'gateway-key',
  'gateway-user',
  'idempotency-key',
  'if-none-match',
  'last-event-id',
  'new-api-user',
  'origin',
  'sec-fetch-site',
  'session-id',
  'session_id',
  'traceparent',
  'upgrade',
  'user-agent',
  'vendor-version',
  'via',
  'x-alt-api-key',
  'x-api-key',
  'x-bf-session-id',
  'x-claude-code-session-id',
  'x-forwarded-*',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-gateway-via',
  'x-goog-api-key',
  'x-qwen-code-session-id',
  'x-real-ip',
  'x-session-affinity',
  'x-session-id',
])

type Name = (typeof HEADER_NAMES)['names'][number]

/** The request headers that the gateway reads, by lower-case name. */
export type Headers = ReadHeaders<Name>

/** Name of a header that the gateway reads. */
export type HeaderName = keyof Headers

/** Request of a client, with the headers that the gateway reads. */
export type Request = ServedRequest<Name>

/** Handles a request, whose body may not have arrived completely. */
export type RequestListener = ServerListener<Name>
