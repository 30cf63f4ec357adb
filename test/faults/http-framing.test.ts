import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { rawConnection } from '../equipment/raw-socket.ts'
import { ask, patiently, type Stage, setStage } from '../equipment/stage.ts'

const LIMIT = 33_554_432
const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

let stage: Stage
beforeAll(async () => {
  stage = await setStage((upstream) => ({
    options: { retries: 0 },
    models: { ...priced(['m']), n: { vendor: 'acme', price: PLAIN_PRICE } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('n', upstream.baseUrl('n'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('also')])],
  }))
})
afterAll(() => stage?.close())

const BODY = JSON.stringify(ask('m'))

/** A request's bytes; `headers` are lines, each with its end. */
function post(headers: string, body: string | Buffer = '', path = CHAT, key = 'ann'): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\n${headers}\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

const lengthOf = (body: string): string => `content-length: ${Buffer.byteLength(body)}\r\n`

/** Sends bytes, and settles with what came back until the gateway closed. */
async function sent(bytes: string | Buffer): Promise<string> {
  stage.upstream.script('m', { kind: 'whole' })
  return rawConnection(stage.gateway.port, bytes).closed()
}

describe('what parties on the way could read in another way is refused, and the connection closed:', () => {
  const framed = (headers: string): Buffer => post(headers, '5\r\nhello\r\n0\r\n\r\n')
  const whole = (head: string): string =>
    `${head}content-type: application/json\r\n${lengthOf(BODY)}\r\n${BODY}`
  const authorized = `authorization: Bearer sk-ann\r\n`
  const cases: [string, string | Buffer, RegExp][] = [
    ['a length and chunks', framed('content-length: 5\r\ntransfer-encoding: chunked\r\n'), /400/],
    ['chunks and a length', framed('transfer-encoding: chunked\r\ncontent-length: 5\r\n'), /400/],
    ['two lengths', framed('content-length: 5\r\ncontent-length: 6\r\n'), /400/],
    ['the same length twice', framed('content-length: 5\r\ncontent-length: 5\r\n'), /400/],
    ['two lengths in one line', framed('content-length: 5, 5\r\n'), /400/],
    ['a length below zero', framed('content-length: -5\r\n'), /400/],
    ['a length with a sign', framed('content-length: +5\r\n'), /400/],
    ['a length in hexadecimal', framed('content-length: 0x5\r\n'), /400/],
    ['a length beyond 64 bits', framed('content-length: 18446744073709551621\r\n'), /400/],
    ['xchunked', framed('transfer-encoding: xchunked\r\n'), /400|501/],
    ['chunked, then something', framed('transfer-encoding: chunked, identity\r\n'), /400|501/],
    ['chunked with a tab', framed('transfer-encoding:\x0bchunked\r\n'), /400/],
    ['a chunk of a bad size', post('transfer-encoding: chunked\r\n', 'zz\r\nhello\r\n0\r\n\r\n'), /400/],
    ['a chunk size with a sign', post('transfer-encoding: chunked\r\n', '+5\r\nhello\r\n0\r\n\r\n'), /400/],
    ['a chunk size of 20 digits', post('transfer-encoding: chunked\r\n', `${'f'.repeat(20)}\r\n`), /400/],
    [
      'a chunk that is longer than it says',
      post('transfer-encoding: chunked\r\n', '2\r\nhello\r\n0\r\n\r\n'),
      /400/,
    ],
    [
      'a chunk extension of a megabyte',
      post('transfer-encoding: chunked\r\n', `5;x=${'y'.repeat(1 << 20)}\r\nhello\r\n0\r\n\r\n`),
      /400|413/,
    ],
    ['lines that end in a bare LF', whole(`POST ${CHAT} HTTP/1.1\nhost: x\n${authorized}`), /400/],
    ['a folded header', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\r\n c\r\n`), /400/],
    ['NUL in a header', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\0c\r\n`), /400/],
    [
      'a bare CR in a header',
      whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\rx-b: c\r\n`),
      /400/,
    ],
    [
      'white space before a colon',
      whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a : b\r\n`),
      /400/,
    ],
    ['a header without a name', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}: b\r\n`), /400/],
    ['two hosts', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nHost: y\r\n${authorized}`), /400/],
    ['the same host twice', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nhost: x\r\n${authorized}`), /400/],
    ['no host', whole(`POST ${CHAT} HTTP/1.1\r\n${authorized}`), /400/],
    [
      'a header of 17 KB',
      whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: ${'b'.repeat(17_000)}\r\n`),
      /431/,
    ],
    [
      'an address of 17 KB',
      whole(`POST ${CHAT}?${'b'.repeat(17_000)} HTTP/1.1\r\nhost: x\r\n${authorized}`),
      /431|414/,
    ],
    [
      '2,500 headers',
      whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}${'a: b\r\n'.repeat(2500)}`),
      /431/,
    ],
    ['HTTP/0.9', `GET ${CHAT}\r\n\r\n`, /400/],
    ['HTTP/1.2', whole(`POST ${CHAT} HTTP/1.2\r\nhost: x\r\n${authorized}`), /400|505/],
    ['HTTP/2 as it begins', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /400|405|505/],
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex'), /400/],
    ['a method in small letters', whole(`post ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}`), /400/],
    ['a space in the address', whole(`POST ${CHAT} x HTTP/1.1\r\nhost: x\r\n${authorized}`), /400/],
    [
      'an expectation that nobody knows',
      whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}expect: x\r\nconnection: close\r\n`),
      /417/,
    ],
  ]
  test.each(cases)('%s', async (_, bytes, status) => {
    const answer = await sent(bytes)
    expect(answer.slice(0, 20)).toMatch(/^HTTP\/1\.1 /)
    expect(answer.slice(9, 12)).toMatch(status)
    // One answer: what follows a head that is not understood is no further request.
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(answer).not.toMatch(/node_modules|node:internal|\n\s+at |HPE_/)
    expect(stage.upstream.received('m')).toHaveLength(0)
  })

  test('101 headers are told to be too many, none of them is left out in silence', async () => {
    const headers = Array.from({ length: 97 }, (_, i) => `x-${i}: y\r\n`).join('')
    const fits = post(`connection: close\r\n${headers.replace('x-0: y\r\n', '')}${lengthOf(BODY)}`, BODY)
    expect(await sent(fits)).toMatch(/^HTTP\/1\.1 200 /)
    const tooMany = post(`${headers}connection: close\r\nx-last: y\r\n${lengthOf(BODY)}`, BODY)
    const answer = await sent(tooMany)
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toContain('headers_too_large')
  })

  test('a request of HTTP/1.0 needs no host', async () => {
    const head = `POST ${CHAT} HTTP/1.0\r\nauthorization: Bearer sk-ann\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.each([
    ['CONNECT', /^$|^HTTP\/1\.1 40\d /],
    ['TRACE', /^HTTP\/1\.1 405 /],
    ['OPTIONS', /^HTTP\/1\.1 405 /],
    ['PUT', /^HTTP\/1\.1 405 /],
    ['PURGE', /^HTTP\/1\.1 405 /],
  ])('%s is not served', async (method, status) => {
    const bytes = `${method} ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\nconnection: close\r\n\r\n`
    const answer = await sent(bytes)
    expect(answer).toMatch(status)
    expect(answer).not.toContain('sk-ann')
  })

  test('the address of another server is nothing of ours', async () => {
    const head = `POST http://127.0.0.1:${stage.upstream.port}/m${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\nconnection: close\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 404 /)
    expect(stage.upstream.received('m')).toHaveLength(0)
  })
})

