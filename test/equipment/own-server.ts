import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { HeaderNames, HttpServer, type Request, type RequestListener } from '@sluice/http1'

const HEADER_NAMES = new HeaderNames(['authorization', 'x-forwarded-for'])

/** The gateway's HTTP server with a listener of the test. */
export interface OwnServer extends Disposable {
  readonly port: number
  readonly server: HttpServer
}

/** Starts the server on a free port of this machine. */
export async function startOwnServer(listener: RequestListener, total = 100): Promise<OwnServer> {
  const server = new HttpServer({
    headerNames: HEADER_NAMES,
    listener,
    limits: { total, perBlock: total, reserve: 0 },
  })
  const listening = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
    server.accept(socket),
  )
  await once(listening.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    server,
    [Symbol.dispose]() {
      listening.close()
      server.close()
    },
  }
}

/** The whole body of a request; rejects where it is cut off. */
export function bodyOf(request: Request): Promise<Buffer> {
  const pieces: Buffer[] = []
  return new Promise((resolve, reject) => {
    request.read({
      onChunk: (bytes) => void pieces.push(Buffer.from(bytes)),
      onEnd: () => resolve(Buffer.concat(pieces)),
      onAbort: () => reject(new Error('the body was cut')),
    })
  })
}
