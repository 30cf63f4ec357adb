import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startFixture, type Fixture } from '../fixtures/fixture.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const STORED_KEY = 'sk-stored-secret'

type Path = 'test' | 'models'

let fixture: Fixture
let elsewhere: ScriptedUpstream
let id: number
beforeAll(async () => {
  elsewhere = await startUpstream()
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    channels: [channel('declared', upstream.baseUrl('declared'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
  const { data } = await manage<{ ids: number[] }>(fixture.gateway.url, ADMIN, 'POST /api/channel/', {
    name: 'stored',
    type: 1,
    key: STORED_KEY,
    base_url: address(),
    models: 'm',
  })
  id = data.ids[0] ?? 0
})
afterAll(async () => {
  await fixture?.close()
  await elsewhere?.stop()
})
beforeEach(() => {
  for (const upstream of [fixture.upstream, elsewhere]) upstream.script('lane', { kind: 'whole' })
})

function address(upstream = fixture.upstream): string {
  return upstream.baseUrl('lane').replace(/\/v1$/, '')
}

async function asked(path: Path, body: object, account: Account = ADMIN) {
  const { status, body: answer } = await manage(
    fixture.gateway.url,
    account,
    `POST /api/channel/${path}`,
    body,
  )
  return { status, ...answer }
}

const draft = (fields: object = {}) => ({ type: 1, key: 'sk-draft', base_url: address(), ...fields })
const list = (body: unknown) => fixture.upstream.script('lane', { kind: 'whole', body: JSON.stringify(body) })

describe('POST /api/channel/test', () => {
  test('POST /api/channel/test requests one token of the model for a draft of a channel that has no name and no models', async () => {
    expect(await asked('test', { channel: draft(), model: 'gpt-x' })).toEqual({
      status: 200,
      success: true,
      message: '',
      time: expect.any(Number),
      model: 'gpt-x',
      endpoint: 'chat',
      costs: false,
      needs_repair: false,
    })
    const { path, headers, text } = fixture.upstream.only('lane')
    expect(path).toBe('/v1/chat/completions')
    expect(headers.authorization).toBe('Bearer sk-draft')
    expect(JSON.parse(text)).toMatchObject({ model: 'gpt-x', max_tokens: 1 })
  })

  test("POST /api/channel/test applies the draft's dialect, model mapping, headers and model for tests", async () => {
    const fields = {
      name: 'stored',
      type: 14,
      models: 'a,b',
      test_model: 'b',
      model_mapping: '{"b": "bb"}',
      header_override: '{"x-own": "y"}',
    }
    expect(await asked('test', { channel: draft(fields) })).toMatchObject({ success: true, model: 'b' })
    const { path, headers, text } = fixture.upstream.only('lane')
    expect(path).toBe('/v1/messages')
    expect(headers).toMatchObject({ 'x-api-key': 'sk-draft', 'x-own': 'y' })
    expect(JSON.parse(text).model).toBe('bb')
  })

  test('POST /api/channel/test with an id tests the stored channel with the sent fields, and uses its stored key', async () => {
    const given = { channel: { id, models: 'other', version: 'an old one' } }
    expect(await asked('test', given)).toMatchObject({ success: true, model: 'other' })
    expect(fixture.upstream.only('lane').headers.authorization).toBe(`Bearer ${STORED_KEY}`)
  })

  test('POST /api/channel/test changes neither channels nor the audit log, and charges nobody', async () => {
    const rows = databaseOf(fixture.gateway.dataDir)
    const state = async () => {
      const { data: channels } = await manage<{ items: unknown[] }>(
        fixture.gateway.url,
        ADMIN,
        'GET /api/channel/',
      )
      const { data: audit } = await manage<{ total: number }>(fixture.gateway.url, ADMIN, 'GET /api/audit')
      return { items: channels.items, entries: audit.total, usage: rows.usage(), holds: rows.openHolds() }
    }
    const before = await state()
    await asked('test', { channel: draft(), model: 'm' })
    await asked('test', { channel: { id, models: 'other' } })
    list({ data: [{ id: 'm' }] })
    await asked('models', { channel: draft() })
    expect(await state()).toEqual(before)
  })
})

describe('POST /api/channel/models', () => {
  test.each([
    [1, 'OpenAI', { data: [{ id: 'b' }, { id: 'a' }, { id: 'b' }] }, '/v1/models', 'authorization'],
    [14, 'Anthropic', { data: [{ id: 'a' }, { id: 'b' }] }, '/v1/models?limit=1000', 'x-api-key'],
    [
      24,
      'Gemini',
      { models: [{ name: 'models/a' }, { name: 'models/b' }] },
      '/v1beta/models?pageSize=1000',
      'x-goog-api-key',
    ],
    [0, 'others', [{ id: 'a' }, { id: 'b' }], '/v1/models', 'authorization'],
  ])(
    'POST /api/channel/models lists the names of an upstream of type %i (%s), in order',
    async (type, _, answer, path, header) => {
      list(answer)
      const result = await asked('models', {
        channel: draft({ type, ...(type === 0 && { protocol: 'chat' }) }),
      })
      expect(result).toEqual({
        status: 200,
        success: true,
        message: '',
        time: expect.any(Number),
        data: ['a', 'b'],
      })
      const { method, path: sent, headers, text } = fixture.upstream.only('lane')
      expect([method, sent, text]).toEqual(['GET', path, ''])
      expect(headers[header]).toContain('sk-draft')
    },
  )

  test('POST /api/channel/models lists at most 2,000 model names of an upstream, and only valid ones', async () => {
    const ids = ['', 'x'.repeat(201), 'two words', 'line\nbreak', 7, null, { id: 'nested' }]
    list({ data: [...ids.map((one) => ({ id: one })), 'a text', { id: 'a/b:c-1.0' }] })
    expect(await asked('models', { channel: draft() })).toMatchObject({ success: true, data: ['a/b:c-1.0'] })
    list({ data: Array.from({ length: 3000 }, (_, index) => ({ id: `m${index}` })) })
    expect((await asked('models', { channel: draft() })) as { data?: unknown[] }).toHaveProperty(
      'data.length',
      2000,
    )
  })

  test('POST /api/channel/models with an id uses the key of the stored channel', async () => {
    list({ data: [{ id: 'a' }] })
    expect(await asked('models', { channel: { id } })).toMatchObject({ success: true, data: ['a'] })
    expect(fixture.upstream.only('lane').headers.authorization).toBe(`Bearer ${STORED_KEY}`)
  })

  test.each([
    ['an object without a list', { object: 'model' }],
    ['a text', 'data'],
  ])(
    'POST /api/channel/models reports a failure if the upstream sends %s instead of a list of models',
    async (_, body) => {
      list(body)
      const result = await asked('models', { channel: draft() }, ROOT_ACCOUNT)
      expect(result).toMatchObject({
        success: false,
        message: 'the answer is not a list of models',
        data: [],
      })
    },
  )

  test('POST /api/channel/models says that model names must be entered for a provider that cannot list its models', async () => {
    const azure = draft({ type: 3, base_url: 'http://127.0.0.1:9' })
    expect(await asked('models', { channel: azure })).toMatchObject({
      status: 200,
      success: false,
      message: 'channels of Azure cannot list models: enter their names',
    })
  })
})

describe.each(['test', 'models'] as const)('POST /api/channel/%s', (path) => {
  test('a draft of a channel can only be tested by administrators', async () => {
    const body = { channel: draft(), model: 'm' }
    expect((await asked(path, body, { ...ANN, accessToken: 'none' })).status).toBe(401)
    expect((await asked(path, body, ANN)).status).toBe(403)
    expect(fixture.upstream.received('lane')).toEqual([])
  })

  test("the test of a channel draft shows root the upstream's error message, and other administrators only its status", async () => {
    const refused = { kind: 'status', status: 401, body: errorBody('the key sk-draft is wrong') } as const
    fixture.upstream.script('lane', refused)
    const body = { channel: draft(), model: 'm' }
    expect(await asked(path, body, ROOT_ACCOUNT)).toMatchObject({
      success: false,
      message: 'the upstream answered 401: the key [redacted] is wrong',
    })
    expect(await asked(path, body)).toMatchObject({ success: false, message: 'the upstream answered 401' })
  })

  test('the test of a channel draft never sends a stored key to a changed address, except for root', async () => {
    const body = { channel: { id, base_url: address(elsewhere) }, model: 'm' }
    elsewhere.script('lane', { kind: 'whole', body: '{"data": []}' })
    expect(await asked(path, body)).toMatchObject({ status: 403, code: 'role_too_low' })
    expect(elsewhere.received('lane')).toEqual([])
    await asked(path, { channel: { ...body.channel, key: 'sk-own' }, model: 'm' })
    await asked(path, body, ROOT_ACCOUNT)
    expect(elsewhere.received('lane').map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-own',
      `Bearer ${STORED_KEY}`,
    ])
  })

  test('the test of a channel draft that is invalid as a channel is refused, and nothing is sent upstream', async () => {
    const { data } = await manage<{ items: { id: number; name: string }[] }>(
      fixture.gateway.url,
      ADMIN,
      'GET /api/channel/',
    )
    const declared = data.items.find(({ name }) => name === 'declared')?.id
    const refusals: [object, number, string][] = [
      [{ channel: draft({ key: '' }), model: 'm' }, 400, 'key: expected at least one key'],
      [{ channel: draft({ type: 999 }), model: 'm' }, 400, 'type: expected one of'],
      [{ channel: draft({ base_url: 'http://169.254.169.254' }), model: 'm' }, 400, 'metadata'],
      [{ channel: draft({ base_url: 'nowhere' }), model: 'm' }, 400, 'base_url: expected'],
      [{ channel: draft({ group: 'unknown' }), model: 'm' }, 400, 'group'],
      [{ model: 'm' }, 400, 'channel: expected'],
      [{ channel: { id: 999 }, model: 'm' }, 404, 'no channel with the id 999'],
      [{ channel: { id: declared }, model: 'm' }, 409, 'declared in gateway.yaml'],
    ]
    for (const [body, status, message] of refusals)
      expect(await asked(path, body)).toMatchObject({ status, message: expect.stringContaining(message) })
    expect(fixture.upstream.received('lane')).toEqual([])
  })
})

test('an administrator below root cannot find other services than model servers by testing a draft of a channel', async () => {
  fixture.upstream.script('lane', { kind: 'whole', body: '<html>inside</html>' })
  const addresses = [address(), 'http://127.0.0.1:9']
  const bodies = addresses.map((one) => ({ channel: draft({ base_url: one }), model: 'm' }))
  const answers = await Promise.all(
    bodies.flatMap((body) => (['test', 'models'] as const).map((path) => asked(path, body))),
  )
  for (const one of answers)
    expect(one).toMatchObject({ success: false, message: 'no model server answered', time: 10 })
})
