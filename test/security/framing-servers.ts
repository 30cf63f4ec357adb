import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import process from 'node:process'
import { frontProxyVersion, type FRONT_PROXIES, startFrontProxy } from '../fixtures/front-proxy.ts'
import { bodyOf, startOwnServer } from '../fixtures/own-server.ts'

/** A server whose reading of given bytes is observed. */
export interface FramingServer {
  /** Name and version, as in the first row of the table. */
  readonly title: string
  /** Sends the bytes; resolves to the resulting requests and refusals, as a cell of the table. */
  readonly interpret: (bytes: Buffer) => Promise<string>
  readonly stop: () => void
}

/** The request after the bytes; a server that reads it closes the connection. */
const LAST = Buffer.from('GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
/** Maximum waits in milliseconds: for a proxy without anything more to send, and for any server. */
const QUIET_MS = 900
const MAX_WAIT_MS = 10_000
/** Milliseconds for which a proxy keeps a connection open for the next request of a case. */
const KEEP_ALIVE_MS = 800

/** The requests that a server read in one case, in order. */
interface CaseRecord {
  readonly requests: string[]
}

/** Starts the gateway's own server. */
export async function ownServer(): Promise<FramingServer> {
  const record: CaseRecord = { requests: [] }
  const own = await recordingServer(record)
  return {
    title: 'Sluice',
    interpret: (bytes) => describeCase(record, () => sendCase(own.port, bytes, 'half-closes')),
    stop: () => own[Symbol.dispose](),
  }
}

/** Starts Node's server with its defaults. */
export async function nodeServer(): Promise<FramingServer> {
  const heard: CaseRecord = { requests: [] }
  const server = createServer((request: IncomingMessage, response) => {
    let size = 0
    request.on('data', (chunk: Buffer) => (size += chunk.length))
    request.on('error', () => {})
    request.on('end', () => {
      heard.requests.push(requestLabel(request.url ?? '', size))
      response.end('ok')
    })
  })
  server.on('checkExpectation', (_, response) => response.writeHead(417).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    title: `node:http ${process.versions.node}`,
    interpret: (bytes) => describeCase(heard, () => sendCase(port, bytes, 'half-closes')),
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Starts a proxy in front of the gateway's server, which records the requests that the proxy passes on.
 * Undefined if the proxy is not installed.
 */
export async function proxyServer(name: keyof typeof FRONT_PROXIES): Promise<FramingServer | undefined> {
  const heard: CaseRecord = { requests: [] }
  const own = await recordingServer(heard)
  const proxy = await startFrontProxy(name, own.port, KEEP_ALIVE_MS)
  if (!proxy) {
    own[Symbol.dispose]()
    return undefined
  }
  return {
    title: `${name === 'haproxy' ? 'HAProxy' : name} ${frontProxyVersion(name)}`,
    // A proxy drops the requests of a client that half-closes.
    interpret: (bytes) => describeCase(heard, () => sendCase(proxy.port, bytes, 'waits')),
    stop() {
      proxy.stop()
      own[Symbol.dispose]()
    },
  }
}

/** The gateway's server, which answers and records every request. */
function recordingServer(heard: CaseRecord): ReturnType<typeof startOwnServer> {
  return startOwnServer((request, response) => {
    if (request.headers.expect !== undefined && request.version === '1.1') response.writeContinue()
    void bodyOf(request).then(
      (body) => {
        if (request.url !== '/healthz') heard.requests.push(requestLabel(request.url, body.length))
        response.end('ok')
      },
      () => {},
    )
  })
}

/** Label of a request in the table: "last", "hidden" or "it", and the size of a body. */
function requestLabel(url: string, size: number): string {
  const name = url === '/last' || url === '/hidden' ? url.slice(1) : 'it'
  return size === 0 ? name : `${name} (${size})`
}

async function describeCase(heard: CaseRecord, send: () => Promise<readonly number[]>): Promise<string> {
  heard.requests.length = 0
  const statuses = await send()
  const refused = statuses.filter((status) => status >= 300)
  const words = [...heard.requests, ...refused.map(String)]
  return words.length === 0 ? 'closed' : words.join(', ')
}

/**
 * Sends bytes and the last request; resolves to the statuses of all final responses once the connection is
 * closed.
 */
function sendCase(port: number, bytes: Buffer, then: 'half-closes' | 'waits'): Promise<number[]> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.setTimeout(then === 'waits' ? QUIET_MS : MAX_WAIT_MS, () => socket.destroy())
  const all = Buffer.concat([bytes, LAST])
  if (then === 'half-closes') socket.end(all)
  else socket.write(all)
  return new Promise((resolve) => {
    socket.on('close', () => {
      const statuses = [...received.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status]) => Number(status))
      resolve(statuses.filter((status) => status >= 200))
    })
  })
}
