import {
  HeaderNames,
  type Headers as ReadHeaders,
  type Request as ServedRequest,
  type RequestListener as ServerListener,
} from '@sluice/http1'

/** Headers that proxies, balancers and content networks add to what they forward. */
export const PROXY_HEADERS = [
  'ali-cdn-real-ip',
  'cdn-loop',
  'cdn-real-ip',
  'cf-*',
  'client-ip',
  'do-connecting-ip',
  'fastly-*',
  'fly-*',
  'forwarded',
  'forwarded-*',
  'incap-client-ip',
  'proxy-connection',
  'remote-addr',
  'remote-ip',
  'true-client-ip',
  'via',
  'wl-proxy-client-ip',
  'x-amzn-trace-id',
  'x-appengine-*',
  'x-arr-*',
  'x-azure-*',
  'x-client-ip',
  'x-cloud-trace-context',
  'x-cluster-client-ip',
  'x-cos-client-ip',
  'x-envoy-*',
  'x-forwarded',
  'x-forwarded-*',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarder-for',
  'x-host',
  'x-nf-client-connection-ip',
  'x-original-*',
  'x-originating-ip',
  'x-proxyuser-ip',
  'x-real-*',
  'x-real-ip',
  'x-remote-addr',
  'x-remote-ip',
  'x-sucuri-clientip',
  'x-vercel-*',
] as const

/** Names of the request headers that the gateway reads. */
export const HEADER_NAMES = new HeaderNames(
  [
    ...PROXY_HEADERS,
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
    'gateway-key',
    'gateway-user',
    'idempotency-key',
    'if-none-match',
    'last-event-id',
    'mcp-method',
    'mcp-name',
    'mcp-protocol-version',
    'mcp-session-id',
    'new-api-user',
    'origin',
    'originator',
    'sec-fetch-site',
    'sec-websocket-key',
    'sec-websocket-protocol',
    'sec-websocket-version',
    'session-id',
    'session_id',
    'traceparent',
    'upgrade',
    'user-agent',
    'vendor-version',
    'x-alt-api-key',
    'x-api-key',
    'x-bf-session-id',
    'x-claude-code-session-id',
    'x-gateway-via',
    'x-goog-api-key',
    'x-qwen-code-session-id',
    'x-session-affinity',
    'x-session-id',
  ],
  // Parameters of tools, which their servers name.
  ['mcp-param-'],
)

type Name = (typeof HEADER_NAMES)['names'][number]

/** The request headers that the gateway reads, by lower-case name. */
export type Headers = ReadHeaders<Name>

/** Name of a header that the gateway reads. */
export type HeaderName = keyof Headers

/** Request of a client, with the headers that the gateway reads. */
export type Request = ServedRequest<Name>

/** Handles a request, whose body may not have arrived completely. */
export type RequestListener = ServerListener<Name>
