import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { manage } from '../fixtures/account.ts'
import { contentOf } from '../fixtures/content.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { eventually, isEnd, openSocket, textOf } from '../fixtures/web-socket-client.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: 'root-access-token' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '1h' } },
    content_log: { what: 'full' },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'chat' })],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          token('redacted', { content_log: { what: 'redacted' } }),
          token('one', { rate_limit: { requests: 1, window: '1h' } }),
          token('poor', { remain_quota: 1, unlimited_quota: false }),
        ],
        { access_token: 'ann-access-token' },
      ),
    ],
    guards: [{ name: 'stop', do: 'block', match: { words: ['forbidden'] } }],
  }))
})
afterAll(() => fixture?.close())

const usage = () => databaseOf(fixture.gateway.dataDir).usage()
const metrics = async (): Promise<string> => (await fetch(`${fixture.gateway.url}/metrics`)).text()

test('rows say whether a call came over HTTP or as a turn on a WebSocket, also one that got the answer of another', async () => {
  fixture.upstream.script('m', streamedChat({ text: 'answer' }))
  const client = await openSocket(fixture.gateway.url, 'ann')
  const turn = { model: 'm', input: 'the same', temperature: 0 }
  expect(textOf(await client.turn(turn))).toBe('answer')
  expect(textOf(await client.turn(turn))).toBe('answer')
  await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'x' }] })
  await eventually(() => expect(usage()).toHaveLength(3))
  const { data } = await manage<{ id: string }>(
    fixture.gateway.url,
    ROOT_ACCOUNT,
    `GET /api/log/${client.id}.1`,
  )
  expect(data.id).toBe(`${client.id}.1`)
  expect(usage().map((row) => [Reflect.get(row, 'transport'), Reflect.get(row, 'cache')])).toEqual([
    ['websocket', ''],
    ['websocket', 'hit'],
    ['http', ''],
  ])
  client.socket.close(1000)
})

test('the content log has the message of a turn as received, and its events one a line, as sent', async () => {
  fixture.upstream.script('m', streamedChat({ text: 'to ann@example.com' }))
  const ann = { id: 2, accessToken: 'ann-access-token' }
  const message =
    '{ "type":"response.create", "stream_id":"a",  "model":"m","input":"what is said","temperature":0 }'
  // The second turn gets the answer of the first.
  for (const turn of [1, 2]) {
    const client = await openSocket(fixture.gateway.url, 'ann')
    client.socket.send(message, { binary: false })
    await client.next(isEnd)
    const { parts, conversation } = await contentOf(fixture.gateway.url, ann, `${client.id}.1`)
    expect(parts.request_received?.text).toBe(message)
    const events = (parts.answer_sent?.text ?? '').trimEnd().split('\n')
    expect(events.map((line) => JSON.parse(line) as object)).toEqual(client.events)
    expect(client.events.every(({ stream_id: lane }) => lane === 'a')).toBe(true)
    expect(parts.answer_received === undefined).toBe(turn === 2)
    expect(conversation).toEqual([
      { role: 'user', parts: [{ kind: 'text', text: 'what is said' }] },
      { role: 'assistant', parts: [{ kind: 'text', text: 'to ann@example.com' }] },
    ])
    client.socket.close(1000)
  }
  const client = await openSocket(fixture.gateway.url, 'redacted')
  await client.turn({ model: 'm', input: 'what is said to bob@example.com' })
  const { parts } = await contentOf(fixture.gateway.url, ann, `${client.id}.1`)
  expect(JSON.stringify(parts)).toContain('[REDACTED]')
  expect(JSON.stringify(parts)).not.toContain('example.com')
  client.socket.close(1000)
})

test('a turn on a WebSocket is listed while it runs, and stopped by its id', async () => {
  fixture.upstream.script('m', { kind: 'stream', events: 3, ending: 'stall' })
  const client = await openSocket(fixture.gateway.url, 'ann')
  client.send({ type: 'response.create', model: 'm', input: 'x' })
  await client.next(({ type }) => type === 'response.output_text.delta')
  const id = `${client.id}.1`
  const list = await manage<{ items: { id: string }[] }>(
    fixture.gateway.url,
    ROOT_ACCOUNT,
    'GET /api/running',
  )
  expect(list.data.items.map((item) => item.id)).toContain(id)
  await manage(fixture.gateway.url, ROOT_ACCOUNT, `POST /api/running/${id}/stop`)
  expect(await client.next(isEnd)).toMatchObject({ type: 'response.failed' })
  await eventually(() =>
    expect(databaseOf(fixture.gateway.dataDir).usageOf(id)).toMatchObject({ reason: 'stopped' }),
  )
  client.socket.close(1000)
})

test('the limits of a key, its quota and guards hold for turns, and the error has the headers of POST', async () => {
  fixture.upstream.script('m', streamedChat({ text: 'answer' }))
  const one = await openSocket(fixture.gateway.url, 'one')
  await one.turn({ model: 'm', input: 'first' })
  const [limited] = await one.turn({ model: 'm', input: 'second' })
  expect(limited).toMatchObject({ type: 'error', status: 429, error: { code: 'rate_limited' } })
  const headers = limited?.['headers'] as Record<string, string>
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  expect(headers['x-ratelimit-remaining-requests']).toBe('0')
  const poor = await openSocket(fixture.gateway.url, 'poor')
  const [unpaid] = await poor.turn({ model: 'm', input: 'x' })
  expect(unpaid).toMatchObject({ status: 403, error: { code: 'insufficient_quota' } })
  const client = await openSocket(fixture.gateway.url, 'ann')
  const [blocked] = await client.turn({ model: 'm', input: 'this is forbidden' })
  expect(blocked).toMatchObject({ status: 400, error: { code: 'guard_blocked' } })
  expect(fixture.upstream.received('m')).toHaveLength(1)
  for (const { socket } of [one, poor, client]) socket.close(1000)
})

test('metrics count open sockets, and closed ones by their code', async () => {
  await eventually(async () => expect(await metrics()).toMatch(/^sluice_websockets_open 0$/m))
  const clients = await Promise.all([1, 2].map(() => openSocket(fixture.gateway.url, 'ann')))
  expect(await metrics()).toMatch(/^sluice_websockets_open 2$/m)
  clients[0]?.socket.close(1000)
  clients[1]?.socket.send('x', { binary: true })
  await eventually(async () => expect(await metrics()).toMatch(/^sluice_websockets_open 0$/m))
  const page = await metrics()
  expect(page).toMatch(/^sluice_websockets_closed_total\{code="1000"\} \d+$/m)
  expect(page).toMatch(/^sluice_websockets_closed_total\{code="1003"\} 1$/m)
})

test('codes with which clients close a socket do not create series of metrics', async () => {
  for (const code of [3000, 4000, 4999]) {
    const { socket } = await openSocket(fixture.gateway.url, 'ann')
    socket.close(code)
  }
  await eventually(async () =>
    expect(await metrics()).toMatch(/^sluice_websockets_closed_total\{code="other"\} 3$/m),
  )
  expect(await metrics()).not.toMatch(/code="[3-9]/)
})
