import type { ConnectionPeer } from './connection-limiter.ts'
import type { ClientConnection } from './client-connection.ts'
import type { HeaderNames } from './header-names.ts'
import type { RequestError } from './request-errors.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

/** An error response that the server sends itself, without the listener. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** The owner of client connections (the server): the methods that a connection calls. */
export interface ClientConnectionOwner {
  /** Headers of a request that the server reads; it skips all others. */
  readonly headerNames: HeaderNames<string>
  onRequest(request: Request, response: Response, peer: ConnectionPeer): void
  /** Renders the response to an unusable request; `url` is its target, if the head could be read. */
  refusalFor(error: RequestError, url: string | undefined): Refusal
  onClosed(connection: ClientConnection): void
}
