import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { bodyOf, type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import type { RequestListener } from './http-server.ts'
import type { Response } from './response.ts'

let own: OwnServer | undefined
afterEach(() => {
  vi.useRealTimers()
  own?.[Symbol.dispose]()
  own = undefined
})

const POST = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello'
/** Milliseconds: longer than the server waits for an upstream on a half-closed connection. */
const LATE_MS = 300

/** Sends bytes and half-closes the connection; returns everything that the server sent. */
async function saidTo(bytes: string, listener: RequestListener): Promise<string> {
  own = await startOwnServer(listener)
  const connection = rawConnection(own.port, '')
  connection.socket.allowHalfOpen = true
  connection.socket.end(bytes)
  const said = await connection.closed()
  await expect.poll(() => own?.server.connections).toBe(0)
  return said
}

test('a complete request whose client then closes its side is answered', async () => {
  const said = await saidTo(POST, (request, response) => {
    void bodyOf(request).then((body) => response.writeHead(200, {}).end(body))
  })
  expect(said).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nhello$/)
})

test('a half-closed request whose response takes long is answered, where no upstream is called for it', async () => {
  const said = await saidTo(POST, (_, response) => {
    setTimeout(() => response.writeHead(200, {}).end('late'), LATE_MS)
  })
  expect(said).toMatch(/late$/)
})

test('an upstream’s response that begins at once is sent completely to a half-closed client, however long it takes', async () => {
  const said = await saidTo(POST, (_, response) => {
    response.needsUpstream()
    setImmediate(() => {
      response.writeHead(200, {}).write(Buffer.from('first'))
      setTimeout(() => response.end('last'), LATE_MS)
    })
  })
  expect(said).toMatch(/first[^]*last[^]*0\r\n\r\n$/)
})

/**
 * Sends a request, closes the sending side, and settles once the server has begun to respond and has noticed
 * the close. Time only advances where the test does it.
 */
async function begunHalfClosed(): Promise<{ readonly response: Response; readonly said: Promise<string> }> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const begun = Promise.withResolvers<Response>()
  const said = saidTo(POST, (_, response) => {
    response.needsUpstream()
    response.writeHead(200, {}).write(Buffer.from('first'))
    begun.resolve(response)
  })
  const response = await begun.promise
  // The close follows the request within the same process: a few turns of the loop read it.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  return { response, said }
}

test("an upstream's response that repeatedly pauses for less than ten seconds is sent to a half-closed client", async () => {
  const { response, said } = await begunHalfClosed()
  for (let pause = 0; pause < 3; pause++) {
    await vi.advanceTimersByTimeAsync(9_000)
    response.write(Buffer.from('more'))
  }
  response.end('last')
  vi.useRealTimers()
  expect(await said).toMatch(/first[^]*more[^]*last[^]*0\r\n\r\n$/)
})

test('a half-closed client counts as gone where its response pauses for ten seconds', async () => {
  const { response, said } = await begunHalfClosed()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(response.isAborted).toBe(true)
  vi.useRealTimers()
  expect(await said).toMatch(/first\r\n$/)
})

test('a half-closed client counts as gone where the upstream takes more than ten seconds to begin', async () => {
  const lost = Promise.withResolvers<boolean>()
  const said = await saidTo(POST, (_, response) => {
    response.onClosed(() => lost.resolve(response.isAborted))
    response.needsUpstream()
  })
  expect(said).toBe('')
  expect(await lost.promise).toBe(true)
})

test('an upstream is not called for a half-closed client after ten seconds, because the client counts as gone', async () => {
  let wasLost: boolean | undefined
  const said = await saidTo(POST, (_, response) => {
    setTimeout(() => {
      response.needsUpstream()
      wasLost = response.isAborted
    }, LATE_MS)
  })
  expect([said, wasLost]).toEqual(['', true])
})

test('all requests that arrive before the client half-closes the connection are answered, in order', async () => {
  const said = await saidTo(`${POST}${POST.replace('hello', 'again')}`, (request, response) => {
    void bodyOf(request).then(async (body) => {
      await sleep(20)
      response.writeHead(200, {}).end(body)
    })
  })
  expect(said.match(/hello|again/g)).toEqual(['hello', 'again'])
})

test('the last request before the half-close is refused where it is incomplete', async () => {
  const said = await saidTo(`${POST}POST / HTTP/1.1\r\nhost`, (request, response) => {
    void bodyOf(request).then((body) => response.writeHead(200, {}).end(body))
  })
  expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
})

test('a request whose body is cut off by the half-close gets a 400', async () => {
  const said = await saidTo(POST.slice(0, -1), (request, response) => {
    void bodyOf(request).then(
      (body) => response.end(body),
      () => {},
    )
  })
  expect(said).toMatch(/^HTTP\/1\.1 400 /)
})
