import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage } from '../fixtures/messages-behaviour.ts'
import { responsesUsage, streamedResponse } from '../fixtures/responses-behaviour.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import {
  eventually,
  isEnd,
  lines,
  maskedFrame,
  maskedText,
  openSocket,
  rawUpgrade,
  rawWrite,
  textOf,
} from '../fixtures/web-socket-client.ts'

const PROTOCOLS = ['responses', 'chat', 'messages'] as const
type Protocol = (typeof PROTOCOLS)[number]

const TEXT = 'Hello there, friend.'
/** One hundred prompt tokens, 70 of them cached, and 7 output tokens, at one unit, a quarter and four units. */
const CHARGE = Math.ceil(30 + 70 / 4 + 7 * 4)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, body_limit: '100KiB' },
    models: priced([...PROTOCOLS, 'limited']),
    channels: [...PROTOCOLS, 'limited'].map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name === 'limited' ? 'chat' : name }),
    ),
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          token('narrow', { model_limits_enabled: true, model_limits: 'chat' }),
          token('poor', { remain_quota: 1 }),
          token('disabled', { status: 2 }),
          token('expired', { expired_time: 1_000_000_000 }),
          token('elsewhere', { allow_ips: '192.0.2.1' }),
        ],
        { access_token: 'ann-access-token' },
      ),
      user(3, 'gone', [token('banned')], { status: 2 }),
    ],
  }))
})
afterAll(() => fixture?.close())

function script(protocol: Protocol): void {
  const counts = { input_tokens: 30, cache_read_input_tokens: 70, output_tokens: 7 }
  if (protocol === 'responses')
    fixture.upstream.script(protocol, streamedResponse({ text: TEXT, usage: responsesUsage(100, 7, 70) }))
  else if (protocol === 'chat')
    fixture.upstream.script(protocol, streamedChat({ text: TEXT, usage: usageText(100, 7, 70) }))
  else fixture.upstream.script(protocol, streamedMessage([{ text: TEXT }], { counts }))
}

const rowOf = (id: string) => databaseOf(fixture.gateway.dataDir).usageOf(id)

describe.each(PROTOCOLS)('a turn to a channel that speaks %s', (protocol) => {
  test('a turn over a WebSocket gets the events of a stream, and is charged by its usage', async () => {
    script(protocol)
    const client = await openSocket(fixture.gateway.url, 'ann')
    const events = await client.turn({ model: protocol, input: 'hi' })
    expect(textOf(events)).toBe(TEXT)
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { status: 'completed' } })
    expect(events.some((event) => 'stream_id' in event)).toBe(false)
    await eventually(() =>
      expect(rowOf(`${client.id}.1`)).toMatchObject({ quota: CHARGE, reason: 'complete' }),
    )
    client.socket.close(1000)
  })
})

