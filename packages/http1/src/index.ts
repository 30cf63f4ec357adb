export {
  ConnectionPools,
  type ConnectionPoolsOptions,
  type DestinationSource,
} from './client/connection-pools.ts'
export type { Destination } from './client/destination.ts'
export { type Origin, originOf } from './client/origin.ts'
export type { OutgoingBody } from './client/outgoing-body.ts'
export type { RequestToSend } from './client/pending-request.ts'
export type { Pool } from './client/pool.ts'
export type { Proxy } from './client/proxy.ts'
export { headerLines, requestLine } from './client/request-head.ts'
export { openTunnel } from './client/tunnel.ts'
export { sendAtTurnEnd } from './client/event-loop-turn.ts'
export {
  TransportError,
  type UpstreamRequest,
  type UpstreamResponseHead,
  type UpstreamResponseListener,
} from './client/upstream-request.ts'
export type { Refusal } from './server/client-connection-owner.ts'
export type { ConnectionLimits, ConnectionPeer } from './server/connection-limiter.ts'
export { HeaderNames, type Headers } from './server/header-names.ts'
export {
  type ClientAddresses,
  type ConnectionFigures,
  HttpServer,
  type RequestListener,
  type HttpServerOptions,
} from './server/http-server.ts'
export type { RequestError } from './server/request-errors.ts'
export type { RequestHead } from './server/request-reader.ts'
export { type BodyConsumer, Request } from './server/request.ts'
export type { ResponseHeaders } from './server/response-head.ts'
export { type EarlyHead, Response } from './server/response.ts'
export type { UpgradedConnection } from './server/upgraded-connection.ts'
export { sendResponsePieces } from './server/send-response-pieces.ts'
