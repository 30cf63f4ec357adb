import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** The response to a request whose client closes its sending side after it. */
function responseTo(path: string, body: object, key = 'ann'): Promise<string> {
  const text = JSON.stringify(body)
  const connection = rawConnection(fixture.gateway.port, '')
  connection.socket.allowHalfOpen = true
  connection.socket.end(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
  return connection.closed()
}

const CHAT = '/v1/chat/completions'
/** The maximum number of events that are sent to a client that has left; the stream never ends by itself. */
const MOST_EVENTS = 1_000

test('a client that has closed the sending side of its connection still gets its answer if the upstream answers at once', async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'at once' })
  // On a busy machine an upstream sometimes takes longer than the limit.
  await expect.poll(() => responseTo(CHAT, ask('m'))).toMatch(/^HTTP\/1\.1 200 [^]*at once/)
})

test('a client that has closed its sending side still gets responses that need no upstream, such as refusals and log-ins', async () => {
  expect(await responseTo(CHAT, ask('m'), 'nobody')).toMatch(/^HTTP\/1\.1 401 /)
  expect(await responseTo('/v1/messages/count_tokens', {})).toMatch(/^HTTP\/1\.1 4\d\d /)
  // On a busy machine, checking a password takes longer than the wait for an upstream.
  const login = await responseTo('/api/user/login', { username: 'ann', password: 'no password of hers' })
  expect(login).toMatch(/^HTTP\/1\.1 (?:401|200) /)
})

test('a client that has closed the sending side of its connection counts as gone, and its call is aborted, if no answer comes', async () => {
  fixture.upstream.script('m', { kind: 'silence' })
  expect(await responseTo(CHAT, ask('m'))).toBe('')
  for (const request of fixture.upstream.received('m')) {
    await request.ended
    expect(request.completed).toBe(false)
  }
})

function requestOf(body: object, connection = 'keep-alive'): string {
  const text = JSON.stringify(body)
  return `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\nconnection: ${connection}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

test.each<[string, Behaviour]>([
  ['that no answer has come for', { kind: 'silence' }],
  ['whose stream has begun', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 }],
])(
  'a call %s is aborted when its client leaves, however much it has sent behind it',
  async (_, behaviour) => {
    for (const leave of [(socket: Socket) => socket.end(), (socket: Socket) => socket.destroy()]) {
      fixture.upstream.script('m', behaviour)
      const request = requestOf(behaviour.kind === 'stream' ? askStream('m') : ask('m'))
      const { socket } = rawConnection(fixture.gateway.port, request)
      await fixture.upstream.receivedAtLeast('m', 1)
      const call = fixture.upstream.only('m')
      if (behaviour.kind === 'stream') await call.sentAtLeast(2)
      await new Promise((resolve) => void socket.write(request.repeat(1_000), resolve))
      const before = call.eventsSent
      leave(socket)
      await call.ended
      expect(call.completed).toBe(false)
      expect(call.eventsSent - before).toBeLessThanOrEqual(MOST_EVENTS)
    }
  },
)

test('a connection on which more is sent behind a call than is kept for later ends after its response', async () => {
  let answer = (): void => {}
  const after = new Promise<void>((resolve) => (answer = resolve))
  fixture.upstream.script('m', { kind: 'whole', content: 'done', after })
  const request = requestOf(ask('m'))
  const many = rawConnection(fixture.gateway.port, request)
  await fixture.upstream.receivedAtLeast('m', 1)
  await new Promise((resolve) => void many.socket.write(request.repeat(1_000), resolve))
  answer()
  expect((await many.closed()).match(/HTTP\/1\.1 200 /g)).toHaveLength(1)
  expect(fixture.upstream.received('m')).toHaveLength(1)
})

test('requests that are sent behind a call are answered one after the other', async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'done' })
  const few = rawConnection(
    fixture.gateway.port,
    requestOf(ask('m')).repeat(2) + requestOf(ask('m'), 'close'),
  )
  expect((await few.closed()).match(/HTTP\/1\.1 200 /g)).toHaveLength(3)
})
