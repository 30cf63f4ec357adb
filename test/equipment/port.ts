import { randomInt } from 'node:crypto'
import { request } from 'node:http'
import { createServer } from 'node:net'

const REQUEST_TIMEOUT_MS = 30_000

/** Ports below those that operating systems assign to connections and to servers. */
const [FIRST_PORT, LAST_PORT] = [10_000, 32_767]

/** A free port of 127.0.0.1 that the system does not assign to another program before it is used. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** The status of a GET of this path on 127.0.0.1; 0 without a response. */
export function statusOn(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const probe = request(
      { port, host: '127.0.0.1', path, agent: false, timeout: REQUEST_TIMEOUT_MS },
      (reply) => {
        reply.resume()
        resolve(reply.statusCode ?? 0)
      },
    )
    probe.on('timeout', () => probe.destroy())
    probe.on('error', () => resolve(0))
    probe.end()
  })
}
