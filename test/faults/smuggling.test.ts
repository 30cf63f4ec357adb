import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type FullResponse, type CallOptions, retryWhileShed } from '../fixtures/client.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m', 'claude', 'other']),
    channels: [
      channel('m', upstream.baseUrl('m'), { headers: { 'x-of-the-operator': 'yes' } }),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      channel('other', upstream.baseUrl('other')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob', { model_limits: 'other' })])],
  }))
})
afterAll(() => fixture?.close())

const BODY = JSON.stringify(ask('m'))

/**
 * The headers that an upstream may see; the values in the last lines are the client's, the others the
 * gateway's.
 */
const FOR_CHAT = `accept accept-encoding authorization connection content-length content-type host
  x-gateway-via x-of-the-operator`.split(/\s+/)
const FOR_MESSAGES =
  `accept accept-encoding anthropic-beta anthropic-version connection content-length content-type host
  vendor-version x-api-key x-gateway-via`.split(/\s+/)

const SMUGGLED: Record<string, string> = {
  'x-api-key': 'sk-ann',
  'proxy-authorization': 'Basic canary',
  'proxy-connection': 'keep-alive',
  'keep-alive': 'timeout=1000',
  te: 'trailers',
  upgrade: 'websocket',
  connection: 'x-of-the-operator, authorization',
  forwarded: 'for=canary',
  'x-forwarded-for': '10.0.0.1',
  'x-forwarded-host': 'canary',
  'x-real-ip': '10.0.0.1',
  via: '1.1 canary',
  cookie: 'session=canary',
  referer: 'http://canary/',
  origin: 'http://canary',
  'user-agent': 'canary',
  'accept-language': 'canary',
  'openai-organization': 'canary',
  'openai-project': 'canary',
  'x-of-the-operator': 'canary',
  'x-stainless-lang': 'canary',
  'gateway-user': '1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  baggage: 'canary=1',
  'x-anything': 'canary',
  'content-encoding': 'identity',
  accept: 'canary/*',
  'accept-encoding': 'gzip',
}

function head(path: string, length: number, more: readonly string[] = []): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: evil.test',
    'authorization: Bearer sk-ann',
    'content-type: application/json',
    `content-length: ${length}`,
    ...more,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

/**
 * Milliseconds without further bytes after the expected responses that show that there are no more responses.
 */
const QUIET_MS = 700

/** Sends bytes, to which this number of responses is expected; settles with everything received. */
async function exchangeBytes(bytes: string, answers = 1): Promise<string> {
  const { text } = await retryWhileShed(async () => {
    const connection = rawConnection(fixture.gateway.port, Buffer.from(bytes, 'latin1'))
    const { socket } = connection
    let heard = ''
    socket.on('data', (chunk: Buffer) => {
      const before = answersIn(heard).length
      heard += chunk.toString('latin1')
      const isAnswered = before < answers && answersIn(heard).length >= answers
      if (isAnswered) socket.setTimeout(QUIET_MS, () => socket.destroy())
    })
    return { text: await connection.closed() }
  })
  return text
}

function chat(body: object, options?: CallOptions): Promise<FullResponse> {
  return retryWhileShed(() => fixture.chat('ann', body, options))
}

function answersIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

function receivedAnywhere(): Received[] {
  return ['m', 'claude', 'other'].flatMap((lane) => fixture.upstream.received(lane))
}

function scripted(): void {
  for (const lane of ['m', 'claude', 'other']) fixture.upstream.script(lane, { kind: 'whole' })
}

