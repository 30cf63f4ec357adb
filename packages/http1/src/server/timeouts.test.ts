import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import type { RequestListener } from './http-server.ts'

const HOST = 'host: x\r\n'
/** Milliseconds for which a connection must stay open, and within which it must be closed. */
const [OPEN_MS, CLOSED_MS] = [200, 60_000]

// Only the server's clock is faked; sockets work as usual.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

const silent: RequestListener = () => {}
const ok: RequestListener = (_, response) => response.writeHead(200, {}).end('ok')

/** Client and server take turns in this process, of which a slow machine may have too few in some milliseconds. */
async function taken(): Promise<void> {
  await sleep(40)
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** A connection on which bytes were sent, after this number of seconds of the server's clock. */
async function after(seconds: number, bytes: string, listener: RequestListener, lookMs = OPEN_MS) {
  using own = await startOwnServer(listener)
  const connection = rawConnection(own.port, bytes)
  while (own.server.connections === 0) await sleep(5)
  await taken()
  const wasOpen = own.server.connections === 1
  vi.advanceTimersByTime(seconds * 1_000)
  const closed = await Promise.race([connection.closed(), sleep(lookMs)])
  connection.socket.destroy()
  return { wasOpen, closed }
}

describe('a connection is ended', () => {
  const half = `POST / HTTP/1.1\r\n${HOST}content-length: 10\r\n\r\nhello`

  test.each([
    ['on which nothing is said', 10, '', silent, /^HTTP\/1\.1 408 /],
    ['whose head is not complete', 10, 'GET / HT', silent, /^HTTP\/1\.1 408 /],
    ['whose body is not complete', 60, half, silent, /^HTTP\/1\.1 408 /],
    ['on which nothing follows', 65, `GET / HTTP/1.1\r\n${HOST}\r\n`, ok, /^HTTP\/1\.1 200 [^]*ok$/],
    ['whose body goes on after its answer', 20, half, ok, /^HTTP\/1\.1 200 [^]*ok$/],
  ])(
    'the HTTP server ends a connection %s after %i seconds and no earlier',
    async (_, seconds, bytes, listener, told) => {
      const early = await after(seconds, bytes, listener)
      expect(early).toEqual({ wasOpen: true, closed: undefined })
      expect((await after(seconds + 1, bytes, listener, CLOSED_MS)).closed).toMatch(told)
    },
  )

  test('a connection is not ended by a timeout while its response is made', async () => {
    const { closed } = await after(600, `GET / HTTP/1.1\r\n${HOST}\r\n`, silent)
    expect(closed).toBeUndefined()
  })

  test('the server ends a connection two seconds after its last response if the client does not close it', async () => {
    using own = await startOwnServer((_, response) => {
      response.closesConnection = true
      response.writeHead(200, {}).end('ok')
    })
    const connection = rawConnection(own.port, '')
    connection.socket.allowHalfOpen = true
    connection.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`)
    await connection.until('ok')
    await sleep(40)
    expect(own.server.connections).toBe(1)
    vi.advanceTimersByTime(3_000)
    await vi.waitFor(() => expect(own.server.connections).toBe(0), 60_000)
    connection.socket.destroy()
  })
})

test('a client that stops reading in the middle of a response is disconnected after a minute', async () => {
  let lost = false
  using own = await startOwnServer((_, response) => {
    response.onClosed(() => (lost = response.isAborted))
    while (response.write(Buffer.alloc(65_536)));
  })
  const waits: number[] = []
  // The client does not read.
  const wire = new Duplex({ read() {}, write() {} })
  const setTimeout = (ms: number): void => void waits.push(ms)
  own.server.accept(Object.assign(wire, { setTimeout, remoteAddress: '::1' }) as unknown as Socket)
  wire.push(`GET / HTTP/1.1\r\n${HOST}\r\n`)
  await sleep(20)
  expect([waits.at(-1), lost]).toEqual([60_000, false])
  wire.emit('timeout')
  await sleep(20)
  expect([wire.destroyed, lost]).toEqual([true, true])
})
