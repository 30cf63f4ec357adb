import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { AMPLE, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }

type Fields = Record<string, unknown>
interface Page {
  readonly items: Fields[]
  readonly total: number
  readonly page: number
  readonly page_size: number
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    groups: { vip: { ratio: 0.5 } },
    models: { priced: { price: { input: 2, output: 8 } } },
    channels: [channel('declared', upstream.baseUrl('declared'), { models: ['d'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken, quota: AMPLE }),
      user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
})
afterAll(() => fixture.close())

const as = <Data = Fields>(request: Parameters<typeof manage>[2], body?: object | string, who = ADMIN) =>
  manage<Data>(fixture.gateway.url, who, request, body)

const fields = (name: string, of: Fields = {}): Fields => ({
  name,
  type: 1,
  key: `sk-secret-of-${name}`,
  base_url: fixture.upstream.baseUrl(name).replace(/\/v1$/, ''),
  models: 'priced',
  group: 'default',
  ...of,
})

const made = async (name: string, of: Fields = {}): Promise<number> => {
  const { status, message, data } = await as<{ ids: number[] }>('POST /api/channel/', fields(name, of))
  expect([status, message]).toEqual([200, ''])
  return data.ids[0] ?? 0
}
const remove = (id: number) => as(`DELETE /api/channel/${id}`)

describe('a channel created over HTTP', () => {
  test('a channel created over HTTP is shown as written, without its key, and is not managed by the file', async () => {
    const id = await made('shown', {
      group: 'default,vip',
      model_mapping: '{"priced": "upstream-name"}',
      priority: -3,
      weight: 7,
      tag: 'blue',
      test_model: 'priced',
      setting: '{"force_format": true, "pass_through_body_enabled": true}',
      settings:
        '{"allow_speed": true, "allow_cache_control": true, "disable_store": true, "azure_responses_version": "x"}',
      header_override: '{"X-Team": "blue"}',
      other_info: null,
    })
    const { data } = await as(`GET /api/channel/${id}`)
    expect(data).toMatchObject({
      id,
      name: 'shown',
      type: 1,
      key: '',
      status: 1,
      base_url: fixture.upstream.baseUrl('shown').replace(/\/v1$/, ''),
      models: 'priced',
      group: 'default,vip',
      priority: -3,
      weight: 7,
      tag: 'blue',
      test_model: 'priced',
      other_info: null,
      test_time: 0,
      response_time: 0,
      channel_info: { is_multi_key: false, multi_key_size: 0 },
      managed: false,
    })
    const json = (name: string): unknown => JSON.parse(String(data[name]))
    expect(json('model_mapping')).toEqual({ priced: 'upstream-name' })
    expect(json('header_override')).toEqual({ 'X-Team': 'blue' })
    expect(json('setting')).toEqual({ force_format: true, pass_through_body_enabled: true })
    expect(json('settings')).toMatchObject({
      allow_speed: true,
      allow_cache_control: true,
      allow_service_tier: false,
      disable_store: true,
      azure_responses_version: 'x',
    })
    expect(data['created_time']).toBeGreaterThan(1_700_000_000)
    await remove(id)
  })

  test('a channel created over HTTP is called with its key, mapping and headers, and the call is charged exactly', async () => {
    const id = await made('called', {
      model_mapping: '{"priced": "upstream-name"}',
      header_override: '{"X-Team": "blue"}',
    })
    const answer = await fixture.chat('ann', ask('priced'))
    expect(answer.status).toBe(200)
    const sent = fixture.upstream.only('called')
    expect(sent.path).toBe('/v1/chat/completions')
    expect(sent.headers).toMatchObject({ authorization: 'Bearer sk-secret-of-called', 'x-team': 'blue' })
    expect(JSON.parse(sent.text).model).toBe('upstream-name')
    // One quota unit for a prompt token, four for an output token.
    const { prompt_tokens, completion_tokens } = answer.json().usage
    const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
    expect(row?.quota).toBe(prompt_tokens + 4 * completion_tokens)
    await remove(id)
    expect((await fixture.chat('ann', ask('priced'))).status).toBe(503)
  })

  test('a channel created over HTTP may be removed during a call, which ends normally', async () => {
    const id = await made('running')
    let release = (): void => {}
    const after = new Promise<void>((resolve) => (release = resolve))
    fixture.upstream.script('running', { kind: 'whole', after })
    const answer = fixture.chat('ann', ask('priced'))
    await fixture.upstream.receivedAtLeast('running', 1)
    await remove(id)
    release()
    const whole = await answer
    expect(whole.status).toBe(200)
    const { prompt_tokens, completion_tokens } = whole.json().usage
    const row = databaseOf(fixture.gateway.dataDir).usageOf(String(whole.headers['x-request-id']))
    expect(row?.quota).toBe(prompt_tokens + 4 * completion_tokens)
  })

  test('a channel created over HTTP is no longer called once it is disabled, and called again once it is enabled', async () => {
    const id = await made('switched')
    await as('PUT /api/channel/', { id, status: 2 })
    expect((await fixture.chat('ann', ask('priced'))).status).toBe(503)
    await as('PUT /api/channel/', { id, status: 1 })
    expect((await fixture.chat('ann', ask('priced'))).status).toBe(200)
    await remove(id)
  })

  test('a channel created over HTTP survives a restart, and its keys are encrypted on the disk', async () => {
    const id = await made('kept')
    await fixture.gateway.restart()
    expect((await fixture.chat('ann', ask('priced'))).status).toBe(200)
    expect(fixture.upstream.only('kept').headers.authorization).toBe('Bearer sk-secret-of-kept')
    const { readFileSync, readdirSync } = await import('node:fs')
    for (const name of readdirSync(fixture.gateway.dataDir).filter((file) => file.includes('.db'))) {
      expect(readFileSync(`${fixture.gateway.dataDir}/${name}`).includes('sk-secret-of-kept')).toBe(false)
    }
    await remove(id)
  })

  test('a channel created over HTTP may have several keys, one in each line', async () => {
    const id = await made('several', { key: ' key-a \n\nkey-b\n' })
    expect((await as(`GET /api/channel/${id}`)).data['channel_info']).toEqual({
      is_multi_key: true,
      multi_key_size: 2,
    })
    await fixture.chat('ann', ask('priced'))
    await fixture.chat('ann', ask('priced'))
    const used = fixture.upstream.received('several').map(({ headers }) => headers.authorization)
    expect(used).toEqual(['Bearer key-a', 'Bearer key-b'])
    await remove(id)
  })
})

describe('POST /api/channel/', () => {
  test('POST /api/channel/ also accepts a body that has the new channel in its field "channel"', async () => {
    const { data } = await as<{ ids: number[] }>('POST /api/channel/', {
      mode: 'single',
      channel: fields('under'),
    })
    expect(data.ids).toHaveLength(1)
    expect((await as(`GET /api/channel/${data.ids[0]}`)).data['name']).toBe('under')
    await remove(data.ids[0] ?? 0)
  })

  test('POST /api/channel/ creates one channel for each key in a batch, and one for all keys with multi_to_single', async () => {
    const batch = await as<{ ids: number[] }>('POST /api/channel/', {
      mode: 'batch',
      channel: fields('many', { key: 'k1\nk2\nk3' }),
    })
    expect(batch.data.ids).toHaveLength(3)
    const names = await Promise.all(
      batch.data.ids.map(async (id) => (await as(`GET /api/channel/${id}`)).data['name']),
    )
    expect(names).toEqual(['many-1', 'many-2', 'many-3'])
    const one = await as<{ ids: number[] }>('POST /api/channel/', {
      mode: 'multi_to_single',
      channel: fields('one', { key: 'k1\nk2\nk3' }),
    })
    expect(one.data.ids).toHaveLength(1)
    const { data } = await as<number>('POST /api/channel/batch', {
      ids: [...batch.data.ids, ...one.data.ids, 999_999],
    })
    expect(data).toBe(4)
  })

  test.each([
    ['a key that is blank', { key: '  \n \n' }, 'key: expected at least one key'],
    ['a key with a space in it', { key: 'two words' }, 'keys[0]: expected a key'],
    ['no key', { key: undefined }, 'key: expected at least one key'],
    ['an unknown type', { type: 2 }, 'type: expected one of 0 (any), 1 (OpenAI)'],
    ['a type that is not a number', { type: '1' }, 'type: expected one of'],
    ['no name', { name: '' }, 'name: expected a name for the channel'],
    ['no models', { models: ' , ' }, 'models: expected a list of at least one model'],
    ['a group that is not there', { group: 'gold' }, 'groups[0]: expected'],
    ['an address of another kind', { base_url: 'file:///etc/passwd' }, 'base_url: expected an http://'],
    ['an address with credentials', { base_url: 'https://a:b@c.example' }, 'without a user or password'],
    ['an address with a query', { base_url: 'https://c.example/?x=1' }, 'without ? or #'],
    ['a mapping that is not JSON', { model_mapping: '{' }, 'model_mapping: expected a text that holds'],
    ['a mapping that is a list', { model_mapping: '["a"]' }, 'model_mapping: expected a text that holds'],
    ['a mapping to numbers', { model_mapping: '{"a": 1}' }, 'model_mapping: expected a text for "a"'],
    ['a mapping of __proto__', { model_mapping: '{"__proto__": "a"}' }, 'other names than __proto__'],
    ['an override with a comma too many', { param_override: '{"a": 1,}' }, 'param_override: expected a text'],
    ['an override that is a list', { param_override: '[1]' }, 'param_override: expected a text that holds'],
    [
      'an override that is no text',
      { param_override: { a: 1 } },
      'param_override: expected a text that holds',
    ],
    [
      'statuses that are no JSON',
      { status_code_mapping: '{400: 503}' },
      'status_code_mapping: expected a text',
    ],
    ['statuses that are a number', { status_code_mapping: '5' }, 'status_code_mapping: expected a text'],
    ['a header that is ours', { header_override: '{"Host": "a"}' }, 'headers.Host: expected a header'],
    ['a placeholder', { header_override: '{"X-A": "{api_key}"}' }, 'placeholders are not supported'],
    ['a flag that is a text', { settings: '{"allow_speed": "yes"}' }, 'settings: expected true or false'],
    ['a negative weight', { weight: -1 }, 'weight: expected 0 or more'],
    ['a fraction as priority', { priority: 1.5 }, 'priority: expected a whole number'],
    ['the status of another tool', { status: 3 }, 'status: expected 1 (enabled) or 2 (disabled)'],
    ['an unknown mode', { mode: 'all' }, 'mode: expected single, batch or multi_to_single'],
    [
      'too many other fields',
      { notes: Array(40).fill('x'.repeat(2000)) },
      'may not have more than 65536 characters',
    ],
    ['NUL', { remark: 'a\0b', name: 'n\0' }, ''],
  ])('POST /api/channel/ refuses %s', async (_, of, sentence) => {
    const { status, message } = await as('POST /api/channel/', fields('bad', of))
    expect(status).toBe(400)
    expect(message).toContain(sentence)
    expect(message).not.toContain('two words')
    expect((await as<Page>('GET /api/channel/search?keyword=bad')).data.total).toBe(0)
  })

  test('POST /api/channel/ stores a key that looks like a variable literally, without expanding it', async () => {
    const id = await made('literal', { key: '${HOME}' })
    const { data } = await as<{ key: string }>(`POST /api/channel/${id}/key`, undefined, ROOT_ACCOUNT)
    expect(data.key).toBe('${HOME}')
    await remove(id)
  })

  test('POST /api/channel/ drops __proto__ and keeps other unknown fields', async () => {
    const body = JSON.stringify(fields('odd', { novel: { deep: [1, 2] } })).replace(
      '{',
      '{"__proto__":{"x":1},',
    )
    const { data } = await as<{ ids: number[] }>('POST /api/channel/', body)
    const shown = (await as(`GET /api/channel/${data.ids[0]}`)).data
    expect(shown['novel']).toEqual({ deep: [1, 2] })
    expect(Object.hasOwn(shown, '__proto__')).toBe(false)
    await remove(data.ids[0] ?? 0)
  })

  test('POST /api/channel/ refuses a name that is taken', async () => {
    const id = await made('taken')
    expect(await as('POST /api/channel/', fields('taken'))).toMatchObject({ status: 400 })
    await remove(id)
  })
})

describe('PUT /api/channel/', () => {
  test('PUT /api/channel/ changes only the fields that are sent, and an empty key keeps the stored key', async () => {
    const id = await made('changed', { tag: 'blue', weight: 3, key: 'first-key' })
    const { data } = await as('PUT /api/channel/', { id, key: '', models: 'priced,other', priority: 4 })
    expect(data).toMatchObject({
      id,
      name: 'changed',
      models: 'priced,other',
      priority: 4,
      weight: 3,
      tag: 'blue',
    })
    await fixture.chat('ann', ask('priced'))
    expect(fixture.upstream.only('changed').headers.authorization).toBe('Bearer first-key')
    await as('PUT /api/channel/', { id, key: 'second-key', name: 'renamed' })
    expect((await as<{ key: string }>(`POST /api/channel/${id}/key`, undefined, ROOT_ACCOUNT)).data.key).toBe(
      'second-key',
    )
    expect((await as(`GET /api/channel/${id}`)).data['name']).toBe('renamed')
    await remove(id)
  })

  test('PUT /api/channel/ with an invalid field is a 400, and changes nothing', async () => {
    const id = await made('steady')
    expect(await as('PUT /api/channel/', { id, models: '', priority: 9 })).toMatchObject({ status: 400 })
    expect(await as('PUT /api/channel/', { id, key: '\n' })).toMatchObject({ status: 400 })
    expect((await as(`GET /api/channel/${id}`)).data).toMatchObject({ models: 'priced', priority: 0 })
    await remove(id)
  })

  test.each([[-1], [0], [2 ** 53], ['1e3'], [1.5], [null]])(
    'PUT /api/channel/ refuses %s as an id',
    async (id) => {
      expect(await as('PUT /api/channel/', { id, name: 'x' })).toMatchObject({ status: 400 })
    },
  )

  test('PUT /api/channel/ refuses an unknown channel', async () => {
    expect(await as('PUT /api/channel/', { id: 999_999, name: 'x' })).toMatchObject({ status: 404 })
  })
})

describe('lists of channels', () => {
  test('the list of channels is divided into pages, and can be filtered by group, status, type, keyword and model', async () => {
    const ids = [
      await made('list-a', { group: 'vip', models: 'x-model' }),
      await made('list-b', { type: 14, status: 2 }),
      await made('list-c', { type: 34, models: 'rerank-x' }),
    ]
    const names = async (query: string): Promise<unknown[]> =>
      (await as<Page>(`GET /api/channel/${query}`)).data.items.map(({ name }) => name)
    expect(await names('')).toEqual(['list-a', 'list-b', 'list-c', 'declared'])
    expect(await names('?group=vip')).toEqual(['list-a'])
    expect(await names('?status=2')).toEqual(['list-b'])
    expect(await names('?status=enabled')).toEqual(['list-a', 'list-c', 'declared'])
    expect(await names('?type=34')).toEqual(['list-c'])
    expect(await names('search?keyword=LIST-&model=x')).toEqual(['list-a', 'list-c'])
    expect(await names('search?keyword=&group=vip')).toEqual(['list-a'])
    expect((await as<Page>('GET /api/channel/?p=2&page_size=3')).data).toMatchObject({
      page: 2,
      page_size: 3,
      total: 4,
      items: [{ name: 'declared' }],
    })
    expect(JSON.stringify((await as('GET /api/channel/')).body)).not.toContain('secret-of')
    for (const id of ids) await remove(id)
  })
})

describe('POST /api/channel/:id/key', () => {
  test('POST /api/channel/:id/key is for root only, and is never cached', async () => {
    const id = await made('revealed')
    expect(await as(`POST /api/channel/${id}/key`)).toMatchObject({ status: 403 })
    const { status, headers, data } = await as(`POST /api/channel/${id}/key`, undefined, ROOT_ACCOUNT)
    expect([status, data]).toEqual([200, { key: 'sk-secret-of-revealed' }])
    expect(headers['cache-control']).toContain('no-store')
    await remove(id)
  })
})

describe('unknown ids of channels', () => {
  test.each(['-1', '0', '9007199254740992', '1e3', 'x', '%31'])(
    'an invalid channel id is a 400: %s',
    async (id) => {
      expect(await as(`GET /api/channel/${id}`)).toMatchObject({ status: 400, success: false })
      expect(await as(`DELETE /api/channel/${id}`)).toMatchObject({ status: 400 })
    },
  )

  test('a request for a channel that does not exist is a 404', async () => {
    for (const request of [
      'GET /api/channel/999999',
      'DELETE /api/channel/999999',
      'GET /api/channel/test/999999',
    ] as const)
      expect(await as(request)).toMatchObject({ status: 404 })
  })

  test('a batch of more than 1,000 channels is a 400 with the maximum', async () => {
    const ids = Array.from({ length: 1001 }, (_, index) => 1_000_000 + index)
    const refused = await as('POST /api/channel/batch', { ids })
    expect(refused).toMatchObject({ status: 400, body: { code: 'batch_too_many', limit: 1000, given: 1001 } })
    expect(await as('POST /api/channel/batch', { ids: ids.slice(1) })).toMatchObject({ status: 200, data: 0 })
  })

  test.each([[{ ids: [] }], [{ ids: [0] }], [{ ids: ['1'] }], [{}], [{ ids: 1 }]])(
    'an invalid batch of channels is a 400: %j',
    async (body) => {
      expect(await as('POST /api/channel/batch', body)).toMatchObject({ status: 400 })
    },
  )
})

test.each([
  'GET /api/channel/',
  'GET /api/channel/search',
  'GET /api/channel/1',
  'POST /api/channel/',
  'PUT /api/channel/',
  'DELETE /api/channel/1',
  'POST /api/channel/batch',
  'GET /api/channel/test/1',
  'POST /api/channel/1/key',
  'GET /api/option/',
  'PUT /api/option/',
  'GET /api/group/',
] as const)('a user who is no administrator is refused at the paths for channels: %s', async (request) => {
  expect(await as(request, request.startsWith('GET') ? undefined : {}, ANN)).toMatchObject({
    status: 403,
    success: false,
  })
})
