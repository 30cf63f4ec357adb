import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Received, ScriptedUpstream } from '../../test/fixtures/scripted-upstream.ts'

/** A server from which the tests learn which requests the upstream received. */
export interface ControlServer {
  readonly url: string
  stop(): void
}

/**
 * Starts the server. `GET /requests?word=W` returns the requests that contain the word; `GET /ended?word=W`
 * returns them once all of them have ended.
 */
export async function startControlServer(upstream: ScriptedUpstream): Promise<ControlServer> {
  const server: Server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    const found = ['chat', 'messages', 'responses']
      .flatMap((lane) => upstream.received(lane))
      .filter(({ text }) => text.includes(searchParams.get('word') ?? ''))
    const tell = (): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found.map(shown)))
    }
    if (pathname === '/ended') void Promise.all(found.map(({ ended }) => ended)).then(tell)
    else tell()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function shown({ path, text, completed }: Received): object {
  return { path, text, completed }
}
