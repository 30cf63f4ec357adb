import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const NOWHERE = 'http://127.0.0.1:9/v1'
const of = (name: string, models: string[], fields: Record<string, unknown> = {}) =>
  channel(name, NOWHERE, { models, ...fields })

const CONFIGURATION = {
  groups: {
    default: { ratio: 1 },
    open: { ratio: 1 },
    vip: { ratio: 1, open: false },
    empty: { ratio: 1 },
  },
  models: {
    ...priced(['talker', 'both', 'org/part/slashed', 'vip-only', 'declared', 'declared-thinking', 'a b%c']),
    writer: { vendor: 'scribes', price: PLAIN_PRICE },
    nobodys: { price: PLAIN_PRICE },
    sorter: { vendor: 'acme', price: { request: 0.002 } },
  },
  channels: [
    of('chat', ['talker', 'both', 'org/part/slashed', 'no-price-at-all', 'a b%c', 'nobodys']),
    of('messages', ['both', 'writer', 'declared', 'declared-thinking'], { protocol: 'messages' }),
    of('rerank', ['sorter'], { protocol: 'rerank' }),
    of('open', ['writer', 'talker'], { groups: ['open'] }),
    of('vip', ['vip-only'], { groups: ['vip'] }),
  ],
  users: [
    ROOT,
    user(2, 'ann', [
      token('ann'),
      token('limits', { model_limits_enabled: true, model_limits: 'writer, both,vip-only,declared,unknown' }),
      token('nolimits', { model_limits_enabled: true, model_limits: '' }),
      token('open', { group: 'open' }),
      token('empty', { group: 'empty' }),
      token('closed'),
      token('routed', { vendor_routes: '{"scribes":"open"}' }),
      token('closedroute'),
      token('expired', { expired_time: 1_000_000_000 }),
      token('exhausted', { remain_quota: 0 }),
      token('disabled', { status: 2 }),
      token('elsewhere', { allow_ips: '192.0.2.1' }),
    ]),
    user(3, 'vic', [token('vic')], { group: 'vip' }),
    user(4, 'banned', [token('ofbanned')], { status: 2 }),
  ],
}
const ALL = [
  'a b%c',
  'both',
  'declared',
  'declared-thinking',
  'nobodys',
  'org/part/slashed',
  'sorter',
  'talker',
  'writer',
]

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({ config: CONFIGURATION })
  // A token's group may be closed after the token was created.
  const database = databaseOf(gateway.dataDir)
  database.write("update tokens set group_name = 'vip' where name = 'token-closed'")
  database.write(`update tokens set vendor_routes = '{"acme":"vip"}' where name = 'token-closedroute'`)
})
afterAll(() => gateway?.discard())

type Headers = Record<string, string>
const bearer = (key: string): Headers => ({ authorization: `Bearer sk-${key}` })
const native = (key: string): Headers => ({ 'x-api-key': `sk-${key}`, 'vendor-version': '2023-06-01' })
const get = (path: string, headers: Headers = {}): Promise<FullResponse> =>
  call(gateway.url, undefined, { method: 'GET', path, headers })

interface ModelBody {
  readonly data: readonly { readonly id: string; readonly supported_endpoint_types: readonly string[] }[]
}

async function body(path: string, headers: Headers): Promise<ModelBody> {
  const answer = await get(path, headers)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers['content-type']).toBe('application/json')
  return JSON.parse(answer.text)
}

const ids = async (key: string): Promise<string[]> =>
  (await body('/v1/models', bearer(key))).data.map(({ id }) => id)

const CHAT = (id: string, vendor: string, types: string[]) => ({
  id,
  object: 'model',
  created: 1_626_777_600,
  owned_by: vendor,
  supported_endpoint_types: types,
  endpoints: types.length > 0 ? ['chat', 'messages', 'responses', 'gemini', 'completions'] : ['rerank'],
})
const MESSAGES = (id: string) => ({
  id,
  type: 'model',
  display_name: id,
  created_at: '2021-07-20T10:40:00Z',
  lifecycle: 'active',
  capabilities: null,
  deprecated_at: null,
  line: null,
  max_input_tokens: null,
  max_tokens: null,
  retires_at: null,
})
const ALTERNATE = (id: string) => ({
  name: `models/${id}`,
  displayName: id,
  supportedGenerationMethods: ['generateContent', 'countTokens'],
})

