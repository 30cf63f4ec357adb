import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

const RESET_DELAY_MS = 50

/** A request as a double of a provider received it. */
export interface ReceivedByDouble {
  readonly method: string
  /** Path and query, unchanged. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** The response of a double. */
export interface DoubleAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer | string
  /** Whether the connection is reset after the body, which then has no end. */
  readonly resets?: boolean
}

/** A server that verifies what the real provider verifies. */
export interface Double {
  readonly url: string
  readonly received: ReceivedByDouble[]
  close(): Promise<void>
}

/** Starts a server whose responses come from `answer`. */
export async function startDouble(
  answer: (request: ReceivedByDouble) => DoubleAnswer | Promise<DoubleAnswer>,
): Promise<Double> {
  const received: ReceivedByDouble[] = []
  const server = createServer((request, response) => {
    void respond(request, response).catch((error: unknown) => response.writeHead(599).end(String(error)))
  })
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers } = request
    const came = { method, path, headers, body: Buffer.concat(chunks) }
    received.push(came)
    const { status = 200, headers: sent = {}, body, resets = false } = await answer(came)
    response.writeHead(status, { 'content-type': 'application/json', ...sent })
    if (!resets) return void response.end(body)
    response.write(body)
    // The bytes before a reset must have arrived.
    await setTimeout(RESET_DELAY_MS)
    request.socket.resetAndDestroy()
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    async close() {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}
