import { afterAll, beforeAll, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

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