describe('the listed models', () => {
  test('the models are listed that channels serve to the group and that have a price, sorted by name', async () => {
    expect(await ids('ann')).toEqual(ALL)
  })
  test('the models of the token’s own group are listed', async () => {
    expect(await ids('open')).toEqual(['talker', 'writer'])
    expect(await ids('empty')).toEqual([])
  })
  test('the models of the user’s group are listed where the token names no group', async () => {
    expect(await ids('vic')).toEqual(['vip-only'])
  })
  test("only the models of the key's model_limits are listed, where the key has them", async () => {
    // A thinking suffix needs no entry itself.
    expect(await ids('limits')).toEqual(['both', 'declared', 'declared-thinking', 'writer'])
    expect(await ids('nolimits')).toEqual([])
  })
  test('the models of the groups that vendor_routes name for a vendor are listed', async () => {
    expect(await ids('routed')).toEqual(ALL)
    const { data } = await body('/v1/models', bearer('routed'))
    const types = (id: string) => data.find((model) => model.id === id)?.supported_endpoint_types
    // In `open` another channel serves the model than in `default`.
    expect(types('writer')).toEqual(['compat'])
  })
  test('models of a vendor are not listed if vendor_routes name a group for it that is closed to the user', async () => {
    expect(await ids('closedroute')).toEqual(['nobodys', 'writer'])
  })
  test('the model list is a 403 where all groups of the key are closed to the user', async () => {
    const answer = await get('/v1/models', bearer('closed'))
    expect(answer.status).toBe(403)
    expect(answer.json().error).toMatchObject({ type: 'permission_error', code: 'group_not_allowed' })
  })
  test('models without a price are listed where unpriced models are free', async () => {
    await gateway.apply({ ...CONFIGURATION, options: { unpriced_models: 'free' } })
    try {
      const answer = await call(gateway.url, undefined, { method: 'GET', path: '/v1/models', key: 'ann' })
      expect(JSON.parse(answer.text).data.map(({ id }: { id: string }) => id)).toEqual(
        [...ALL, 'no-price-at-all'].toSorted(),
      )
    } finally {
      await gateway.apply(CONFIGURATION)
    }
  })
})

