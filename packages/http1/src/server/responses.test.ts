import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { bodyOf, type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import type { RequestListener } from './http-server.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

let own: OwnServer | undefined
afterEach(() => {
  own?.[Symbol.dispose]()
  own = undefined
})

async function serve(listener: RequestListener): Promise<number> {
  own = await startOwnServer(listener)
  return own.port
}

/** Sends bytes; returns everything that the server sent until it closed the connection. */
async function said(listener: RequestListener, bytes: string): Promise<string> {
  return rawConnection(await serve(listener), bytes).closed()
}

const HOST = 'host: x\r\n'
const CLOSE = 'connection: close\r\n'
const GET = `GET / HTTP/1.1\r\n${HOST}${CLOSE}\r\n`
const bodyIn = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4)

describe('a response', () => {
  test('a response that is written at once states its length', async () => {
    const answer = await said((_, response) => {
      response.writeHead(201, { 'content-type': 'text/plain', 'x-y': 'z' }).end('hellö')
    }, GET)
    expect(answer).toMatch(
      /^HTTP\/1\.1 201 Created\r\ncontent-type: text\/plain\r\nx-y: z\r\ndate: [^\r]{29}\r\ncontent-length: 6\r\nconnection: close\r\n\r\n/,
    )
    expect(Buffer.from(bodyIn(answer), 'latin1').toString()).toBe('hellö')
  })

  test('a response that is written in pieces is chunked', async () => {
    const answer = await said((_, response) => {
      response.writeHead(200, {})
      response.write(Buffer.from('hello'))
      response.write(Buffer.from(''))
      response.write(Buffer.from('w'.repeat(20)))
      response.end('!')
    }, GET)
    expect(answer).toContain('\r\ntransfer-encoding: chunked\r\n')
    expect(bodyIn(answer)).toBe(`5\r\nhello\r\n14\r\n${'w'.repeat(20)}\r\n1\r\n!\r\n0\r\n\r\n`)
  })

  test('a response that is written in pieces of a stated length is not chunked', async () => {
    const answer = await said((_, response) => {
      response.writeHead(200, { 'content-length': '4' })
      response.write(Buffer.from('he'))
      response.end(Buffer.from('re'))
    }, GET)
    expect(answer).not.toContain('chunked')
    expect(bodyIn(answer)).toBe('here')
  })

  test('an HTTP/1.0 response that is written in pieces ends with its connection', async () => {
    const answer = await said((_, response) => {
      response.write(Buffer.from('he'))
      response.end(Buffer.from('re'))
    }, 'GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).toContain('connection: close\r\n')
    expect(answer).not.toMatch(/content-length|chunked/)
    expect(bodyIn(answer)).toBe('here')
  })

  test.each([
    ['of 204', 204, GET],
    ['of 304', 304, GET],
  ])(
    'a response with the status code %s has no body, even if the application writes one',
    async (_, status, bytes) => {
      const answer = await said((__, response) => {
        response.writeHead(status, {})
        response.write(Buffer.from('one'))
        response.end('two')
      }, bytes)
      expect(bodyIn(answer)).toBe('')
      expect(answer).not.toMatch(/chunked|content-length/)
    },
  )

  test('a response of many megabytes arrives completely, and its sender waits for a slow reader', async () => {
    const piece = Buffer.alloc(1_000_000, 'x')
    // More than the buffers of both sockets may grow to.
    const pieces = 64
    let left = pieces
    let waited = 0
    const port = await serve((_, response) => {
      const more = (): void => {
        while (left > 0) {
          left -= 1
          if (response.write(piece)) continue
          waited += 1
          return response.whenDrained(more)
        }
        response.end()
      }
      response.writeHead(200, { 'content-length': String(pieces * piece.length) })
      more()
    })
    const connection = rawConnection(port, GET)
    connection.socket.pause()
    await expect.poll(() => waited).toBeGreaterThan(0)
    expect(left).toBeGreaterThan(0)
    connection.socket.resume()
    expect(bodyIn(await connection.closed())).toHaveLength(pieces * piece.length)
    expect(left).toBe(0)
  })

  // The last piece is accepted partially: less than a socket's buffer is waiting, for which no drain event is
  // emitted.
  test.each([20_000, 30_000, 60_000])(
    'a response in pieces of %i bytes continues once a slow reader reads',
    async (size) => {
      const piece = Buffer.alloc(size, 'x')
      let pieces = 0
      let waited = 0
      const port = await serve((_, response) => {
        const more = (): void => {
          while (waited < 3) {
            pieces += 1
            if (response.write(piece)) continue
            waited += 1
            return response.whenDrained(more)
          }
          response.end()
        }
        response.writeHead(200, {})
        more()
      })
      const connection = rawConnection(port, GET)
      connection.socket.pause()
      await expect.poll(() => waited).toBe(1)
      connection.socket.resume()
      const answer = await connection.closed()
      expect(answer.match(/x+/g)?.join('')).toHaveLength(pieces * size)
      expect(answer.endsWith('\r\n0\r\n\r\n')).toBe(true)
    },
  )

  test.each(['a\r\nb', 'a\0', 'ü\u0100'])('a response whose header is %j is not sent', async (value) => {
    let thrown: unknown
    await said((_, response) => {
      try {
        response.writeHead(200, { x: value }).end('no')
      } catch (error) {
        thrown = error
        response.destroy()
      }
    }, GET)
    expect(thrown).toBeInstanceOf(TypeError)
  })
})

describe('a connection', () => {
  const ok: RequestListener = (_, response) => response.writeHead(200, {}).end('ok')
  const countResponses = (answer: string): number => answer.match(/HTTP\/1\.1 200/g)?.length ?? 0

  test('a connection is kept open for another request, and its header states for how long', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, `GET /1 HTTP/1.1\r\n${HOST}\r\n`)
    expect(await connection.until('ok')).toContain('connection: keep-alive\r\nkeep-alive: timeout=65\r\n')
    connection.socket.write(GET)
    expect(countResponses(await connection.closed())).toBe(2)
  })

  test('an HTTP/1.0 connection is kept where the client requests it', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, 'GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n')
    await connection.until('ok')
    connection.socket.write('GET / HTTP/1.0\r\n\r\n')
    expect(countResponses(await connection.closed())).toBe(2)
  })

  test('an HTTP/1.0 connection with a chunked body is not kept', async () => {
    const answer = await said(
      (_, response) => response.writeHead(200, {}).end('ok'),
      'POST / HTTP/1.0\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n',
    )
    expect(answer).toContain('connection: close\r\n')
  })

  test('a connection ends with the response that is marked as the last, and later requests are ignored', async () => {
    let asked = 0
    const answer = await said((_, response) => {
      asked += 1
      response.closesConnection = true
      response.writeHead(200, {}).end('bye')
    }, `GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(3))
    expect([asked, countResponses(answer)]).toEqual([1, 1])
    expect(answer).toContain('connection: close\r\n')
  })

  test('a connection whose responses are slow sends them in the order of the requests', async () => {
    const urls: string[] = []
    const requests = Array.from(
      { length: 5 },
      (_, i) => `GET /${i} HTTP/1.1\r\n${HOST}${i === 4 ? CLOSE : ''}\r\n`,
    )
    const answer = await said(({ url }, response) => {
      urls.push(url)
      setTimeout(() => response.writeHead(200, {}).end(url), 10 - 2 * urls.length)
    }, requests.join(''))
    expect(urls).toEqual(['/0', '/1', '/2', '/3', '/4'])
    expect(answer.match(/\/\d(?=HTTP|$)/g)).toEqual(urls)
  })

  test('a client that still sends a body gets its response at once, and its next request is answered, too', async () => {
    let bodies = 0
    const port = await serve((request, response) => {
      if (request.method === 'POST') response.writeHead(413, {}).end('too large')
      else {
        bodies += 1
        response.writeHead(200, {}).end('ok')
      }
    })
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 1000000\r\n\r\n`)
    await connection.until('too large')
    connection.socket.write('x'.repeat(1_000_000))
    connection.socket.write(GET)
    expect(countResponses(await connection.closed())).toBe(1)
    expect(bodies).toBe(1)
  })

  test('a client that leaves causes its response to be dropped, and the body of its request to be aborted', async () => {
    const begun = Promise.withResolvers<void>()
    const outcome = Promise.withResolvers<string>()
    const lost = Promise.withResolvers<Response>()
    const port = await serve((request, response) => {
      begun.resolve()
      response.onClosed(() => lost.resolve(response))
      bodyOf(request).then(
        () => outcome.resolve('whole'),
        () => outcome.resolve('cut'),
      )
    })
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 10\r\n\r\nhello`)
    await begun.promise
    connection.socket.destroy()
    expect(await outcome.promise).toBe('cut')
    const response = await lost.promise
    expect([response.isAborted, response.isFinished]).toEqual([true, false])
    // Writing to an aborted response has no effect.
    response.write(Buffer.from('x'))
    response.end('y')
  })

  test('a response whose client closes the connection before it is complete is marked as aborted', async () => {
    const lost = Promise.withResolvers<boolean>()
    const port = await serve((_, response) => {
      response.onClosed(() => lost.resolve(response.isAborted))
      response.writeHead(200, {}).write(Buffer.from('half'))
    })
    const connection = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`)
    await connection.until('half')
    // An earlier close would count as the end of the request's bytes.
    await sleep(150)
    connection.socket.end()
    expect(await lost.promise).toBe(true)
  })

  test('a connection that ends in the middle of a request gets a 400', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, `POST / HTTP/1.1\r\nhos`)
    connection.socket.end()
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 .*\r\nconnection: close\r\n/s)
  })

  test('a connection with unreadable bytes after a request in flight gets the response to that request, and then a 400', async () => {
    const answer = await said((_, response) => {
      setTimeout(() => response.writeHead(200, {}).end('first'), 20)
    }, `GET / HTTP/1.1\r\n${HOST}\r\n\0\0\0`)
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  })

  test('a connection is reset if a body turns out unreadable after the response began, so that this does not look complete', async () => {
    const port = await serve((_, response) => {
      response.writeHead(200, {})
      response.write(Buffer.from('half'))
    })
    const head = `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`
    const connection = rawConnection(port, `${head}1\r\nx\r\n`)
    await connection.until('half')
    connection.socket.write('zz\r\n')
    expect(bodyIn(await connection.closed())).toBe('4\r\nhalf\r\n')
  })

  test('a connection is not read while the body of its request is paused or not read', async () => {
    const came: number[] = []
    const port = await serve((request, response) => {
      setTimeout(() => {
        came.push(request.bytesRead)
        let taken = 0
        request.read({
          onChunk(bytes) {
            taken += bytes.length
            if (came.length > 1) return
            came.push(0)
            request.pause()
            setTimeout(() => {
              came.push(request.bytesRead)
              request.resume()
            }, 30)
          },
          onEnd: () => response.writeHead(200, {}).end(String(taken)),
          onAbort: () => {},
        })
      }, 50)
    })
    const connection = rawConnection(
      port,
      `POST / HTTP/1.1\r\n${HOST}${CLOSE}content-length: 5000000\r\n\r\n`,
    )
    connection.socket.write(Buffer.alloc(5_000_000))
    expect(bodyIn(await connection.closed())).toBe('5000000')
    const [unasked = 0, , paused = 0] = came
    expect(unasked).toBeLessThan(300_000)
    expect(paused).toBeLessThan(700_000)
  })

  test('a connection beyond the maximum number of connections is ended at once', async () => {
    const held: Response[] = []
    own = await startOwnServer((request, response) => {
      if (request.url === '/held') held.push(response)
      else ok(request, response)
    }, 2)
    const { port, server } = own
    const hold = `GET /held HTTP/1.1\r\n${HOST}\r\n`
    const kept = [rawConnection(port, hold), rawConnection(port, hold)]
    await expect.poll(() => held.length).toBe(2)
    expect(await rawConnection(port, GET).closed()).toBe('')
    for (const { socket } of kept) socket.resetAndDestroy()
    await expect.poll(() => server.connections).toBe(0)
    expect(countResponses(await rawConnection(port, GET).closed())).toBe(1)
  })

  test('the server can close its idle connections on demand, and others stay open', async () => {
    const answering = Promise.withResolvers<Response>()
    const port = await serve(({ url }, response) => {
      if (url === '/slow') answering.resolve(response)
      else response.writeHead(200, {}).end('ok')
    })
    const idle = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`)
    const unused = rawConnection(port, '')
    const busy = rawConnection(port, `GET /slow HTTP/1.1\r\n${HOST}${CLOSE}\r\n`)
    await idle.until('ok')
    const response = await answering.promise
    own?.server.closeIdle()
    await Promise.all([idle.closed(), unused.closed()])
    response.writeHead(200, {}).end('late')
    expect(await busy.closed()).toContain('late')
  })

  test('a connection serves further requests after one that arrived while another was answered', async () => {
    const port = await serve(({ url }, response) => {
      setTimeout(() => response.writeHead(200, {}).end(url), 60)
    })
    const connection = rawConnection(port, `GET /1 HTTP/1.1\r\n${HOST}\r\n`)
    await sleep(20)
    connection.socket.write(`GET /2 HTTP/1.1\r\n${HOST}\r\n`)
    await connection.until('/2')
    connection.socket.write(`GET /3 HTTP/1.1\r\n${HOST}${CLOSE}\r\n`)
    expect(countResponses(await connection.closed())).toBe(3)
  })

  test('a connection serves further requests after one whose body was not read', async () => {
    const port = await serve((_, response) => setTimeout(() => response.writeHead(200, {}).end('ok'), 20))
    const body = 'x'.repeat(100_000)
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 100000\r\n\r\n${body}`)
    await connection.until('ok')
    connection.socket.write(GET)
    expect(countResponses(await connection.closed())).toBe(2)
  })

  test('a connection serves further requests after one whose body was paused at its last piece', async () => {
    const port = await serve((request, response) => {
      request.read({
        onChunk: () => request.pause(),
        onEnd: () => setTimeout(() => response.writeHead(200, {}).end('ok'), 20),
        onAbort: () => {},
      })
    })
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\n`)
    await sleep(20)
    connection.socket.write('hello')
    await connection.until('ok')
    connection.socket.write(GET)
    expect(countResponses(await connection.closed())).toBe(2)
  })

  test.each([
    ['after the body', ''],
    ['with a stray line after it', '\r\n'],
    ['with another request after it', `GET /2 HTTP/1.1\r\n${HOST}\r\n`],
  ])(
    'the server notices a client that disconnects %s, even if it has paused the reading of the request',
    async (_, more) => {
      const lost = Promise.withResolvers<boolean>()
      const port = await serve((request, response) => {
        request.read({ onChunk: () => request.pause(), onEnd: () => {}, onAbort: () => {} })
        response.onClosed(() => lost.resolve(response.isAborted))
        response.needsUpstream()
      })
      const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\n`)
      await sleep(20)
      connection.socket.write('hello')
      await sleep(20)
      connection.socket.write(more)
      await sleep(20)
      connection.socket.destroy()
      expect(await lost.promise).toBe(true)
    },
  )

  test('a response whose connection is lost before its end was sent is marked as aborted', async () => {
    const begun = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<Response>()
    const port = await serve((_, response) => {
      response.onClosed(() => closed.resolve(response))
      response.writeHead(200, {}).end(Buffer.alloc(30_000_000))
      begun.resolve()
    })
    const connection = rawConnection(port, GET)
    connection.socket.pause()
    await begun.promise
    connection.socket.resetAndDestroy()
    expect((await closed.promise).isAborted).toBe(true)
  })

  test('destroying a response that is finished does not abort its connection', async () => {
    const before: Response[] = []
    const port = await serve((_, response) => {
      before.push(response)
      setTimeout(() => {
        if (before.length === 2) before[0]?.destroy()
        response.writeHead(200, {}).end('ok')
      }, 10)
    })
    const connection = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`)
    await connection.until('ok')
    connection.socket.write(GET)
    expect(countResponses(await connection.closed())).toBe(2)
  })

  test('a connection with 200 requests at once serves at most three of them before it lets other events of the event loop run', async () => {
    const served: string[] = []
    const port = await serve(({ url }, response) => {
      served.push(url)
      response.writeHead(200, {}).end('ok')
    })
    const connection = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(200))
    let most = 0
    for (let last = 0; served.length < 200; last = served.length) {
      await new Promise(setImmediate)
      most = Math.max(most, served.length - last)
    }
    expect(most).toBeLessThanOrEqual(3)
    connection.socket.destroy()
  })

  test('a connection serves any number of requests, whatever the total size of their heads', async () => {
    const port = await serve((_, response) => response.writeHead(200, {}).end('ok'))
    const request = `POST / HTTP/1.1\r\n${HOST}x: ${'y'.repeat(2_000)}\r\ncontent-length: 2\r\n\r\nhi`
    const connection = rawConnection(port, request.repeat(60) + GET)
    expect(countResponses(await connection.closed())).toBe(61)
  })

  test.each([
    [
      'extensions of chunks',
      'transfer-encoding: chunked\r\n\r\n',
      `1\r\nx\r\n1;${'e'.repeat(20_000)}\r\ny\r\n0\r\n\r\n`,
    ],
    ['extension of a chunk', 'transfer-encoding: chunked\r\n\r\n', `1;${'e'.repeat(20_000)}`],
    ['blanks before a value', `x:${' '.repeat(40_000)}y\r\n\r\n`, ''],
  ])('a request is refused if it has excessively many bytes outside its body: %s', async (_, head, body) => {
    const answer = await said(
      (__, response) => response.writeHead(200, {}).end('ok'),
      `POST / HTTP/1.1\r\n${HOST}${head}${body}`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 4(?:00|31) /)
  })

  test('a client that closes its side in the middle of a body gets the complete response, and then the connection is ended', async () => {
    const port = await serve((_, response) => response.writeHead(413, {}).end(Buffer.alloc(8_000_000, 'x')))
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 10\r\n\r\nhello`)
    connection.socket.end()
    expect(bodyIn(await connection.closed())).toHaveLength(8_000_000)
  })

  test.each([
    ['a whole request', ''],
    ['half a body', 'content-length: 10\r\n'],
  ])(
    'a client that closes its side of the connection after %s, before the response is sent, gets the response',
    async (_, more) => {
      const asked = Promise.withResolvers<Response>()
      own = await startOwnServer((__, response) => asked.resolve(response))
      const said: string[] = []
      let send = (): void => {}
      const wire = new Duplex({
        read() {},
        write(chunk: Buffer, __, sent) {
          said.push(chunk.toString('latin1'))
          send = sent
        },
      })
      own.server.accept(Object.assign(wire, { setTimeout() {}, remoteAddress: '::1' }) as unknown as Socket)
      wire.push(`POST / HTTP/1.1\r\n${HOST}${more}\r\n`)
      const response = await asked.promise
      wire.push(null)
      response.writeHead(200, {}).end('ok')
      for (let i = 0; i < 3; i++) {
        await sleep(5)
        send()
      }
      expect(said.join('')).toMatch(/^HTTP\/1\.1 200 [^]*ok$/)
      expect([response.isFinished, wire.writableFinished]).toEqual([true, true])
    },
  )

  test('a connection is not closed as idle between a response and a request that has already arrived', async () => {
    const port = await serve(({ url }, response) => {
      response.onClosed(() => queueMicrotask(() => url === '/1' && own?.server.closeIdle()))
      response.writeHead(200, {}).end(url)
    })
    const bytes = `GET /1 HTTP/1.1\r\n${HOST}\r\nGET /2 HTTP/1.1\r\n${HOST}${CLOSE}\r\n`
    expect(countResponses(await rawConnection(port, bytes).closed())).toBe(2)
  })

  test('a connection is read at most 64 KiB ahead, and not while the end of a response is unsent', async () => {
    const asked = Promise.withResolvers<[Request, Response]>()
    const port = await serve((request, response) => asked.resolve([request, response]))
    const connection = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`)
    const [request, response] = await asked.promise
    connection.socket.pause()
    response.writeHead(200, {}).end(Buffer.alloc(30_000_000))
    await sleep(20)
    const before = request.bytesRead
    connection.socket.write('x')
    await sleep(20)
    expect(request.bytesRead).toBe(before)
    connection.socket.destroy()

    const other = Promise.withResolvers<Request>()
    own?.[Symbol.dispose]()
    const flooding = rawConnection(
      await serve((first) => other.resolve(first)),
      `GET / HTTP/1.1\r\n${HOST}\r\n`,
    )
    const first = await other.promise
    flooding.socket.write(Buffer.alloc(5_000_000))
    await sleep(60)
    expect(first.bytesRead).toBeLessThan(300_000)
    flooding.socket.destroy()
  })

  test('the gateway reads a limited part of a body that nobody consumes, and reads on other connections do not change that part', async () => {
    const kept: Request[] = []
    const port = await serve((request, response) => {
      if (request.url === '/other') response.writeHead(200, {}).end('ok')
      else kept.push(request)
    })
    const length = rawConnection(
      port,
      `POST / HTTP/1.1\r\n${HOST}content-length: 1000\r\n\r\n${'a'.repeat(1_000)}`,
    )
    const chunks = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`)
    chunks.socket.write(`5\r\nbbbbb\r\n0\r\n\r\n`)
    const singly = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`)
    singly.socket.write('1\r\nc\r\n'.repeat(200_000))
    await vi.waitFor(() => expect(kept).toHaveLength(3), 60_000)
    await sleep(40)
    const other = `GET /other HTTP/1.1\r\n${HOST}x: ${'z'.repeat(3_000)}\r\n${CLOSE}\r\n`
    await rawConnection(port, other).closed()
    expect(kept[2]?.bytesRead).toBeLessThan(150_000)
    const bodies = await Promise.all(kept.slice(0, 2).map((request) => bodyOf(request)))
    expect(bodies.map(String)).toEqual(['a'.repeat(1_000), 'bbbbb'])
    for (const { socket } of [length, chunks, singly]) socket.destroy()
  })

  test('a refused connection gets the refusal, whatever arrives before it is sent', async () => {
    const began: string[] = []
    own = await startOwnServer(({ url }, response) => {
      began.push(url)
      // The listener responds too late: the refusal is already being sent.
      response.onClosed(() => {
        response.writeHead(200, {}).end('late')
        response.destroy()
      })
    })
    const said: string[] = []
    const unsent: (() => void)[] = []
    // The client does not read before `resume`.
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _, sent) {
        said.push(chunk.toString('latin1'))
        unsent.push(sent)
      },
    })
    own.server.accept(Object.assign(wire, { setTimeout() {}, remoteAddress: '::1' }) as unknown as Socket)
    wire.push(`POST /1 HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n`)
    await sleep(10)
    wire.push('no chunk\r\n')
    await sleep(10)
    wire.push(GET)
    await sleep(10)
    expect([wire.destroyed, began]).toEqual([false, ['/1']])
    for (let sent = unsent.shift(); sent; sent = unsent.shift()) {
      sent()
      await sleep(1)
    }
    expect(said.join('')).toMatch(/^HTTP\/1\.1 400 [^]*connection: close/)
    expect(wire.writableFinished).toBe(true)
  })

  test("the HTTP server reads a connection correctly even if the socket's native handle is not accessible", async () => {
    own = await startOwnServer(ok)
    const { server } = own
    const listening = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      server.accept(
        new Proxy(socket, {
          get(target, name) {
            const value: unknown = name === '_handle' ? null : Reflect.get(target, name, target)
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
      )
    })
    await once(listening.listen(0, '127.0.0.1'), 'listening')
    expect(countResponses(await rawConnection((listening.address() as AddressInfo).port, GET).closed())).toBe(
      1,
    )
    listening.close()
  })
})

describe('requests that do not reach the listener', () => {
  test.each([
    ['CONNECT', `CONNECT x:1 HTTP/1.1\r\n${HOST}\r\n`],
    ['HTTP/0.9', `GET / HTTP/0.9\r\n${HOST}\r\n`],
    ['HTTP/2', `GET / HTTP/2.0\r\n${HOST}\r\n`],
  ])(
    'a request that uses %s gets a 400, and the listener of the application is not called',
    async (_, bytes) => {
      let asked = 0
      const answer = await said((__, response) => {
        asked += 1
        response.writeHead(200, {}).end()
      }, bytes)
      expect(answer).toMatch(/^HTTP\/1\.1 400 /)
      expect(asked).toBe(0)
    },
  )

  test('the request listener is not called for connections that arrive after the server is closed', async () => {
    let asked = 0
    own = await startOwnServer(() => (asked += 1))
    own.server.close()
    expect(await rawConnection(own.port, GET).closed()).toBe('')
    expect(asked).toBe(0)
  })
})

describe('the bytes of a head', () => {
  test.each([10, 100_000])(
    'a response header with a character beyond ASCII is sent unchanged beside a body of %i bytes',
    async (length) => {
      const answer = await said((_, response) => {
        response.writeHead(200, { x: 'caf\u00e9' }).end(Buffer.alloc(length, 'y'))
      }, GET)
      expect(answer).toContain('x: caf\u00e9\r\n')
    },
  )

  test('the head of a response to HEAD states the length that a GET would have', async () => {
    const answer = await said(
      (_, response) => response.writeHead(200, {}).end('hello'),
      GET.replace('GET', 'HEAD'),
    )
    expect(answer).toContain('content-length: 5\r\n')
    expect(bodyIn(answer)).toBe('')
  })
})
