import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodyOf, type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'

let own: OwnServer
beforeAll(async () => {
  own = await startOwnServer((request, response) => {
    void bodyOf(request).then(
      (body) => {
        const { method, url, headers } = request
        response.writeHead(200, {}).end(JSON.stringify([method, url, headers.host, body.toString()]))
      },
      () => {},
    )
  })
})
afterAll(() => own[Symbol.dispose]())

/** Sends a request and a last one that closes the connection; returns everything that the server sent. */
async function said(request: string): Promise<{ statuses: number[]; answer: string }> {
  const last = 'GET /last HTTP/1.1\r\nhost: last\r\nconnection: close\r\n\r\n'
  const answer = await rawConnection(own.port, request + last).closed()
  return {
    statuses: [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
    answer,
  }
}

const CHUNKS = '5\r\nhello\r\n0\r\n\r\n'
const coded = (...lines: string[]): string =>
  `POST /c HTTP/1.1\r\nhost: x\r\n${lines.join('\r\n')}\r\n\r\n${CHUNKS}`
const TE = 'Transfer-Encoding:'

describe('Transfer-Encoding', () => {
  test.each([
    ['empty', coded(TE)],
    ['blank', coded(`${TE} \t `)],
    ['empty, beside a length', coded(TE, 'content-length: 15')],
    ['a comma', coded(`${TE} ,`)],
    ['chunked after a comma', coded(`${TE} ,chunked`)],
    ['chunked before a comma', coded(`${TE} chunked,`)],
    ['chunked twice in a line', coded(`${TE} chunked, chunked`)],
    ['chunked in two lines', coded(`${TE} chunked`, `${TE} chunked`)],
    ['repeated, empty at first', coded(TE, `${TE} chunked`)],
    ['repeated, empty at last', coded(`${TE} chunked`, TE)],
    ['repeated with an unknown coding', coded(`${TE} gzip`, `${TE} chunked`)],
    ['not chunked at its end', coded(`${TE} chunked, gzip`)],
    ['in quotes', coded(`${TE} "chunked"`)],
    ['of two words', coded(`${TE} chunked gzip`)],
    ['there beside a length', coded(`${TE} gzip`, 'content-length: 15')],
  ])(
    'a request with a Transfer-Encoding that is %s gets a 400, and nothing after the request is read',
    async (_, request) => {
      expect((await said(request)).statuses).toEqual([400])
    },
  )

  test.each(['gzip', 'gzip, chunked', 'identity', 'xchunked', 'chunked;q=1', 'deflate;x=y, chunked'])(
    'a request with an unsupported Transfer-Encoding gets a 501, and nothing after it is read: %s',
    async (coding) => {
      const { statuses, answer } = await said(coded(`${TE} ${coding}`))
      expect(statuses).toEqual([501])
      expect(answer).toMatch(/^connection: close\r$/m)
      expect(answer).toContain('chunked is the only transfer coding that is supported')
    },
  )

  test.each(['chunked', 'Chunked', 'CHUNKED', '  chunked  '])(
    'a request with the Transfer-Encoding chunked is accepted in any spelling: %j',
    async (coding) => {
      const { statuses, answer } = await said(coded(`${TE}${coding}`))
      expect(statuses).toEqual([200, 200])
      expect(answer).toContain('["POST","/c","x","hello"]')
    },
  )
})

const hosted = (host: string, target = '/'): string => `GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`

describe('a Host header', () => {
  test.each([
    'x/y',
    '/',
    'x?y',
    'user@x',
    '@',
    'x y',
    'x,y z',
    'x#y',
    'x\\y',
    'x:80:80',
    'x:8a',
    '[::1',
    '::1',
    '<x>',
    'x"',
    'ä',
  ])('a request with the invalid Host header %j gets a 400', async (host) =>
    expect((await said(hosted(host))).statuses).toEqual([400]),
  )
  test.each([
    'x',
    'X.example',
    'x:80',
    'x:',
    '',
    '127.0.0.1:3000',
    '[::1]',
    '[::1]:3000',
    '[fe80::1%25eth0]',
    'a_b.x',
    'x%20y',
  ])('a request with the valid Host header %j is accepted', async (host) =>
    expect((await said(hosted(host))).statuses).toEqual([200, 200]),
  )
})

describe('an absolute address', () => {
  test.each([
    ['http://a/p/q?x=1', ['/p/q?x=1', 'a']],
    ['http://a:3000/', ['/', 'a:3000']],
    ['HTTP://A', ['/', 'A']],
    ['https://a?x', ['/?x', 'a']],
    ['http://[::1]:80/v1', ['/v1', '[::1]:80']],
  ])(
    'a request for the absolute URL %s is served by the path and host of this URL, whatever its Host header is',
    async (target, [url, host] = []) => {
      const { statuses, answer } = await said(hosted('other', target))
      expect(statuses).toEqual([200, 200])
      expect(answer).toContain(JSON.stringify(['GET', url, host, '']))
    },
  )

  test.each([
    'http://',
    'http:///v1',
    'http://user:pass@a/',
    'http://a@b/',
    'http://a b/',
    'ftp://a/',
    'http:/a',
    'a/b',
    'a:80',
  ])('a request for the invalid absolute URL %s gets a 400', async (target) =>
    expect((await said(hosted('x', target))).statuses).toEqual([400]),
  )

  test('a request with an absolute URL as its target is refused with a 400 if its Host header is missing or invalid', async () => {
    expect((await said('GET http://a/ HTTP/1.1\r\n\r\n')).statuses).toEqual([400])
    expect((await said(hosted('x@y', 'http://a/'))).statuses).toEqual([400])
  })
})

test('a refused HEAD request gets a response without a body', async () => {
  const { answer } = await said('HEAD / HTTP/1.1\r\nhost: x@y\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe('')
})