describe('GET /v1/models', () => {
  test('the model list has an additional empty field models for clients that send client_version, as Codex does', async () => {
    const list = await body('/v1/models', bearer('ann'))
    expect(await body('/v1/models?client_version=0.99.0', bearer('ann'))).toEqual({ ...list, models: [] })
    expect(list).not.toHaveProperty('models')
  })

  test('the model list has the chat format for bearer tokens', async () => {
    expect(await body('/v1/models', bearer('ann'))).toEqual({
      success: true,
      object: 'list',
      data: [
        CHAT('a b%c', 'acme', ['compat']),
        CHAT('both', 'acme', ['vendor', 'compat']),
        CHAT('declared', 'acme', ['vendor']),
        CHAT('declared-thinking', 'acme', ['vendor']),
        CHAT('nobodys', 'custom', ['compat']),
        CHAT('org/part/slashed', 'acme', ['compat']),
        CHAT('sorter', 'acme', []),
        CHAT('talker', 'acme', ['compat']),
        CHAT('writer', 'scribes', ['vendor']),
      ],
    })
  })

  test.each(['vendor-version', 'anthropic-version'])(
    'the model list has the messages format where x-api-key and %s are sent together',
    async (version) => {
      expect(await body('/v1/models', { 'x-api-key': 'sk-open', [version]: '2023-06-01' })).toEqual({
        data: [MESSAGES('talker'), MESSAGES('writer')],
        first_id: 'talker',
        has_more: false,
        last_id: 'writer',
      })
    },
  )

  test('the model list has the messages format for bearer tokens with anthropic-version', async () => {
    const headers = { ...bearer('open'), 'anthropic-version': '2023-06-01' }
    expect(await body('/v1/models', headers)).toMatchObject({
      data: [MESSAGES('talker'), MESSAGES('writer')],
      first_id: 'talker',
    })
    expect(await body('/v1/models/writer', headers)).toEqual(MESSAGES('writer'))
    const refused = await get('/v1/models', { ...bearer('nobody'), 'anthropic-version': '2023-06-01' })
    expect(refused.status).toBe(401)
    expect(refused.json()).toMatchObject({ type: 'error', error: { type: 'gateway_error' } })
  })

  test('an empty model list in the messages format has no first and last id', async () => {
    expect(await body('/v1/models', native('empty'))).toEqual({
      data: [],
      first_id: null,
      has_more: false,
      last_id: null,
    })
  })

  test.each([
    ['x-api-key alone', { 'x-api-key': 'sk-ann' }],
    ['vendor-version beside a bearer', { ...bearer('ann'), 'vendor-version': '2023-06-01' }],
    ['an empty x-api-key', { ...bearer('ann'), 'x-api-key': '', 'vendor-version': '2023-06-01' }],
    ['an empty version', { 'x-api-key': 'sk-ann', 'vendor-version': '' }],
    ['an empty anthropic-version', { ...bearer('ann'), 'anthropic-version': '' }],
  ])('the model list has the chat format for %s', async (_, headers) => {
    expect(await body('/v1/models', headers)).toMatchObject({ success: true, object: 'list' })
  })

  test('the model list has all models, whatever page is requested', async () => {
    for (const headers of [bearer('ann'), native('ann')]) {
      const answer = await body('/v1/models?limit=1&after_id=talker&before_id=both', headers)
      expect(answer.data).toHaveLength(ALL.length)
    }
  })

  test('x-api-key is preferred to a bearer token on requests for models', async () => {
    const both = { ...bearer('ann'), 'x-api-key': 'sk-open' }
    expect((await body('/v1/models', both)).data).toHaveLength(2)
    expect((await get('/v1/models', { ...bearer('ann'), 'x-api-key': 'sk-nobody' })).status).toBe(401)
  })

  test.each([
    ['x-alt-api-key', '/v1/models', { 'x-alt-api-key': 'sk-ann' }],
    ['key in the query', '/v1/models?key=sk-ann', {}],
  ])('the model list is a 401 with %s alone', async (_, path, headers) => {
    const answer = await get(path, headers)
    expect(answer.status).toBe(401)
    expect(answer.json().error.type).toBe('authentication_error')
  })
})

describe('GET /v1/models of a Google client', () => {
  test("a request for the model list may have its key in x-goog-api-key, and then gets Google's format", async () => {
    expect(await body('/v1/models', { 'x-goog-api-key': 'sk-open' })).toEqual({
      models: [ALTERNATE('talker'), ALTERNATE('writer')],
      nextPageToken: null,
    })
  })

  test('x-api-key takes precedence over x-goog-api-key, and selects its own format of the model list', async () => {
    const both = { 'x-goog-api-key': 'sk-nobody', 'x-api-key': 'sk-open' }
    expect((await body('/v1/models', both)).data).toHaveLength(2)
  })
})

