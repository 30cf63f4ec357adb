import { afterEach, describe, expect, test } from 'vitest'
import { bodyOf, type OwnServer, startOwnServer } from '../../test/equipment/own-server.ts'
import { rawConnection } from '../../test/equipment/raw-socket.ts'
import type { RequestListener } from './http-server.ts'
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

/** All that is said to the bytes of a connection, until the server ends it. */
async function said(listener: RequestListener, bytes: string): Promise<string> {
  return rawConnection(await serve(listener), bytes).closed()
}

const HOST = 'host: x\r\n'
const CLOSE = 'connection: close\r\n'
const GET = `GET / HTTP/1.1\r\n${HOST}${CLOSE}\r\n`
const bodyIn = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4)

describe('an answer', () => {
  test('that is given at once says its length', async () => {
    const answer = await said((_, response) => {
      response.writeHead(201, { 'content-type': 'text/plain', 'x-y': 'z' }).end('hellö')
    }, GET)
    expect(answer).toMatch(
      /^HTTP\/1\.1 201 Created\r\ncontent-type: text\/plain\r\nx-y: z\r\ndate: [^\r]{29}\r\ncontent-length: 6\r\nconnection: close\r\n\r\n/,
    )
    expect(Buffer.from(bodyIn(answer), 'latin1').toString()).toBe('hellö')
  })

  test('that comes in pieces is chunked', async () => {
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

  test('that comes in pieces of a length that is told is not', async () => {
    const answer = await said((_, response) => {
      response.writeHead(200, { 'content-length': '4' })
      response.write(Buffer.from('he'))
      response.end(Buffer.from('re'))
    }, GET)
    expect(answer).not.toContain('chunked')
    expect(bodyIn(answer)).toBe('here')
  })

  test('of HTTP/1.0 that comes in pieces ends with its connection', async () => {
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
    ['to HEAD', 200, GET.replace('GET', 'HEAD')],
    ['of 204', 204, GET],
    ['of 304', 304, GET],
  ])('%s has no body', async (_, status, bytes) => {
    const answer = await said((__, response) => {
      response.writeHead(status, {})
      response.write(Buffer.from('one'))
      response.end('two')
    }, bytes)
    expect(bodyIn(answer)).toBe('')
    expect(answer).not.toMatch(/chunked|content-length/)
  })

  test('of many megabytes arrives whole, and its sender waits for a slow reader', async () => {
    const piece = Buffer.alloc(1_000_000, 'x')
    let waited = 0
    const port = await serve((_, response) => {
      let left = 20
      const more = (): void => {
        while (left > 0) {
          left -= 1
          if (response.write(piece)) continue
          waited += 1
          return response.whenDrained(more)
        }
        response.end()
      }
      response.writeHead(200, { 'content-length': '20000000' })
      more()
    })
    const connection = rawConnection(port, GET)
    connection.socket.pause()
    await new Promise((resolve) => setTimeout(resolve, 50))
    connection.socket.resume()
    expect(bodyIn(await connection.closed())).toHaveLength(20_000_000)
    expect(waited).toBeGreaterThan(3)
  })

  test.each(['a\r\nb', 'a\0', 'ü\u0100'])('whose header says %j is not given', async (value) => {
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
  const counted = (answer: string): number => answer.match(/HTTP\/1\.1 200/g)?.length ?? 0

  test('is kept for another request, and its caller is told for how long', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, `GET /1 HTTP/1.1\r\n${HOST}\r\n`)
    expect(await connection.until('ok')).toContain('connection: keep-alive\r\nkeep-alive: timeout=65\r\n')
    connection.socket.write(GET)
    expect(counted(await connection.closed())).toBe(2)
  })

  test('of HTTP/1.0 is kept where its caller asks for that', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, 'GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n')
    await connection.until('ok')
    connection.socket.write('GET / HTTP/1.0\r\n\r\n')
    expect(counted(await connection.closed())).toBe(2)
  })

  test('ends with the answer that is said to be the last, and what follows is not heard', async () => {
    let asked = 0
    const answer = await said((_, response) => {
      asked += 1
      response.isLast = true
      response.writeHead(200, {}).end('bye')
    }, `GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(3))
    expect([asked, counted(answer)]).toEqual([1, 1])
    expect(answer).toContain('connection: close\r\n')
  })

  test('whose answers are slow gives them in the order of the requests', async () => {
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

  test('on which a body is still coming hears the answer, and then the next', async () => {
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
    expect(counted(await connection.closed())).toBe(1)
    expect(bodies).toBe(1)
  })

  test('whose caller leaves loses its answer, and cuts the body', async () => {
    const outcome = Promise.withResolvers<string>()
    const lost = Promise.withResolvers<Response>()
    const port = await serve((request, response) => {
      response.onClosed(() => lost.resolve(response))
      bodyOf(request).then(
        () => outcome.resolve('whole'),
        () => outcome.resolve('cut'),
      )
    })
    const connection = rawConnection(port, `POST / HTTP/1.1\r\n${HOST}content-length: 10\r\n\r\nhello`)
    await new Promise((resolve) => setTimeout(resolve, 30))
    connection.socket.destroy()
    expect(await outcome.promise).toBe('cut')
    const response = await lost.promise
    expect([response.isLost, response.isFinished]).toEqual([true, false])
    // Nothing comes of it, and nothing breaks.
    response.write(Buffer.from('x'))
    response.end('y')
  })

  test('that ends while its answer is made has no caller any more', async () => {
    const lost = Promise.withResolvers<boolean>()
    const port = await serve((_, response) => response.onClosed(() => lost.resolve(response.isLost)))
    const connection = rawConnection(port, `GET / HTTP/1.1\r\n${HOST}\r\n`)
    await new Promise((resolve) => setTimeout(resolve, 30))
    connection.socket.end()
    expect(await lost.promise).toBe(true)
  })

  test('that ends in the middle of a request is told that it is none', async () => {
    const port = await serve(ok)
    const connection = rawConnection(port, `POST / HTTP/1.1\r\nhos`)
    connection.socket.end()
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 .*\r\nconnection: close\r\n/s)
  })

  test('with something unreadable after a request that is being answered ends with that answer', async () => {
    const answer = await said((_, response) => {
      setTimeout(() => response.writeHead(200, {}).end('first'), 20)
    }, `GET / HTTP/1.1\r\n${HOST}\r\n\0\0\0`)
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  })

  test('in the middle of an answer to a body that turns out unreadable is cut: nobody takes it for whole', async () => {
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

  test('is read no further while nobody takes a body, nor while whoever takes it asks for a pause', async () => {
    const came: number[] = []
    const port = await serve((request, response) => {
      setTimeout(() => {
        came.push(request.bytesRead)
        let taken = 0
        request.read({
          piece(bytes) {
            taken += bytes.length
            if (came.length > 1) return
            came.push(0)
            request.pause()
            setTimeout(() => {
              came.push(request.bytesRead)
              request.resume()
            }, 30)
          },
          whole: () => response.writeHead(200, {}).end(String(taken)),
          cut: () => {},
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

  test('beyond the most that there may be is ended at once', async () => {
    own = await startOwnServer(ok, 2)
    const { port, server } = own
    const kept = [rawConnection(port, ''), rawConnection(port, '')]
    await expect.poll(() => server.connections).toBe(2)
    expect(await rawConnection(port, GET).closed()).toBe('')
    for (const { socket } of kept) socket.destroy()
    await expect.poll(() => server.connections).toBe(0)
    expect(counted(await rawConnection(port, GET).closed())).toBe(1)
  })

  test('on which nothing is under way is ended where that is asked for, others are not', async () => {
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
})
