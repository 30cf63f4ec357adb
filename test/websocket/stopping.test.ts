import { expect, onTestFinished, test, vi } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { eventually, isEnd, openSocket } from '../fixtures/web-socket-client.ts'

async function start(websocket: object = {}, options: object = {}): Promise<Fixture> {
  const fixture = await startFixture((upstream) => ({
    options: { retries: 0, websocket, ...options },
    models: priced(['slow']),
    channels: [channel('slow', upstream.baseUrl('slow'), { protocol: 'chat' })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  onTestFinished(() => fixture.close())
  return fixture
}

test('a gateway that stops closes idle sockets with 1012 at once, and others after their last turn', async () => {
  const fixture = await start()
  const { promise: untilEnd, resolve: end } = Promise.withResolvers<void>()
  fixture.upstream.script('slow', { kind: 'stream', endsAfter: untilEnd })
  const [idle, busy] = await Promise.all([
    openSocket(fixture.gateway.url, 'ann'),
    openSocket(fixture.gateway.url, 'ann'),
  ])
  for (const _ of [1, 2]) busy.send({ type: 'response.create', model: 'slow', input: 'x', stream_id: 'a' })
  await busy.next(({ type }) => type === 'response.output_text.delta')
  const stopped = fixture.gateway.stop()
  expect(await idle.closed).toBe(1012)
  // The turn that waits in the lane, and one that comes now.
  const refused = { type: 'error', status: 503, error: { code: 'overloaded' } }
  expect(await busy.next(isEnd)).toMatchObject({ ...refused, stream_id: 'a' })
  busy.send({ type: 'response.create', model: 'slow', input: 'x', stream_id: 'b' })
  expect(await busy.next(isEnd)).toMatchObject({ ...refused, stream_id: 'b' })
  end()
  expect(await busy.next(isEnd)).toMatchObject({ type: 'response.completed', stream_id: 'a' })
  expect(await busy.closed).toBe(1012)
  expect(await stopped).toBe(0)
  const rows = databaseOf(fixture.gateway.dataDir).usage()
  expect(rows.map(({ reason }) => reason)).toEqual(['complete'])
})

test('a turn that is running when drain_timeout ends is cut, and its socket is closed', async () => {
  const fixture = await start({}, { drain_timeout: '1s' })
  fixture.upstream.script('slow', { kind: 'stream', endsAfter: new Promise(() => {}) })
  const client = await openSocket(fixture.gateway.url, 'ann')
  client.send({ type: 'response.create', model: 'slow', input: 'x' })
  await client.next(({ type }) => type === 'response.output_text.delta')
  const stopped = fixture.gateway.stop()
  expect(await client.closed).toBe(1012)
  await stopped
  expect(databaseOf(fixture.gateway.dataDir).usage()).toHaveLength(1)
  expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
})

test('a socket that is idle for options.websocket.idle is closed with 1000, and pings do not keep it open', async () => {
  // A slow machine may answer a ping seconds late, but the client is not gone then.
  const fixture = await start({ idle: '5s', ping: '4s' })
  const client = await openSocket(fixture.gateway.url, 'ann')
  const pings = vi.fn<() => void>()
  client.socket.on('ping', pings)
  expect(await client.closed).toBe(1000)
  expect(client.events).toEqual([])
  expect(pings).toHaveBeenCalled()
})

test('a socket that has reached its age begins no further turn: running ones end, then comes an error, and 1000', async () => {
  // Long enough for the first turn to begin on a slow machine.
  const fixture = await start({ age: '10s' })
  const { promise: untilEnd, resolve: end } = Promise.withResolvers<void>()
  fixture.upstream.script('slow', { kind: 'stream', endsAfter: untilEnd })
  const client = await openSocket(fixture.gateway.url, 'ann')
  client.send({ type: 'response.create', model: 'slow', input: 'x' })
  await client.next(({ type }) => type === 'response.output_text.delta')
  client.send({ type: 'response.create', model: 'slow', input: 'waits' })
  const tooOld = { type: 'error', status: 400, error: { code: 'websocket_connection_limit_reached' } }
  expect(await client.next(isEnd)).toMatchObject(tooOld)
  end()
  expect(await client.next(isEnd)).toMatchObject({ type: 'response.completed' })
  expect(await client.next(isEnd)).toMatchObject(tooOld)
  expect(await client.closed).toBe(1000)
  expect(fixture.upstream.received('slow')).toHaveLength(1)
})

test('a client from which nothing came for two pings is gone, and its turn is charged like a stream that was left', async () => {
  // Long enough for the first turn to begin while a slow machine answers no ping.
  const fixture = await start({ ping: '5s' })
  fixture.upstream.script('slow', { kind: 'stream', endsAfter: new Promise(() => {}) })
  const client = await openSocket(fixture.gateway.url, 'ann')
  client.send({ type: 'response.create', model: 'slow', input: 'x' })
  await client.next(({ type }) => type === 'response.output_text.delta')
  // A paused client reads no pings, and does not answer them.
  client.socket.pause()
  await eventually(() => expect(databaseOf(fixture.gateway.dataDir).usage()).toHaveLength(1))
  expect(databaseOf(fixture.gateway.dataDir).usage()[0]).toMatchObject({ reason: 'client_gone' })
  client.socket.terminate()
})
