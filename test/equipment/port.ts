import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'

const REQUEST_TIMEOUT_MS = 30_000

/** A free port of 127.0.0.1. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
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
