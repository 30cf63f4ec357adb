import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import { HeaderNames } from './header-names.ts'
import { HttpServer, type HttpServerOptions } from './http-server.ts'

const GET = 'GET /path HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'

/** Serves one client behind a proxy, which may have one request at a time, and has one under way. */
async function serveBusy(parts: Pick<HttpServerOptions, 'refusalFor'>): Promise<number> {
  const begun = Promise.withResolvers<void>()
  const server = new HttpServer({
    headerNames: new HeaderNames([]),
    listener: () => begun.resolve(),
    limits: { total: 10, perBlock: 1, reserve: 0 },
    clientAddresses: {
      peerAt: () => ({ block: 'proxy', isProxy: true, isLoopback: true }),
      blockBehindProxy: () => 'client',
    },
    ...parts,
  })
  const listening = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
    server.accept(socket),
  )
  await once(listening.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    listening.close()
    server.close()
  })
  const { port } = listening.address() as AddressInfo
  const busy = rawConnection(port, GET)
  onTestFinished(() => void busy.socket.destroy())
  await begun.promise
  return port
}

test('a refused HTTP request gets the reason as plain text, and a 429 states when to retry', async () => {
  const port = await serveBusy({})
  expect(await rawConnection(port, 'GET / HTTP/1.1\r\n\r\n').closed()).toMatch(
    /^HTTP\/1\.1 400 Bad Request\r\ncontent-type: text\/plain\r\n[^]*\r\n\r\nthe request is expected to have one Host header\n$/,
  )
  expect(await rawConnection(port, GET).closed()).toMatch(
    /^HTTP\/1\.1 429 Too Many Requests\r\n[^]*\r\nretry-after: 1\r\n/,
  )
})

test("a refused HTTP request gets the response that the server's refusalFor option makes of its status, message and path", async () => {
  const port = await serveBusy({
    refusalFor: ({ status, message }, url) => ({
      status,
      headers: { 'x-message': message },
      body: Buffer.from(String(url)),
    }),
  })
  expect(await rawConnection(port, GET).closed()).toMatch(
    /^HTTP\/1\.1 429 [^]*x-message: too many requests from this address are under way\r\n[^]*\r\n\r\n\/path$/,
  )
  expect(await rawConnection(port, 'nonsense\r\n\r\n').closed()).toMatch(
    /^HTTP\/1\.1 400 [^]*x-message: this is not a valid HTTP request\r\n[^]*\r\n\r\nundefined$/,
  )
})