describe('the client headers that an upstream gets', () => {
  const names = (request: Received): string[] => Object.keys(request.headers).toSorted()

  test("the upstream gets none of the client's headers on chat completions", async () => {
    scripted()
    const answer = await chat(ask('m'), { headers: SMUGGLED })
    expect(answer.status, answer.text).toBe(200)
    const request = fixture.upstream.only('m')
    expect(names(request)).toEqual(FOR_CHAT)
    expect(request.headers).toMatchObject({
      authorization: 'Bearer upstream-key-of-m',
      host: `127.0.0.1:${fixture.upstream.port}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'x-of-the-operator': 'yes',
    })
    expect(JSON.stringify(request.headers)).not.toMatch(/canary|sk-ann|10\.0\.0\.1/)
  })

  test("the upstream gets only the version and beta features of a messages client's headers, and only valid values of these", async () => {
    scripted()
    const body = { ...ask('claude'), max_tokens: 10 }
    const headers = { ...SMUGGLED, 'anthropic-beta': 'context-1m', 'anthropic-version': '2024-01-01' }
    await chat(body, { path: '/v1/messages', headers })
    const request = fixture.upstream.only('claude')
    expect(names(request)).toEqual(FOR_MESSAGES)
    expect(request.headers).toMatchObject({
      'x-api-key': 'upstream-key-of-claude',
      'anthropic-beta': 'context-1m',
      'anthropic-version': '2024-01-01',
    })
    expect(JSON.stringify(request.headers)).not.toMatch(/canary|sk-ann|10\.0\.0\.1/)
    scripted()
    const strange = { 'anthropic-beta': 'caf\u00e9', 'vendor-version': 'x'.repeat(2_000) }
    await chat(body, { path: '/v1/messages', headers: strange })
    const { headers: sent } = fixture.upstream.only('claude')
    expect(sent['anthropic-beta']).toBeUndefined()
    expect(sent['vendor-version']).toBe('2023-06-01')
  })

  test("the upstream gets nothing of the client's path and query", async () => {
    scripted()
    await chat(ask('m'), { path: '/v1/chat/completions?path=../../admin&key=canary#x' })
    expect(fixture.upstream.only('m').path).toBe('/v1/chat/completions')
    for (const model of ['../../admin', 'm?x=1', 'm#', 'm%2f..', 'm\r\nx: y', '@evil.test', 'm\u0000']) {
      scripted()
      expect((await chat(ask(model))).status).toBeOneOf([400, 503])
      expect(receivedAnywhere()).toHaveLength(0)
    }
  })
})

describe('a header with a line break', () => {
  test.each([
    ['a bare CR', 'anthropic-beta: a\rx-injected: b'],
    ['CR at the end', 'anthropic-beta: a\r\r'],
    ['NUL', 'anthropic-beta: a\0b'],
    ['a folded line', 'anthropic-beta: a\r\n x-injected: b'],
    ['a space in the name', 'x injected: b'],
    ['a space before the colon', 'x-injected : b'],
    ['no colon', 'x-injected'],
    ['no name', ': b'],
    ['a letter that is none', 'x-inj\u00e9cted: b'],
  ])('a header with a line break is refused, and nothing is forwarded: %s', async (_, line) => {
    scripted()
    const body = JSON.stringify({ ...ask('claude'), max_tokens: 10 })
    const text = await exchangeBytes(head('/v1/messages', body.length, [line]) + body)
    expect(answersIn(text), text).toEqual([400])
    expect(receivedAnywhere()).toHaveLength(0)
  })

  test('a header line after a bare line feed does not reach the upstream, and the request gets one response', async () => {
    scripted()
    const text = await exchangeBytes(
      head('/v1/chat/completions', BODY.length, ['x-first: a\nx-second: b']) + BODY,
    )
    for (const status of answersIn(text)) expect(status).toBeOneOf([200, 400])
    expect(answersIn(text)).toHaveLength(1)
    for (const request of receivedAnywhere()) expect(Object.keys(request.headers)).not.toContain('x-second')
  })
})

/** A whole request of another client, as if hidden behind a body. */
const HIDDEN =
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-bob\r\ncontent-type: application/json\r\n` +
  `content-length: ${JSON.stringify(ask('other')).length}\r\n\r\n${JSON.stringify(ask('other'))}`

function framed(lines: readonly string[], rest: string, version = 'HTTP/1.1'): string {
  const all = ['host: x', 'authorization: Bearer sk-ann', 'content-type: application/json', ...lines]
  return `POST /v1/chat/completions ${version}\r\n${all.join('\r\n')}\r\n\r\n${rest}`
}

const CHUNKED = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`

describe('a request with ambiguous length', () => {
  test.each([
    ['a length and chunks', framed(['content-length: 5', 'transfer-encoding: chunked'], CHUNKED)],
    ['chunks and a length', framed(['transfer-encoding: chunked', 'content-length: 5'], CHUNKED)],
    ['two lengths', framed([`content-length: ${BODY.length}`, 'content-length: 5'], BODY)],
    ['two equal lengths', framed([`content-length: ${BODY.length}`, `content-length: ${BODY.length}`], BODY)],
    ['lengths in a list', framed([`content-length: ${BODY.length}, 5`], BODY)],
    ['a length with a sign', framed([`content-length: +${BODY.length}`], BODY)],
    ['a negative length', framed(['content-length: -1'], BODY)],
    ['a length in hexadecimal', framed([`content-length: 0x${BODY.length.toString(16)}`], BODY)],
    ['a length with rubbish', framed([`content-length: ${BODY.length}abc`], BODY)],
    ['a length beyond all numbers', framed(['content-length: 99999999999999999999999'], BODY)],
    ['an unknown transfer encoding', framed(['transfer-encoding: xchunked'], CHUNKED)],
    ['chunked that is not the last', framed(['transfer-encoding: chunked, identity'], CHUNKED)],
    ['chunked twice', framed(['transfer-encoding: chunked', 'transfer-encoding: x'], CHUNKED)],
    ['chunked after a tab', framed(['transfer-encoding:\tchunked', 'content-length: 5'], CHUNKED)],
    ['chunked with a vertical tab', framed(['transfer-encoding: \vchunked'], CHUNKED)],
    ['a space before the colon', framed(['transfer-encoding : chunked', 'content-length: 5'], CHUNKED)],
    ['a folded transfer encoding', framed(['transfer-encoding:\r\n chunked', 'content-length: 5'], CHUNKED)],
    ['a folded length', framed(['content-length:\r\n 5'], BODY)],
    [
      'a chunk whose length is no number',
      framed(['transfer-encoding: chunked'], `zz\r\n${BODY}\r\n0\r\n\r\n`),
    ],
    [
      'a chunk whose length overflows',
      framed(['transfer-encoding: chunked'], `ffffffffffffffffff\r\n${BODY}\r\n0\r\n\r\n`),
    ],
    ['a negative chunk', framed(['transfer-encoding: chunked'], `-1\r\n${BODY}\r\n0\r\n\r\n`)],
    [
      'a chunk in 0x',
      framed(['transfer-encoding: chunked'], `0x${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`),
    ],
    [
      'a chunk that is longer than it says',
      framed(['transfer-encoding: chunked'], `5\r\n${BODY}\r\n0\r\n\r\n`),
    ],
    [
      'chunks with bare line feeds',
      framed(['transfer-encoding: chunked'], `${BODY.length.toString(16)}\n${BODY}\n0\n\n`),
    ],
    [
      'a line feed in a chunk’s extension',
      framed(['transfer-encoding: chunked'], `${BODY.length.toString(16)};\n${BODY}\r\n0\r\n\r\n`),
    ],
    [
      'a chunk extension of a megabyte',
      framed(
        ['transfer-encoding: chunked'],
        `${BODY.length.toString(16)};${'x'.repeat(1 << 20)}\r\n${BODY}\r\n0\r\n\r\n`,
      ),
    ],
    ['bare line feeds', framed([`content-length: ${BODY.length}`], BODY).replaceAll('\r\n', '\n')],
    ['bare carriage returns', framed([`content-length: ${BODY.length}`], BODY).replaceAll('\r\n', '\r')],
    ['no version', `POST /v1/chat/completions\r\n\r\n${BODY}`],
    ['another version', framed([`content-length: ${BODY.length}`], BODY, 'HTTP/9.9')],
    ['a version in small letters', framed([`content-length: ${BODY.length}`], BODY, 'http/1.1')],
    ['HTTP/2 without being asked', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no host', framed([`content-length: ${BODY.length}`], BODY).replace('host: x\r\n', '')],
    ['a space in the path', framed([], '').replace('completions', 'comple tions')],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['no HTTP at all', 'EHLO evil.test\r\n'],
  ])(
    'a request with ambiguous length gets one refusal, and nothing after it is parsed: %s',
    async (_, bytes) => {
      scripted()
      const text = await exchangeBytes(bytes + HIDDEN)
      const statuses = answersIn(text)
      expect(statuses, text).toHaveLength(1)
      expect(statuses[0]).toBeOneOf([400, 413, 431, 501, 505])
      expect(text).toMatch(/^connection: close\r$/im)
      expect(receivedAnywhere()).toHaveLength(0)
    },
  )

  test('an HTTP/1.0 request with ambiguous length is the last on its connection', async () => {
    scripted()
    const text = await exchangeBytes(framed(['transfer-encoding: chunked'], CHUNKED, 'HTTP/1.0') + HIDDEN)
    expect(answersIn(text)).toHaveLength(1)
    expect(fixture.upstream.received('other')).toHaveLength(0)
  })

  test.each([
    ['two hosts', framed(['host: y', `content-length: ${BODY.length}`], BODY)],
    ['CONNECT', 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1:22\r\n\r\n'],
    ['TRACE', 'TRACE / HTTP/1.1\r\nhost: x\r\ncookie: canary\r\n\r\n'],
    [
      'an upgrade',
      'GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n',
    ],
    ['OPTIONS of everything', 'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['an unknown method', 'GETT / HTTP/1.1\r\nhost: x\r\n\r\n'],
  ])(
    'an unusual HTTP request gets at most one response, which repeats nothing of it and switches no protocol: %s',
    async (_, bytes) => {
      scripted()
      const text = await exchangeBytes(bytes)
      expect(text).not.toContain('canary')
      for (const status of answersIn(text)) expect(status).not.toBe(101)
      expect(answersIn(text).length).toBeLessThanOrEqual(1)
    },
  )
})

describe('pipelined requests', () => {
  const request = (key: string, model: string): string => {
    const body = JSON.stringify(ask(model))
    return (
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
  }

  test('pipelined requests are each authenticated by their own key, and answered in order', async () => {
    fixture.upstream.script('m', { kind: 'whole', content: 'for ann' })
    fixture.upstream.script('other', { kind: 'whole', content: 'for bob' })
    const text = await exchangeBytes(
      request('ann', 'm') + request('bob', 'other') + request('nobody', 'm') + request('ann', 'm'),
      4,
    )
    expect(answersIn(text)).toEqual([200, 200, 401, 200])
    expect([...text.matchAll(/for (\w+)/g)].map(([, name]) => name)).toEqual(['ann', 'bob', 'ann'])
  })

  test("a pipelined request hidden in another request's body is not parsed", async () => {
    scripted()
    const body = JSON.stringify({ ...ask('m'), user: HIDDEN })
    const text = await exchangeBytes(head('/v1/chat/completions', Buffer.byteLength(body)) + body)
    expect(answersIn(text)).toEqual([200])
    expect(receivedAnywhere()).toHaveLength(1)
  })
})