test('three requests sent at once are answered in their order, each as its own key', async () => {
  const slow = new Promise((resolve) => setTimeout(resolve, 100))
  stage.upstream.script(
    'm',
    { kind: 'whole', content: 'first', after: slow },
    { kind: 'whole', content: 'third' },
  )
  const requests = ['ann', 'nobody', 'also'].map((key, i) =>
    post(`${lengthOf(BODY)}${i === 2 ? 'connection: close\r\n' : ''}`, BODY, CHAT, key),
  )
  const answer = await rawConnection(stage.gateway.port, Buffer.concat(requests)).closed()
  const [first = '', second = '', third = ''] = answer.split(/(?=HTTP\/1\.1 )/)
  expect([first, second, third].map((each) => each.slice(9, 12))).toEqual(['200', '401', '200'])
  expect(first).toContain('first')
  expect(third).toContain('third')
  const database = databaseOf(stage.gateway.dataDir)
  const owners = [first, third].map(
    (each) => database.usageOf(/x-request-id: (\S+)/.exec(each)?.[1] ?? '')?.token_id,
  )
  expect(owners).toEqual([database.token('token-ann').id, database.token('token-also').id])
})

describe('a caller who asks leave to send its body', () => {
  const expecting = (length: number, key = 'ann', more = ''): Buffer =>
    post(
      `content-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\n${more}`,
      '',
      CHAT,
      key,
    )

  test('gets it, and then its answer', async () => {
    stage.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(stage.gateway.port, expecting(BODY.length))
    expect(await connection.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    connection.socket.write(BODY)
    expect(await connection.until('chatcmpl')).toContain('HTTP/1.1 200 OK')
    connection.socket.destroy()
  })
  test('in HTTP/1.0 gets its answer alone', async () => {
    const head = `POST ${CHAT} HTTP/1.0\r\nauthorization: Bearer sk-ann\r\nexpect: 100-continue\r\n${lengthOf(BODY)}\r\n`
    expect(await sent(head + BODY)).toMatch(/^HTTP\/1\.1 200 /)
  })
  test.each([
    ['whose key is none', expecting(BODY.length, 'nobody'), 401],
    ['whose body would be too large', expecting(LIMIT + 1), 413],
    ['whose body would be 10 GB', expecting(10_000_000_000), 413],
    ['whose body is no JSON', expecting(20, 'ann', 'content-encoding: rar\r\n'), 415],
  ])('but one %s is told so at once, and nothing else', async (_, bytes, status) => {
    const answer = await rawConnection(stage.gateway.port, bytes).closed()
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

  test('of 33,554,432 bytes is accepted', async () => {
    stage.upstream.script('n', { kind: 'whole', body: MESSAGE })
    const answer = await stage.chat('ann', padded(LIMIT), { path: MESSAGES })
    expect(answer.status, answer.text).toBe(200)
    expect(stage.upstream.only('n').body).toHaveLength(LIMIT)
  })
  test('passed by one byte is 413 read_request_body_failed', async () => {
    const answer = await stage.chat('ann', padded(LIMIT + 1), { path: MESSAGES })
    expect(answer.status).toBe(413)
    expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'read_request_body_failed' })
  })
  test('is as small as its end says, though its length was to be 10 GB', async () => {
    stage.upstream.script('m', { kind: 'whole' })
    const answer = await rawConnection(
      stage.gateway.port,
      post('content-length: 10000000000\r\nconnection: close\r\n', BODY, MESSAGES),
    ).until('read_request_body_failed')
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('a body in chunks of one byte', () => {
  const singly = (text: string): string =>
    `${[...Buffer.from(text)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')}0\r\n\r\n`
  const headers = 'content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n'

  test('arrives as it is', async () => {
    const answer = await sent(
      post(headers, Buffer.from(singly(JSON.stringify(ask('m', { user: 'naïve 😀' }))), 'latin1')),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(stage.upstream.only('m').text).toBe(JSON.stringify(ask('m', { user: 'naïve 😀' })))
  })
  test('is read to its end, and no other call waits for it', async () => {
    stage.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(stage.gateway.port, post(headers, `1\r\n{\r\n`))
    connection.socket.write('1\r\n \r\n'.repeat(100_000))
    expect((await patiently(() => stage.chat('ann', BODY))).status).toBe(200)
    connection.socket.write('1\r\n}\r\n0\r\n\r\n')
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 /)
  })
})