describe('the paths with a fixed format', () => {
  test("an unknown model of /v1beta is an error in Google's format", async () => {
    const answer = await get('/v1beta/models/nothing', { 'x-goog-api-key': 'sk-open' })
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text).error).toMatchObject({ code: 404, status: 'NOT_FOUND' })
  })

  const WAYS: [string, string, Headers][] = [
    ['x-alt-api-key', '', { 'x-alt-api-key': 'sk-open' }],
    ['x-goog-api-key', '', { 'x-goog-api-key': 'sk-open' }],
    ['key in the query', '?pageSize=1&key=sk-open', {}],
    ['a bearer', '', bearer('open')],
    ['a version beside it', '', { ...bearer('open'), 'vendor-version': '2023-06-01', 'x-api-key': 'sk-x' }],
  ]

  test.each(WAYS)(
    "the model list at /v1beta/models has Google's format, with %s",
    async (_, query, headers) => {
      expect(await body(`/v1beta/models${query}`, headers)).toEqual({
        models: [ALTERNATE('talker'), ALTERNATE('writer')],
        nextPageToken: null,
      })
    },
  )
  test.each(WAYS)(
    'the model list at /v1beta/openai/models has the chat format, with %s',
    async (_, query, headers) => {
      expect(await body(`/v1beta/openai/models${query}`, headers)).toEqual({
        success: true,
        object: 'list',
        data: [CHAT('talker', 'acme', ['compat']), CHAT('writer', 'scribes', ['compat'])],
      })
    },
  )
  test.each(['/v1beta/models', '/v1beta/openai/models'])(
    'a list of models at a path of Google refuses x-api-key: %s',
    async (path) => {
      expect((await get(path, native('ann'))).status).toBe(401)
    },
  )
})

describe('GET /v1/models/{model_id}', () => {
  test('a single model is returned like its entry in the model list, in the requested format', async () => {
    const path = '/v1/models/writer'
    expect(await body(path, bearer('ann'))).toEqual(CHAT('writer', 'scribes', ['vendor']))
    expect(await body(path, { 'x-api-key': 'sk-ann' })).toEqual(CHAT('writer', 'scribes', ['vendor']))
    expect(await body(path, native('ann'))).toEqual(MESSAGES('writer'))
    expect(await body(path, { 'x-alt-api-key': 'sk-ann' })).toEqual(ALTERNATE('writer'))
    expect(await body(path, { 'x-goog-api-key': 'sk-ann' })).toEqual(ALTERNATE('writer'))
    expect(await body(`${path}?key=sk-ann`, {})).toEqual(ALTERNATE('writer'))
  })

  test.each(['org/part/slashed', 'org%2Fpart%2Fslashed', 'org%2fpart/slashed', '%6Frg/part/slashed'])(
    'a model whose name has slashes is found by the path segments %s',
    async (written) => {
      expect(await body(`/v1/models/${written}`, bearer('ann'))).toMatchObject({ id: 'org/part/slashed' })
    },
  )
  test('a percent-encoded model name in a path is decoded once', async () => {
    expect(await body('/v1/models/a%20b%25c', bearer('ann'))).toMatchObject({ id: 'a b%c' })
    expect((await get('/v1/models/org%252Fpart%252Fslashed', bearer('ann'))).status).toBe(404)
  })
  test.each(['/v1%2Fmodels', '/v1/models%2Fwriter', '/v1%2Fmodels/writer', '/v1beta%2Fmodels'])(
    'a path with percent-encoded slashes before the model name is a 404: %s',
    async (path) => {
      const answer = await get(path, bearer('ann'))
      expect(answer.status).toBe(404)
      expect(answer.json().error.code).toBe('not_found')
    },
  )

  test.each([
    ['no channel serves', 'no-such-model', 'ann'],
    ['the key is not limited to', 'talker', 'limits'],
    ['has no price', 'no-price-at-all', 'ann'],
    ['is served to another group', 'vip-only', 'ann'],
    ['is only a suffix', 'both-thinking', 'ann'],
    ['is a word of JavaScript', '__proto__', 'ann'],
    ['is in other letters', 'Talker', 'ann'],
    ['ends in a slash', 'talker/', 'ann'],
    ['has dots', '../models', 'ann'],
    ['has dots, encoded', '%2e%2e%2fmodels', 'ann'],
    ['has a zero', 'talker%00', 'ann'],
    ['breaks lines', 'a%0d%0ax-evil:%201', 'ann'],
    ['is long', 'x'.repeat(10_000), 'ann'],
  ])('a request for a model by a name that %s is a 404', async (_, name, key) => {
    const answer = await get(`/v1/models/${name}`, bearer(key))
    expect(answer.status, answer.text).toBe(404)
    const { error } = answer.json()
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'model_not_found' })
    expect(error.message).toMatch(/\(request id: \S+\)$/)
    expect(error.message.length).toBeLessThan(400)
    expect(answer.headers).not.toHaveProperty('x-evil')
  })

  test("an unknown model is a 404 in the gateway's error format for clients of the messages format", async () => {
    const answer = await get('/v1/models/no-such-model', native('ann'))
    expect(answer.status).toBe(404)
    expect(answer.json()).toEqual({
      type: 'error',
      error: {
        type: 'gateway_error',
        code: 'model_not_found',
        message: expect.stringMatching(/ \(request id: \S+\)$/),
      },
      request_id: answer.headers['request-id'],
    })
  })

  test.each(['%', '%2', '%zz', 'a%ff', '%c3%28', 'x%E0%A4%A'])(
    'a model name with broken percent encoding is a 400: %s',
    async (name) => {
      const answer = await get(`/v1/models/${name}`, bearer('ann'))
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_request' })
    },
  )

  test('a model path with an empty name is a 404', async () => {
    expect((await get('/v1/models/', bearer('ann'))).status).toBe(404)
  })
})

