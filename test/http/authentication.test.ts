import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [
        token('alive'),
        token('disabled', { status: 2 }),
        token('expired', { expired_time: 1_000_000_000 }),
        token('future', { expired_time: 4_000_000_000 }),
        token('drained', { remain_quota: 0 }),
        token('deleted'),
      ]),
      user(3, 'banned', [token('ofbanned')], { status: 2 }),
    ],
  }))
  databaseOf(fixture.gateway.dataDir).write(
    "update tokens set deleted_time = 1700000000 where name = 'token-deleted'",
  )
})
afterAll(() => fixture?.close())

const bearer = (value: string) => call(fixture.gateway.url, ask('m'), { headers: { authorization: value } })

describe('the accepted forms of a key', () => {
  test.each([
    ['with its sk- prefix', 'Bearer sk-alive'],
    ['without the prefix', 'Bearer alive'],
    ['with several prefixes', 'Bearer sk-sk-sk-alive'],
    ['whatever its later hyphen segments say', 'Bearer sk-alive-extra-segments'],
    ['with the scheme in lower case', 'bearer sk-alive'],
    ['that expires in the future', 'Bearer sk-future'],
  ])('an API key is accepted %s', async (_, value) => {
    const answer = await bearer(value)
    expect(answer.status, answer.text).toBe(200)
  })
})

describe('calls with a bad key', () => {
  const message = async (value: string): Promise<string> => {
    const answer = await bearer(value)
    expect(answer.status, answer.text).toBe(401)
    const { error } = answer.json()
    expect(error.type).toBeOneOf(['authentication_error', 'gateway_error'])
    expect(error.code).toBeTypeOf('string')
    expect(error.message).toMatch(/\(request id: [^()\s]+\)$/)
    return error.message
  }

  test('a call without a key is refused with 401 and a message that says why', async () => {
    const answer = await call(fixture.gateway.url, ask('m'))
    expect(answer.status).toBe(401)
    expect(answer.json().error.type).toBeOneOf(['authentication_error', 'gateway_error'])
  })
  test.each([
    ['/v1/chat/completions', '"Authorization: Bearer sk-…" ('],
    ['/v1/messages', '"x-api-key: sk-…" or "Authorization: Bearer sk-…" ('],
    ['/v1/messages/count_tokens', '"x-api-key: sk-…" or "Authorization: Bearer sk-…" ('],
  ])(
    'a call without a key on %s is refused with 401 and the headers of that dialect',
    async (path, headers) => {
      const answer = await call(fixture.gateway.url, ask('m'), { path })
      expect(answer.status).toBe(401)
      expect(answer.json().error.message).toContain(`it is expected in the header ${headers}`)
    },
  )
  test.each(['Bearer ', 'Bearer', 'Bearer sk-', 'Bearer -', 'Basic YWxpdmU6', ''])(
    'a call with the header %j is refused with 401',
    async (value) => {
      await message(value)
    },
  )
  test('a call with an unknown key is refused with 401', async () =>
    expect(await message('Bearer sk-nobody')).not.toContain('nobody'))
  test('a call with a disabled key is refused with 401', async () =>
    expect(await message('Bearer sk-disabled')).toMatch(/disabled/i))
  test('a call with an expired key is refused with 401', async () =>
    expect(await message('Bearer sk-expired')).toMatch(/expired/i))
  test('a call with an exhausted key is refused with 401', async () =>
    expect(await message('Bearer sk-drained')).toMatch(/exhausted|quota/i))
  test('a call with a deleted key is refused with 401, even if the configuration names the key', async () =>
    expect(await message('Bearer sk-deleted')).toMatch(/deleted/i))
  test('a call with a key in other letter case is refused with 401', async () =>
    void (await message('Bearer sk-ALIVE')))
  test('a call with a key and additional characters is refused with 401', async () =>
    void (await message('Bearer sk-aliveandmore')))
  test.each(['constructor', '__proto__', 'toString'])(
    'a call with the key %s is refused with 401',
    async (name) => {
      await message(`Bearer sk-${name}`)
    },
  )
})

test('x-api-key is not a credential of chat completions', async () => {
  const answer = await call(fixture.gateway.url, ask('m'), { headers: { 'x-api-key': 'sk-alive' } })
  expect(answer.status).toBe(401)
})

test('a call with a key of a disabled user is refused with 403', async () => {
  const answer = await bearer('Bearer sk-ofbanned')
  expect(answer.status).toBe(403)
  expect(answer.json().error.type).toBe('permission_error')
})

test('a call with a bad key causes no upstream request', async () => {
  fixture.upstream.script('m', { kind: 'whole' })
  await bearer('Bearer sk-disabled')
  await bearer('Bearer sk-nobody')
  await bearer('Bearer sk-ofbanned')
  expect(fixture.upstream.received('m')).toHaveLength(0)
})
