import fc from 'fast-check'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodyOf, type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

/** What a server read on a connection. */
interface Understood {
  readonly requests: readonly string[]
  /** Statuses of all responses. */
  readonly statuses: readonly number[]
}

let heard: string[] = []
let own: OwnServer
const node = createServer({ maxHeaderSize: 16_384, requireHostHeader: true }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('error', () => {})
  request.on('end', () => {
    const { method, url, headers } = request
    heard.push(told(method, url, headers.authorization, headers['x-forwarded-for'], Buffer.concat(chunks)))
    response.end('ok')
  })
})
let nodePort = 0

beforeAll(async () => {
  own = await startOwnServer((request, response) => {
    const { method, url, headers } = request
    void bodyOf(request).then(
      (body) => {
        heard.push(told(method, url, headers.authorization, headers['x-forwarded-for'], body))
        response.end('ok')
      },
      () => {},
    )
  })
  node.keepAliveTimeout = 60_000
  await once(node.listen(0, '127.0.0.1'), 'listening')
  nodePort = (node.address() as AddressInfo).port
})

afterAll(() => {
  own[Symbol.dispose]()
  node.closeAllConnections()
  node.close()
})

function told(
  method: string | undefined,
  url: string | undefined,
  authorization: string | undefined,
  forwarded: string | readonly string[] | undefined,
  body: Buffer,
): string {
  return JSON.stringify({ method, url, authorization, forwarded, body: body.toString('latin1') })
}

/** A request that ends the connection, if the server reads it as one. */
const LAST = 'GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'

/**
 * Sends bytes in pieces that arrive separately, then a last request; waits for all responses. After damaged
 * bytes, which may hide the last request, the client's side is closed.
 */
function sent(
  port: number,
  text: string,
  cuts: readonly number[] = [],
  { isDamaged = false } = {},
): Promise<Understood> {
  const bytes = Buffer.from(text + LAST, 'latin1')
  heard = []
  const requests = heard
  return new Promise((resolve) => {
    let said = ''
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      said += chunk.toString('latin1')
    })
    socket.on('close', () => {
      const statuses = [...said.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
      resolve({ requests, statuses })
    })
    socket.on('connect', async () => {
      let from = 0
      for (const to of [...cuts, bytes.length]) {
        if (to > from) socket.write(bytes.subarray(from, to))
        from = to
        await new Promise(setImmediate)
      }
      if (isDamaged) socket.end()
    })
  })
}

async function both(
  text: string,
  cuts: readonly number[],
  options?: { readonly isDamaged: boolean },
): Promise<[Understood, Understood]> {
  return [await sent(own.port, text, cuts, options), await sent(nodePort, text, cuts, options)]
}

const HOST = 'host: x\r\n'
const HELLO = `POST /v1/chat?a=b HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\nhello`
const CHUNKS = `POST /c HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;name="value"\r\n, world\r\n0\r\nx-trailer: 1\r\nauthorization: Bearer trailer\r\n\r\n`
const GET = `GET /g HTTP/1.1\r\n${HOST}\r\n`

/** Rules of RFC 9112 and 9110, with the bytes of an example and the requests in them. */
const SENTENCES: readonly (readonly [string, string, readonly object[]])[] = [
  ['a length ends a body', HELLO, [{ method: 'POST', url: '/v1/chat?a=b', body: 'hello' }]],
  ['chunks make a body, without extensions and trailers', CHUNKS, [{ url: '/c', body: 'hello, world' }]],
  ['neither of them is no body', GET, [{ method: 'GET', url: '/g', body: '' }]],
  ['a length of nothing is no body', `POST / HTTP/1.1\r\n${HOST}content-length: 0\r\n\r\n`, [{ body: '' }]],
  ['empty lines before a request are passed over', `\r\n\r\n${GET}`, [{ url: '/g' }]],
  [
    'requests follow each other',
    `${HELLO}${GET}${CHUNKS}${GET}`,
    [{ body: 'hello' }, { url: '/g' }, { body: 'hello, world' }, { url: '/g' }],
  ],
  [
    'names of headers know no case',
    `GET / HTTP/1.1\r\nHOST: x\r\nAuthorization: Bearer k\r\n\r\n`,
    [{ authorization: 'Bearer k' }],
  ],
  [
    'white space around a value is no part of it',
    `GET / HTTP/1.1\r\n${HOST}authorization: \t Bearer k \t \r\n\r\n`,
    [{ authorization: 'Bearer k' }],
  ],
  [
    'a value may be empty',
    `GET / HTTP/1.1\r\n${HOST}x-empty:\r\nauthorization:\r\nx-forwarded-for: 1\r\n\r\n`,
    [{ authorization: '', forwarded: '1' }],
  ],
  [
    'lists are joined, and of what is said once the first counts',
    `GET / HTTP/1.1\r\n${HOST}x-forwarded-for: 1\r\nauthorization: a\r\nX-Forwarded-For: 2\r\nauthorization: b\r\n\r\n`,
    [{ forwarded: '1, 2', authorization: 'a' }],
  ],
  [
    'another protocol may be asked for, and need not be spoken',
    `GET /u HTTP/1.1\r\n${HOST}upgrade: h2c\r\nconnection: upgrade\r\n\r\n${GET}`,
    [{ url: '/u' }, { url: '/g' }],
  ],
  [
    'also of a request with a body',
    `POST /u HTTP/1.1\r\n${HOST}upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\nhi${GET}`,
    [{ url: '/u', body: 'hi' }, { url: '/g' }],
  ],
  [
    'nothing follows a request that ends the connection',
    `GET /1 HTTP/1.1\r\n${HOST}connection: close\r\n\r\n${GET}`,
    [{ url: '/1' }],
  ],
]

