import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'

const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const LIMIT = 4

async function serverAtLimit(): Promise<OwnServer> {
  const own = await startOwnServer((_, response) => response.end('ok'), LIMIT)
  onTestFinished(() => own[Symbol.dispose]())
  return own
}

/** A client and everything that it has received. */
class Client {
  readonly socket: Socket
  #heard = ''
  readonly closed: Promise<unknown>

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', (chunk: Buffer) => (this.#heard += chunk.toString()))
    this.socket.on('error', () => {})
    this.closed = once(this.socket, 'close')
    onTestFinished(() => void this.socket.destroy())
  }

  /** Sends a request. */
  send(): void {
    this.socket.write(REQUEST)
  }

  /** Resolves to the number of responses once there are `least`, or once the connection is closed. */
  async responses(least: number): Promise<number> {
    const count = (): number => this.#heard.split('ok').length - 1
    while (count() < least && !this.socket.destroyed)
      await Promise.race([once(this.socket, 'data').catch(() => {}), this.closed])
    return count()
  }
}

test('a connection whose request has arrived is not closed for a new one: its request is read and answered first', async () => {
  const { port } = await serverAtLimit()
  const kept = Array.from({ length: LIMIT }, () => new Client(port))
  for (const client of kept) {
    client.send()
    expect(await client.responses(1)).toBe(1)
  }
  // The server finds the new connection and the requests in one turn, in this order.
  const fresh = await new Promise<Client>((resolve) =>
    setImmediate(() => {
      const client = new Client(port)
      // Node.js connects at the end of this tick.
      process.nextTick(() => {
        for (const other of kept) other.send()
        resolve(client)
      })
    }),
  )
  for (const client of kept) expect(await client.responses(2)).toBe(2)
  fresh.send()
  expect(await fresh.responses(1)).toBe(1)
  await Promise.race(kept.map(({ closed }) => closed))
})

test('connections that are accepted in one turn of the event loop do not displace each other before they are read', async () => {
  const { server } = await serverAtLimit()
  const accepted: Socket[] = []
  // A separate listener, because each listener accepts one connection in a turn.
  const listener = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) => {
    accepted.push(socket)
    if (accepted.length > LIMIT) for (const each of accepted) server.accept(each)
  })
  onTestFinished(() => void listener.close())
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  const { port } = listener.address() as AddressInfo
  const clients = Array.from({ length: LIMIT + 1 }, () => new Client(port))
  for (const client of clients) client.send()
  expect(await Promise.all(clients.map((client) => client.responses(1)))).toEqual(clients.map(() => 1))
})
