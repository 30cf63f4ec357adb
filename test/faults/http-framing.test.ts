import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPTIONS } from '../../src/domain/options.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { ask, retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { BODY, CHAT, lengthOf, MISFRAMED, post } from './ambiguous-requests.ts'

const LIMIT = OPTIONS.body_limit.default
const MESSAGES = '/v1/messages'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: { ...priced(['m']), n: { vendor: 'acme', price: PLAIN_PRICE } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('n', upstream.baseUrl('n'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('also')])],
  }))
})
afterAll(() => fixture?.close())

/** Sends bytes, and settles with the response once the gateway has closed the connection. */
async function sent(bytes: string | Buffer): Promise<string> {
  fixture.upstream.script('m', { kind: 'whole' })
  return rawConnection(fixture.gateway.port, bytes).closed()
}

describe('ambiguous framing', () => {
  test.each(MISFRAMED)(
    'a request with ambiguous framing is refused, and its connection closed: %s',
    async (_, bytes, status) => {
      const answer = await sent(bytes)
      expect(answer.slice(0, 20)).toMatch(/^HTTP\/1\.1 /)
      expect(answer.slice(9, 12)).toMatch(status)
      // There is one response only: bytes after an unreadable head are not another request.
      expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
      expect(answer).not.toMatch(/node_modules|node:internal|\n\s+at |HPE_/)
      expect(fixture.upstream.received('m')).toHaveLength(0)
    },
  )

  test('101 headers are refused as too many, and none is dropped silently', async () => {
    const headers = Array.from({ length: 97 }, (_, i) => `x-${i}: y\r\n`).join('')
    const fits = post(`connection: close\r\n${headers.replace('x-0: y\r\n', '')}${lengthOf(BODY)}`, BODY)
    expect(await sent(fits)).toMatch(/^HTTP\/1\.1 200 /)
    const tooMany = post(`${headers}connection: close\r\nx-last: y\r\n${lengthOf(BODY)}`, BODY)
    const answer = await sent(tooMany)
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toContain('headers_too_large')
  })

  test('an HTTP/1.0 request needs no host header', async () => {
    const head = `POST ${CHAT} HTTP/1.0\r\nauthorization: Bearer sk-ann\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.each([
    ['CONNECT', /^$|^HTTP\/1\.1 40\d /],
    ['TRACE', /^HTTP\/1\.1 405 /],
    ['OPTIONS', /^HTTP\/1\.1 405 /],
    ['PUT', /^HTTP\/1\.1 405 /],
    ['PURGE', /^HTTP\/1\.1 405 /],
  ])('an HTTP request with %s is refused', async (method, status) => {
    const bytes = `${method} ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\nconnection: close\r\n\r\n`
    const answer = await sent(bytes)
    expect(answer).toMatch(status)
    expect(answer).not.toContain('sk-ann')
  })

  test('an absolute URL of another server is refused', async () => {
    const head = `POST http://127.0.0.1:${fixture.upstream.port}/m${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\nconnection: close\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 404 /)
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
})

test('three pipelined requests are answered in order, each authenticated by its own key', async () => {
  const slow = new Promise((resolve) => setTimeout(resolve, 100))
  fixture.upstream.script(
    'm',
    { kind: 'whole', content: 'first', after: slow },
    { kind: 'whole', content: 'third' },
  )
  const requests = ['ann', 'nobody', 'also'].map((key, i) =>
    post(`${lengthOf(BODY)}${i === 2 ? 'connection: close\r\n' : ''}`, BODY, CHAT, key),
  )
  const answer = await rawConnection(fixture.gateway.port, Buffer.concat(requests)).closed()
  const [first = '', second = '', third = ''] = answer.split(/(?=HTTP\/1\.1 )/)
  expect([first, second, third].map((each) => each.slice(9, 12))).toEqual(['200', '401', '200'])
  expect(first).toContain('first')
  expect(third).toContain('third')
  const database = databaseOf(fixture.gateway.dataDir)
  const owners = [first, third].map(
    (each) => database.usageOf(/x-request-id: (\S+)/.exec(each)?.[1] ?? '')?.token_id,
  )
  expect(owners).toEqual([database.token('token-ann').id, database.token('token-also').id])
})

describe('a client that sends Expect: 100-continue', () => {
  const expecting = (length: number, key = 'ann', more = ''): Buffer =>
    post(
      `content-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\n${more}`,
      '',
      CHAT,
      key,
    )

  test('a client that sends Expect: 100-continue gets it, and then its response', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(fixture.gateway.port, expecting(BODY.length))
    expect(await connection.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    connection.socket.write(BODY)
    expect(await connection.until('chatcmpl')).toContain('HTTP/1.1 200 OK')
    connection.socket.destroy()
  })
  test('an HTTP/1.0 client that sends Expect: 100-continue gets its response without an interim response 100', async () => {
    const head = `POST ${CHAT} HTTP/1.0\r\nauthorization: Bearer sk-ann\r\nexpect: 100-continue\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 200 /)
  })
  test.each([
    ['whose key is unknown', expecting(BODY.length, 'nobody'), 401],
    ['whose body would be too large', expecting(LIMIT + 1), 413],
    ['whose body would be 10 GB', expecting(10_000_000_000), 413],
    ['whose body is no JSON', expecting(20, 'ann', 'content-encoding: rar\r\n'), 415],
  ])('a request %s is refused at once, without 100 Continue', async (_, bytes, status) => {
    const answer = await rawConnection(fixture.gateway.port, bytes).closed()
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).not.toContain('100 Continue')
  })
})

describe('the size of a messages body', () => {
  const padded = (bytes: number): string => {
    const [head = '', tail = ''] = JSON.stringify(
      ask('n', { max_tokens: 5, messages: [{ role: 'user', content: '◊' }] }),
    ).split('◊')
    return head + 'a b '.repeat(bytes / 4).slice(0, bytes - head.length - tail.length) + tail
  }
  const MESSAGE =
    '{"id":"msg_1","type":"message","role":"assistant","model":"n","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'

  test('a messages body of the maximum size is accepted', async () => {
    fixture.upstream.script('n', { kind: 'whole', body: MESSAGE })
    const answer = await fixture.chat('ann', padded(LIMIT), { path: MESSAGES })
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('n').body).toHaveLength(LIMIT)
  })
  test('a messages body one byte above the maximum is 413 read_request_body_failed', async () => {
    const answer = await fixture.chat('ann', padded(LIMIT + 1), { path: MESSAGES })
    expect(answer.status).toBe(413)
    expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'read_request_body_failed' })
  })
  test('a messages request with a content-length of 10 GB is refused with 413 before its body is complete', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const answer = await rawConnection(
      fixture.gateway.port,
      post('content-length: 10000000000\r\nconnection: close\r\n', BODY, MESSAGES),
    ).until('read_request_body_failed')
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('a body in chunks of one byte', () => {
  const singly = (text: string): string =>
    `${[...Buffer.from(text)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')}0\r\n\r\n`
  const headers = 'content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n'

  test('a request body in chunks of one byte reaches the upstream unchanged', async () => {
    const answer = await sent(
      post(headers, Buffer.from(singly(JSON.stringify(ask('m', { user: 'naïve 😀' }))), 'latin1')),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(fixture.upstream.only('m').text).toBe(JSON.stringify(ask('m', { user: 'naïve 😀' })))
  })
  test('a body in chunks of one byte is read to its end, and delays no other call', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(fixture.gateway.port, post(headers, `1\r\n{\r\n`))
    connection.socket.write('1\r\n \r\n'.repeat(100_000))
    expect((await retryWhileOverloaded(() => fixture.chat('ann', BODY))).status).toBe(200)
    connection.socket.write('1\r\n}\r\n0\r\n\r\n')
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 /)
  })
})