describe('requests by the rules of HTTP', () => {
  test.each(SENTENCES)(
    'the HTTP server reads a request by the rules of HTTP: %s',
    async (_, text, requests) => {
      const { requests: found } = await sent(own.port, text)
      const last = text.includes('connection: close') ? [] : [{ url: '/last' }]
      expect(found.map((request) => JSON.parse(request))).toMatchObject([...requests, ...last])
    },
  )

  test('the HTTP server reads the same requests however their bytes are divided', async () => {
    const text = SENTENCES.slice(0, 9)
      .map(([, each]) => each)
      .join('')
    const whole = await sent(own.port, text)
    expect(whole.requests).toHaveLength(13)
    const everywhere = Array.from({ length: text.length }, (_, at) => at)
    expect(await sent(own.port, text, everywhere)).toEqual(whole)
    await fc.assert(
      fc.asyncProperty(fc.subarray(everywhere), async (cuts) => {
        expect(await sent(own.port, text, cuts)).toEqual(whole)
      }),
      { numRuns: 20 },
    )
  })

  test('trailers of a chunked body do not change the headers of its request', async () => {
    const text = `POST / HTTP/1.1\r\n${HOST}x-forwarded-for: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nauthorization: t\r\nx-forwarded-for: 2\r\n\r\n`
    const [request = ''] = (await sent(own.port, text)).requests
    expect(JSON.parse(request)).toEqual({ method: 'POST', url: '/', forwarded: '1', body: '' })
  })

  test('a request body that arrives in many reads is unchanged', async () => {
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, i) => 97 + (i % 26))).toString()
    const text = `POST / HTTP/1.1\r\n${HOST}content-length: 300000\r\n\r\n${body}`
    const { requests } = await sent(own.port, text, [10, 70, 100_000])
    expect(requests.map((request) => JSON.parse(request).body)).toEqual([body, ''])
  })
})

describe("comparison with Node's server", () => {
  const line = fc.constantFrom('GET / HTTP/1.1', 'POST /a HTTP/1.1', 'PUT /?x HTTP/1.1', 'DELETE * HTTP/1.1')
  const header = fc.constantFrom(
    'authorization: Bearer k',
    'x-forwarded-for: 1.2.3.4',
    'x: y',
    'Accept:',
    'connection: keep-alive',
    'content-type: application/json',
  )
  const body = fc.oneof(
    fc.constant(''),
    fc
      .string({ unit: 'binary-ascii', maxLength: 30 })
      .map((text) => `content-length: ${text.length}\r\n\r\n${text}`),
    fc
      .array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 9 }), { maxLength: 4 })
      .map(
        (chunks) =>
          `transfer-encoding: chunked\r\n\r\n${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`,
      ),
  )
  const request = fc
    .tuple(line, fc.array(header, { maxLength: 4 }), body)
    .map(
      ([first, headers, rest]) =>
        `${[first, 'host: x', ...headers].join('\r\n')}\r\n${rest === '' ? '\r\n' : rest}`,
    )
  const requests = fc.array(request, { minLength: 1, maxLength: 3 }).map((all) => all.join(''))
  const cuts = (text: string): fc.Arbitrary<number[]> =>
    fc.array(fc.nat(Math.max(0, text.length - 1)), { maxLength: 6 }).map((at) => at.toSorted((a, b) => a - b))

  test('the HTTP server reads the same requests as Node’s own server', async () => {
    await fc.assert(
      fc.asyncProperty(
        requests.chain((text) => fc.tuple(fc.constant(text), cuts(text))),
        async ([text, at]) => {
          const [ours, theirs] = await both(text, at)
          expect(ours).toEqual(theirs)
        },
      ),
      { numRuns: 150 },
    )
  })

  test('the HTTP server reads no more requests from damaged bytes than Node’s own server', {
    timeout: 300_000,
  }, async () => {
    const damage = fc.constantFrom(
      '',
      '\r',
      '\n',
      '\0',
      ' ',
      ':',
      '0',
      'ffffffffffffffff',
      'host: y\r\n',
      '\r\n',
    )
    await fc.assert(
      fc.asyncProperty(
        requests.chain((text) =>
          fc.tuple(fc.constant(text), fc.nat(text.length), fc.nat(3), damage, cuts(text)),
        ),
        async ([text, at, removed, put, where]) => {
          const damaged = text.slice(0, at) + put + text.slice(at + removed)
          const [ours, theirs] = await both(damaged, where, { isDamaged: true })
          expect(theirs.requests.slice(0, ours.requests.length)).toEqual(ours.requests)
          // Each request is answered; bytes after them are refused once, unless they are still incomplete.
          const { requests: understood, statuses } = ours
          expect(statuses.slice(0, understood.length).every((status) => status === 200)).toBe(true)
          expect(statuses.slice(understood.length).filter((status) => status < 400)).toEqual([])
          expect(statuses.length - understood.length).toBeLessThanOrEqual(1)
        },
      ),
      { numRuns: lawRuns(250) },
    )
  })
})
