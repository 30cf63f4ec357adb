import type { GatewayError } from '../errors.ts'
import type { Peer } from './connection-shares.ts'
import type { ClientConnection } from './client-connection.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

/** An answer that the server gives itself. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** The server's side of a connection: notifications and questions. */
export interface ClientConnectionOwner {
  onRequest(request: Request, response: Response, peer: Peer): void
  /** `url` is what was asked for, where the head could be read. */
  refusalFor(error: GatewayError, url: string | undefined): Refusal
  onClosed(connection: ClientConnection): void
}
