import { randomBytes } from 'node:crypto'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse, CallOptions } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { paceMs } from '../fixtures/pace.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Less than the default, which takes much longer to fill. */
const LIMIT = 4 * 2 ** 20

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    options: { body_limit: LIMIT },
  }))
})
afterAll(() => fixture?.close())

const GOOD = JSON.stringify(ask('m'))
const post = (body: string | Buffer, options: CallOptions = {}): Promise<FullResponse> => {
  fixture.upstream.script('m', { kind: 'whole' })
  return fixture.chat('ann', body, options)
}

/**
 * Asserts the status, the error envelope, that no internals are shown, and that the upstream was not called.
 */
function refused(answer: FullResponse, status: number): FullResponse {
  expect(answer.status, answer.text.slice(0, 500)).toBe(status)
  const { error } = answer.json()
  expect(error).toMatchObject({
    message: expect.any(String),
    type: expect.any(String),
    code: expect.any(String),
  })
  expect(error.message).toMatch(/\(request id: [^()\s]+\)$/)
  expect(answer.text).not.toMatch(/node_modules|node:internal|\.ts\b|\bat \w+ \(|\/src\/|127\.0\.0\.1/)
  expect(answer.text.length).toBeLessThan(1000)
  expect(fixture.upstream.received('m')).toHaveLength(0)
  return answer
}

describe('bodies that are not a JSON object', () => {
  test.each([
    ['empty', ''],
    ['white space', '  \n '],
    ['cut off', GOOD.slice(0, -1)],
    ['with more after it', `${GOOD}}`],
    ['two values', `${GOOD}${GOOD}`],
    ['a trailing comma', `${GOOD.slice(0, -1)},}`],
    ['single quotes', "{'model':'m'}"],
    ['a comment', `{/* */${GOOD.slice(1)}`],
    ['NaN', GOOD.replace('{', '{"temperature":NaN,')],
    ['a leading zero', GOOD.replace('{', '{"seed":01,')],
    ['a raw line break in a string', GOOD.replace('hi', 'h\ni')],
    ['a bad escape', GOOD.replace('hi', '\\x41')],
    ['null', 'null'],
    ['a string', '"m"'],
    ['a number', '5'],
    ['an array', `[${GOOD}]`],
    ['true', 'true'],
    ['UTF-16', Buffer.from(GOOD, 'utf16le')],
    ['NUL bytes', Buffer.alloc(64)],
    ['invalid UTF-8', Buffer.from(GOOD.replace('hi', '\xff\xfe'), 'latin1')],
  ])('a body that is not a JSON object is a 400 invalid_request_error: %s', async (_, body) => {
    const answer = refused(await post(body), 400)
    expect(answer.json().error.type).toBe('invalid_request_error')
  })
})

describe('keys that appear twice at the top of a body', () => {
  test.each([
    ['model', `{"model":"m",${GOOD.slice(1)}`],
    ['messages', `{"messages":[],${GOOD.slice(1)}`],
    ['stream', `{"stream":true,"stream":false,${GOOD.slice(1)}`],
    ['model, written with an escape', `{"\\u006dodel":"other",${GOOD.slice(1)}`],
    ['unknown', `{"unknown":1,"unknown":1,${GOOD.slice(1)}`],
  ])('a key that appears twice at the top of a body is a 400: %s', async (_, body) => {
    expect(refused(await post(body), 400).json().error.type).toBe('invalid_request_error')
  })
})

test.each([1_000, 100_000])('a body nested %i levels deep is refused with 400, quickly', async (depth) => {
  const work = async (): Promise<number> => {
    const pace = paceMs()
    const started = performance.now()
    refused(await post(`{"x":${'['.repeat(depth)}${']'.repeat(depth)},${GOOD.slice(1)}`), 400)
    refused(await post(`{"x":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)},${GOOD.slice(1)}`), 400)
    refused(await post('['.repeat(depth)), 400)
    return (performance.now() - started) / Math.max(pace, paceMs())
  }
  // Other programs may halt one of the attempts, and not each of them.
  await expect.poll(work).toBeLessThan(200)
})

describe('the maximum size of a body', () => {
  // Many bodies at once overload a small machine, also for a moment afterwards.
  afterAll(async () => {
    for (let calm = 0; calm < 40; ) calm = (await post(GOOD)).status === 200 ? calm + 1 : 0
  })
  const padded = (bytes: number): string => {
    const head = '{"model":"m","messages":[{"role":"user","content":"'
    const tail = '"}]}'
    return `${head}${'a b '.repeat(bytes).slice(0, bytes - head.length - tail.length)}${tail}`
  }
  const tooLarge = (answer: FullResponse): void => {
    expect(refused(answer, 413).json().error.type).toBe('request_too_large')
  }
  test('a body of the maximum size is accepted', async () => {
    const body = padded(LIMIT)
    const answer = await post(body)
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('m').body.equals(Buffer.from(body))).toBe(true)
  })
  test('a body one byte above the maximum is a 413 request_too_large', async () =>
    tooLarge(await post(padded(LIMIT + 1))))
  test('the maximum body size applies to a body without a content-length', async () => {
    const path = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n'
    const connection = rawConnection(
      fixture.gateway.port,
      `${path}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(0x100000, 97), Buffer.from('\r\n')])
    for (let sent = 0; sent < LIMIT; sent += 0x100000) connection.socket.write(chunk)
    connection.socket.write('1\r\na\r\n')
    expect(await connection.until('request_too_large')).toMatch(/^HTTP\/1\.1 413 /)
    connection.socket.destroy()
  })
  test('the maximum body size is applied to the content-length, before the body is read', async () => {
    const path = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n'
    const connection = rawConnection(
      fixture.gateway.port,
      `${path}content-type: application/json\r\ncontent-length: ${LIMIT + 1}\r\n\r\n`,
    )
    expect(await connection.until('request_too_large')).toMatch(/^HTTP\/1\.1 413 /)
    connection.socket.destroy()
  })
  test('the maximum body size applies to the decompressed body', async () => {
    tooLarge(await post(gzipSync(padded(LIMIT + 1)), { headers: { 'content-encoding': 'gzip' } }))
    const answer = await post(gzipSync(padded(LIMIT)), { headers: { 'content-encoding': 'gzip' } })
    expect(answer.status, answer.text).toBe(200)
  })
  test('decompression of a compression bomb stops at the maximum body size', async () => {
    const member = gzipSync(Buffer.alloc(10 << 20))
    const bomb = Buffer.concat(Array.from({ length: 5 }, () => member))
    // A damaged end, which a reader that stops at the maximum does not notice.
    const NO_BLOCK = Buffer.from([0xff, 0xff, 0xff])
    const damaged = Buffer.concat([bomb, member.subarray(0, 10), NO_BLOCK])
    tooLarge(await post(damaged, { headers: { 'content-encoding': 'gzip' } }))
  })
  test('simultaneous compression bombs cannot exceed the memory for bodies: some are refused with a time to retry', async () => {
    const small = gzipSync(Buffer.alloc(LIMIT - 1, ' '))
    expect(small.length).toBeLessThan(100_000)
    const head =
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n' +
      `content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${small.length}\r\n\r\n`
    // All bytes except the last are sent: the bodies are decoded and stay in memory. All bodies together may
    // take 192 MiB, or four times the limit.
    const count = Math.ceil((192 * 2 ** 20) / LIMIT) + 4
    const bodies = Array.from({ length: count }, () => rawConnection(fixture.gateway.port, head))
    for (const { socket } of bodies) socket.write(small.subarray(0, -8))
    let refused = 0
    for (const body of bodies) {
      void body.until('"code":"overloaded"').then(
        () => (refused += 1),
        () => {},
      )
    }
    await expect.poll(() => refused).toBeGreaterThan(0)
    for (const { socket } of bodies) socket.destroy()
  })
})

describe('a body that arrives together with its head', () => {
  let small: Fixture
  beforeAll(async () => {
    small = await startFixture((upstream) => ({
      ...plainConfiguration(upstream.baseUrl('m')),
      options: { body_limit: '1KiB' },
    }))
  })
  afterAll(() => small?.close())

  const sent = (headers: string, body: string): RawConnection => {
    small.upstream.script('m', { kind: 'whole' })
    const head =
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\n'
    return rawConnection(small.gateway.port, `${head}${headers}\r\n\r\n${body}`)
  }
  const large = GOOD.replace('hi', 'hi '.repeat(600))

  test.each([
    ['with a content-length', `content-length: ${large.length}`, large],
    ['in chunks', 'transfer-encoding: chunked', `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`],
  ])(
    'a body above the maximum that arrives together with its head is a 413: %s',
    async (_, headers, body) => {
      const connection = sent(headers, body)
      expect(await connection.until('request_too_large')).toMatch(/^HTTP\/1\.1 413 /)
      connection.socket.destroy()
      expect(small.upstream.received('m')).toHaveLength(0)
    },
  )

  test('a client that expects a 100 gets it, although its body has arrived together with its head', async () => {
    const connection = sent(`expect: 100-continue\r\ncontent-length: ${GOOD.length}`, GOOD)
    expect(await connection.until('HTTP/1.1 200 ')).toMatch(/^HTTP\/1\.1 100 Continue\r\n/)
    connection.socket.destroy()
  })
})

describe('the content encoding of a body', () => {
  test.each([
    ['gzip', gzipSync(GOOD)],
    ['x-gzip', gzipSync(GOOD)],
    ['GZIP', gzipSync(GOOD)],
    ['br', brotliCompressSync(GOOD)],
    ['deflate', deflateSync(GOOD)],
    ['zstd', zstdCompressSync(GOOD)],
    ['identity', Buffer.from(GOOD)],
  ])('a body encoded as %s is accepted, and the upstream gets the decoded bytes', async (encoding, body) => {
    const answer = await post(body, { headers: { 'content-encoding': encoding } })
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('m').text).toBe(GOOD)
    expect(fixture.upstream.only('m').headers['content-encoding'] ?? 'identity').toBe('identity')
  })
  test.each(['compress', 'x-unknown', 'gzip, gzip', 'gzip, compress'])(
    'a body encoded as %s is a 415',
    async (encoding) => {
      refused(await post(gzipSync(GOOD), { headers: { 'content-encoding': encoding } }), 415)
    },
  )
  test.each(['gzip', 'br', 'deflate', 'zstd'])('a body with invalid %s is a 400', async (encoding) => {
    refused(await post(Buffer.from(GOOD), { headers: { 'content-encoding': encoding } }), 400)
  })
  test('a compressed body that is cut off is a 400', async () => {
    const whole = gzipSync(GOOD)
    refused(await post(whole.subarray(0, whole.length - 9), { headers: { 'content-encoding': 'gzip' } }), 400)
  })
})

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/vnd.odd+json; charset=utf-8',
  'rubbish',
])('a body of the content type %s is accepted', async (type) => {
  const answer = await post(GOOD, { headers: { 'content-type': type } })
  expect(answer.status).toBeOneOf([200, 400, 415])
})

describe('a wrong content-length', () => {
  const head = (length: number): string =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

  test('a request whose content-length is too small, so that its JSON is cut off, is a 400', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(fixture.gateway.port, `${head(20)}${GOOD}`)
    expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    connection.socket.destroy()
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
  test('a request that ends before its content-length causes no upstream request, and later requests are answered', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const connection = rawConnection(fixture.gateway.port, `${head(5000)}${GOOD}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    connection.socket.end()
    await connection.closed()
    expect(fixture.upstream.received('m')).toHaveLength(0)
    expect((await post(GOOD)).status).toBe(200)
  })
  test.each([
    ['two lengths', 'content-length: 5\r\ncontent-length: 6\r\n'],
    ['a length and chunks', 'content-length: 5\r\ntransfer-encoding: chunked\r\n'],
    ['an unknown transfer encoding', 'transfer-encoding: xchunked\r\n'],
  ])('requests with %s are refused, and not sent upstream', async (_, headers) => {
    fixture.upstream.script('m', { kind: 'whole' })
    const text = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n${headers}\r\n5\r\nhello\r\n0\r\n\r\n`
    expect(await rawConnection(fixture.gateway.port, text).closed()).toMatch(/^HTTP\/1\.1 [45]\d\d /)
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
})

test('after requests with wrong content-lengths the gateway answers valid ones', async () => {
  expect((await post(GOOD)).status).toBe(200)
})

test('compressed bodies of any size may follow each other on a connection', async () => {
  // Random letters hardly compress.
  const body = JSON.stringify(ask('m', { user: randomBytes(100_000).toString('base64') }))
  fixture.upstream.script('m', { kind: 'whole' })
  for (const length of [50_000, 100_000, body.length]) {
    const bytes = gzipSync(body.slice(0, length))
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length}\r\n`
    const connection = rawConnection(fixture.gateway.port, Buffer.concat([Buffer.from(`${head}\r\n`), bytes]))
    await connection.until('}')
    connection.socket.write(Buffer.concat([Buffer.from(`${head}connection: close\r\n\r\n`), bytes]))
    expect((await connection.closed()).match(/HTTP\/1\.1 \d/g)).toHaveLength(2)
  }
})

test('bytes after the end of a compressed body do not keep its connection from being used again', async () => {
  fixture.upstream.script('m', { kind: 'whole' })
  const bytes = Buffer.concat([gzipSync(JSON.stringify(ask('m'))), randomBytes(400_000)])
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length}\r\n`
  const connection = rawConnection(fixture.gateway.port, Buffer.concat([Buffer.from(`${head}\r\n`), bytes]))
  await connection.until('}')
  connection.socket.write(Buffer.concat([Buffer.from(`${head}connection: close\r\n\r\n`), bytes]))
  expect((await connection.closed()).match(/HTTP\/1\.1 \d/g)).toHaveLength(2)
})