describe('clients that may not list models', () => {
  const PATHS = ['/v1/models', '/v1/models/talker', '/v1beta/models', '/v1beta/openai/models']
  test.each([
    ['nobody', 401, 'invalid_api_key'],
    ['disabled', 401, 'token_disabled'],
    ['expired', 401, 'token_expired'],
    ['exhausted', 401, 'token_exhausted'],
    ['ofbanned', 403, 'user_disabled'],
    ['elsewhere', 403, 'ip_not_allowed'],
  ])('the model list is refused for the key %s', async (key, status, code) => {
    for (const path of PATHS) {
      const answer = await get(path, bearer(key))
      expect(answer.status, path).toBe(status)
      expect(answer.json().error.code).toBe(code)
      expect(answer.json().error.message).toMatch(/\(request id: \S+\)$/)
    }
    for (const path of PATHS.slice(0, 2)) {
      const answer = await get(path, native(key))
      expect(answer.status).toBe(status)
      expect(answer.json().error).toEqual({ type: 'gateway_error', code, message: expect.any(String) })
    }
  })
  test('the model list is refused with 401 without a key', async () => {
    for (const path of PATHS) expect((await get(path)).status, path).toBe(401)
  })
})

describe('other methods of the model paths', () => {
  const ask = (method: string, path: string, headers: Headers = bearer('ann')): Promise<FullResponse> =>
    call(gateway.url, undefined, { method, path, headers })

  test('DELETE of a model is not implemented, whether the model exists or not', async () => {
    for (const name of ['talker', 'no-such-model', 'org/part/slashed', 'org%2Fpart']) {
      const answer = await ask('DELETE', `/v1/models/${name}`)
      expect(answer.status).toBe(501)
      expect(answer.json().error).toEqual({
        type: 'gateway_error',
        code: 'not_implemented',
        message: expect.stringMatching(/ \(request id: \S+\)$/),
      })
    }
    expect((await ask('DELETE', '/v1/models/talker', {})).status).toBe(401)
    expect(await ids('ann')).toContain('talker')
  })

  test.each(['POST', 'PUT', 'PATCH'])(
    'a model path with the method %s is a 405 that names the supported methods',
    async (method) => {
      for (const path of ['/v1/models', '/v1beta/models', '/v1beta/openai/models']) {
        const answer = await ask(method, path)
        expect(answer.status).toBe(405)
        expect(answer.headers.allow).toBe('GET, HEAD')
      }
      const one = await ask(method, `/v1/models/${'x'.repeat(10_000)}`)
      expect(one.status).toBe(405)
      expect(one.headers.allow).toBe('GET, HEAD, DELETE')
      expect(one.bytes.length).toBeLessThan(600)
    },
  )
})

test('an API key in the query of a request for models is not logged', async () => {
  await get('/v1beta/models?key=sk-ann', {})
  await get('/v1/models/talker?key=sk-ann', {})
  await expect.poll(() => gateway.logs()).toContain('/v1/models/talker')
  expect(gateway.logs()).not.toContain('sk-ann')
})