describe('the upgrade', () => {
  const get = (
    headers: Record<string, string>,
  ): Promise<{ status: number; headers: Headers; text: string }> => rawUpgrade(fixture.gateway.port, headers)
  const WHOLE = {
    authorization: 'Bearer sk-ann',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  }

  test('an upgrade gets a 101 with the id of the request, without an extension and without a key among its subprotocols', async () => {
    const { status, headers } = await get({
      ...WHOLE,
      'sec-websocket-protocol': 'openai-insecure-api-key.sk-ann, realtime, other',
      'sec-websocket-extensions': 'permessage-deflate',
    })
    expect(status).toBe(101)
    expect(headers.get('sec-websocket-protocol')).toBe('realtime')
    expect(headers.has('sec-websocket-extensions')).toBe(false)
    // The example of RFC 6455, section 1.3, has another key; this is SHA-1 of the key above and the GUID, in base64.
    expect(headers.get('sec-websocket-accept')).toBe(
      createHash('sha1')
        .update('AAAAAAAAAAAAAAAAAAAAAA==258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
        .digest('base64'),
    )
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  test.each([
    ['without a key', { authorization: '' }, 401, 'missing_api_key'],
    ['with an unknown key', { authorization: 'Bearer sk-unknown' }, 401, 'invalid_api_key'],
    ['with an access token', { authorization: 'ann-access-token' }, 401, 'missing_api_key'],
    ['with a cookie in place of a key', { authorization: '', cookie: 'session=x' }, 401, 'missing_api_key'],
    [
      'with a key among the subprotocols',
      { authorization: '', 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.sk-ann' },
      401,
      'missing_api_key',
    ],
    ['of another version', { 'sec-websocket-version': '8' }, 400, 'invalid_request'],
    ['with a key of the protocol that is none', { 'sec-websocket-key': 'short' }, 400, 'invalid_request'],
    ['without "connection: upgrade"', { connection: 'keep-alive' }, 400, 'invalid_request'],
  ])(
    'an upgrade %s is refused with the status and the envelope of POST',
    async (_, changed, status, code) => {
      const answer = await get({ ...WHOLE, ...changed })
      expect(answer.status).toBe(status)
      expect(JSON.parse(answer.text)).toMatchObject({ error: { code } })
      expect(answer.headers.get('sec-websocket-version')).toBe(
        'sec-websocket-version' in changed ? '13' : null,
      )
    },
  )

  test.each(['disabled', 'expired', 'elsewhere', 'banned'])(
    'an upgrade with the key "%s" is refused as POST is',
    async (key) => {
      const posted = await call(
        fixture.gateway.url,
        { model: 'responses', input: 'x' },
        { key, path: '/v1/responses' },
      )
      const { status, text } = await get({ ...WHOLE, authorization: `Bearer sk-${key}` })
      expect(status).toBe(posted.status)
      expect([401, 403]).toContain(status)
      const told = (answer: string): object =>
        JSON.parse(answer.replace(/\(request id: [^)]*\)/, '')) as object
      expect(told(text)).toEqual(told(posted.text))
    },
  )

  test('the origin, the query and OpenAI-Beta of an upgrade are ignored', async () => {
    const headers = {
      ...WHOLE,
      origin: 'https://other.example',
      'openai-beta': 'responses_websockets=2026-02-06',
    }
    expect((await rawUpgrade(fixture.gateway.port, headers, 'GET /v1/responses?model=none')).status).toBe(101)
  })

  test('headers of the upgrade hold for each turn, but for its idempotency key', async () => {
    script('chat')
    const client = await openSocket(fixture.gateway.url, 'ann', {
      headers: { 'x-session-id': 'mine', 'idempotency-key': 'once' },
    })
    for (const input of ['one', 'one', 'two']) await client.turn({ model: 'chat', input })
    expect(fixture.upstream.received('chat')).toHaveLength(3)
    const other = await openSocket(fixture.gateway.url, 'ann', { headers: { 'x-session-id': 'other' } })
    await other.turn({ model: 'chat', input: 'one' })
    const session = (id: string): unknown => Reflect.get(rowOf(id) ?? {}, 'session')
    await eventually(() => expect(session(`${other.id}.1`)).toBeTruthy())
    const [first, second, third] = [1, 2, 3].map((turn) => session(`${client.id}.${turn}`))
    expect([second, third]).toEqual([first, first])
    expect(session(`${other.id}.1`)).not.toBe(first)
    for (const { socket } of [client, other]) socket.close(1000)
  })

  test('no other path and no other method takes an upgrade', async () => {
    expect((await rawUpgrade(fixture.gateway.port, WHOLE, 'GET /v1/chat/completions')).status).toBe(405)
    expect((await rawUpgrade(fixture.gateway.port, WHOLE, 'GET /healthz')).status).toBe(200)
    expect((await rawUpgrade(fixture.gateway.port, WHOLE, 'PUT /v1/responses')).status).toBe(426)
  })

  test('an upgrade whose body has not arrived is refused at once', async () => {
    const head = `GET /v1/responses HTTP/1.1\r\nhost: x\r\n${lines(WHOLE)}content-length: 1\r\n\r\n`
    const raw = rawConnection(fixture.gateway.port, Buffer.from(head))
    await raw.until('"code":"invalid_request"')
    raw.socket.destroy()
  })

  test('an upgrade whose client has closed its side is answered, and its connection ends', async () => {
    const head = (line: string, headers: Record<string, string>): string =>
      `${line} HTTP/1.1\r\nhost: x\r\n${lines(headers)}\r\n`
    // Behind other requests, so that the end has most likely arrived before the upgrade is read.
    const raw = rawConnection(fixture.gateway.port, head('GET /healthz', {}).repeat(100))
    raw.socket.end(head('GET /v1/responses', WHOLE))
    expect(await raw.closed()).toMatch(/HTTP\/1\.1 (?:400|101) /)
  })

  test('frames that arrive together with the upgrade are read', async () => {
    script('chat')
    const head = `GET /v1/responses HTTP/1.1\r\nhost: x\r\n${lines(WHOLE)}\r\n`
    const frame = maskedText(JSON.stringify({ type: 'response.create', model: 'chat', input: 'hi' }))
    const raw = rawConnection(fixture.gateway.port, Buffer.concat([Buffer.from(head), frame]))
    await raw.until('response.completed')
    raw.socket.destroy()
  })
})

describe('messages', () => {
  test.each([
    ['that is no JSON', 'nonsense', 400, 'invalid_json'],
    ['that is no object', '[]', 400, 'invalid_json'],
    ['of an unknown type', { type: 'response.make' }, 400, 'invalid_request'],
    ['without a type', { model: 'chat' }, 400, 'invalid_request'],
    [
      'with a member in another spelling',
      { type: 'response.create', Stream_Id: 'a' },
      400,
      'invalid_request',
    ],
    [
      'with a member of POST in another spelling',
      { type: 'response.create', Model: 'chat', input: 'x' },
      400,
      'invalid_request',
    ],
    [
      'for a response in the background',
      { type: 'response.create', model: 'chat', input: 'x', background: true },
      400,
      'invalid_request',
    ],
    ['for an unknown model', { type: 'response.create', model: 'none', input: 'x' }, 503, 'model_not_found'],
    ['without an input', { type: 'response.create', model: 'chat' }, 400, 'invalid_request'],
    [
      'for an answer that is unknown',
      { type: 'response.create', model: 'chat', input: 'x', previous_response_id: 'resp_1' },
      400,
      'previous_response_not_found',
    ],
  ])(
    'a message %s gets an error with the status and code of POST, and the socket lives',
    async (_, message, status, code) => {
      script('chat')
      const client = await openSocket(fixture.gateway.url, 'ann')
      client.socket.send(typeof message === 'string' ? message : JSON.stringify(message), { binary: false })
      const event = await client.next(isEnd)
      expect(event).toMatchObject({ type: 'error', status, error: { code } })
      expect(event).not.toHaveProperty('stream_id')
      expect(textOf(await client.turn({ model: 'chat', input: 'hi' }))).toBe(TEXT)
      client.socket.close(1000)
    },
  )

  test('an unknown answer is named by the parameter of the error', async () => {
    const client = await openSocket(fixture.gateway.url, 'ann')
    const [event] = await client.turn({ model: 'chat', input: 'x', previous_response_id: 'resp_1' })
    expect(event).toMatchObject({ error: { param: 'previous_response_id' } })
    client.socket.close(1000)
  })

  test('a model that the key may not use is refused turn by turn', async () => {
    const client = await openSocket(fixture.gateway.url, 'narrow')
    const [event] = await client.turn({ model: 'responses', input: 'x', stream_id: 'a' })
    expect(event).toMatchObject({
      type: 'error',
      status: 403,
      error: { code: 'model_not_allowed' },
      stream_id: 'a',
    })
    script('chat')
    expect(textOf(await client.turn({ model: 'chat', input: 'hi' }))).toBe(TEXT)
    client.socket.close(1000)
  })

  test('"stream", "background: false" and null, and "response.processed" are ignored', async () => {
    script('chat')
    const client = await openSocket(fixture.gateway.url, 'ann')
    client.send({ type: 'response.processed', response_id: 'resp_1' })
    for (const background of [false, null])
      expect(textOf(await client.turn({ model: 'chat', input: 'hi', stream: false, background }))).toBe(TEXT)
    expect(client.events.some(({ type }) => type === 'error')).toBe(false)
    expect(fixture.upstream.received('chat')).toHaveLength(2)
    expect(fixture.upstream.received('chat')[0]?.text).not.toMatch(
      /background|generate|stream_id|response\.create/,
    )
    client.socket.close(1000)
  })

  const CLOSING: readonly (readonly [string, number, Buffer])[] = [
    ['a binary message', 1003, maskedFrame(0x82, Buffer.from('{}'))],
    ['a text that is not UTF-8', 1007, maskedFrame(0x81, Buffer.from([0xff]))],
    ['a frame without a mask', 1002, Buffer.from([0x81, 0x02, 0x7b, 0x7d])],
    ['a frame with a reserved bit', 1002, maskedFrame(0xc1, Buffer.from('{}'))],
    ['a continuation of nothing', 1002, maskedFrame(0x80, Buffer.from('{}'))],
    ['a message above the maximum of bodies', 1009, maskedFrame(0x81, Buffer.alloc(102_401, ' '))],
  ]
  test.each(CLOSING)('%s closes the socket with %d', async (_, code, bytes) => {
    const client = await openSocket(fixture.gateway.url, 'ann')
    rawWrite(client.socket, bytes)
    expect(await client.closed).toBe(code)
  })

  test('a turn has the id of the upgrade and its number on the socket, in the order of arrival', async () => {
    script('chat')
    const client = await openSocket(fixture.gateway.url, 'ann')
    await client.turn({ model: 'chat', input: 'one' })
    await client.turn({ model: 'none', input: 'refused' })
    await client.turn({ model: 'chat', input: 'three' })
    await eventually(() => expect(rowOf(`${client.id}.3`)).toBeDefined())
    expect([1, 2, 3].map((number) => rowOf(`${client.id}.${number}`) !== undefined)).toEqual([
      true,
      false,
      true,
    ])
    client.socket.close(1000)
  })
})
