import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { inGatewayState, GATEWAY_STATES, sluice, untilItRuns } from '../fixtures/command.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { startFixture, type Fixture } from '../fixtures/fixture.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    options: { retries: 1, metrics_token: 'never-shown' },
    groups: { filed: { ratio: 0.5, open: false } },
    models: { m: { price: { input: 2, output: 8 } } },
    channels: [channel('m', upstream.baseUrl('m'), { groups: ['default', 'filed'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
})
afterAll(() => fixture.close())

const as = <Data>(request: Parameters<typeof manage>[2], body?: object, who = ROOT_ACCOUNT) =>
  manage<Data>(fixture.gateway.url, who, request, body)

const put = (key: string, value: unknown) => as('PUT /api/option/', { key, value })

interface Option {
  readonly key: string
  readonly value: string
  readonly managed: boolean
}
const options = async (): Promise<Map<string, string>> =>
  new Map((await as<Option[]>('GET /api/option/')).data.map(({ key, value }) => [key, value]))

describe('GET /api/option/', () => {
  test('GET /api/option/ returns the options in effect, as texts, without secrets', async () => {
    const { data } = await as<Option[]>('GET /api/option/')
    const found = Object.fromEntries(data.map(({ key, value }) => [key, value]))
    expect(found).toMatchObject({
      QuotaPerUnit: '500000',
      USDExchangeRate: '7.3',
      DisplayTokenStatEnabled: 'true',
      'general_setting.quota_display_type': 'USD',
      RetryTimes: '1',
      'token_setting.max_user_tokens': '1000',
      'global.pass_through_request_enabled': 'false',
      GroupRatio: '{"default":1,"filed":0.5}',
      UserUsableGroups: '{"default":"default"}',
      ModelRatio: '{"m":1}',
      CompletionRatio: '{"m":4}',
      CacheRatio: '{"m":0.1}',
      CreateCacheRatio: '{"m":1.25}',
      ModelPrice: '{}',
      cache: '',
      idempotency: '{"keep":"24h","most_answer":33554432}',
    })
    expect(data.find(({ key }) => key === 'RetryTimes')?.managed).toBe(true)
    expect(data.find(({ key }) => key === 'QuotaPerUnit')?.managed).toBe(false)
    expect(JSON.stringify(data)).not.toContain('never-shown')
  })

  test('GET /api/option/ is for root only', async () => {
    expect(await as('GET /api/option/', undefined, ADMIN)).toMatchObject({ status: 403 })
    expect(await as('PUT /api/option/', { key: 'QuotaPerUnit', value: '1' }, ADMIN)).toMatchObject({
      status: 403,
    })
  })
})

describe('PUT /api/option/', () => {
  test.each([
    ['USDExchangeRate', '7.123456789012345678', '7.123456789012345678'],
    ['DisplayTokenStatEnabled', false, 'false'],
    ['general_setting.quota_display_type', 'CNY', 'CNY'],
    ['token_setting.max_user_tokens', '5', '5'],
    ['global.pass_through_request_enabled', 'true', 'true'],
    ['QuotaPerUnit', 1000, '1000'],
    ['hold_tokens', '100', '100'],
    [
      'cache',
      '{"ttl": "90s", "price": 0.5}',
      '{"ttl":"90s","max_ttl":"1h","scope":"token","most":1000000000,"price":"0.5"}',
    ],
    ['cache', '{}', '{"ttl":"0","max_ttl":"1h","scope":"token","most":1000000000,"price":"0"}'],
    ['idempotency', '{"keep": 0, "most_answer": "1MiB"}', '{"keep":"0","most_answer":1048576}'],
  ])(
    'PUT /api/option/ sets the option %s, which takes effect at once and after a restart',
    async (key, value, text) => {
      const before = (await options()).get(key)
      expect(await put(key, value)).toMatchObject({ status: 200, success: true, message: '' })
      expect((await options()).get(key)).toBe(text)
      if (key === 'USDExchangeRate') {
        await fixture.gateway.restart()
        expect((await options()).get(key)).toBe(text)
      }
      await put(key, before)
      expect((await options()).get(key)).toBe(before)
    },
  )

  test.each([
    ['QuotaPerUnit', '0', 'options.quota_per_unit: expected a whole number from 1'],
    ['QuotaPerUnit', '1.5', 'options.quota_per_unit: expected a whole number'],
    ['QuotaPerUnit', '-1', 'options.quota_per_unit: expected a whole number'],
    ['general_setting.quota_display_type', 'EUR', 'options.display: expected one of USD, CNY, TOKENS'],
    ['DisplayTokenStatEnabled', 'maybe', 'options.token_stats: expected true or false'],
    ['USDExchangeRate', '0', 'options.usd_exchange_rate: expected a decimal number above 0'],
    ['GroupRatio', '{', 'GroupRatio: expected a text that holds a JSON object'],
    ['GroupRatio', '{"a": "1"}', 'GroupRatio: expected a number from 0 to 1000000 for "a"'],
    ['GroupRatio', '{"a": -1}', 'GroupRatio: expected a number from 0 to 1000000 for "a"'],
    ['GroupRatio', '{"__proto__": 1}', 'GroupRatio: expected names of 1 to 200 characters'],
    ['UserUsableGroups', '[]', 'UserUsableGroups: expected a text that holds a JSON object'],
    ['ModelRatio', '{"x": 1e400}', 'ModelRatio: expected a number from 0 to 1000000 for "x"'],
    ['ModelRatio', '{"x": 999999}', 'models.x.price.input: expected a decimal number from 0 to 1000000'],
    ['ModelFallback', '{"x": 1}', 'ModelFallback: expected a text or a list of texts for "x"'],
    ['ModelFallback', '{"x": ["x"]}', 'models.x.fallback[0]: expected another model'],
    ['ModelSuccessor', '{"x": "x"}', 'models.x.successor: expected another model'],
    ['ModelSuccessor', '{"x": ["y"]}', 'models.x.successor: expected the name of a model'],
    ['ModelBalance', '{"x": "fastest"}', 'models.x.balance: expected one of weight, least_busy, latency'],
    ['ModelCache', '{"x": "soon"}', 'models.x.cache: expected a duration such as 24h or 720h, or 0'],
    ['cache', '{"ttl": "soon"}', 'options.cache.ttl: expected a duration such as 24h or 720h, or 0'],
    ['cache', '{"time": "1h"}', 'options.cache.time: unknown key'],
    ['cache', '[]', 'cache: expected a text that holds a JSON object'],
    ['idempotency', '{"most_answer": 1}', 'options.idempotency.most_answer: expected a size from 1024'],
    ['metrics_token', 'mine', 'key: expected one of QuotaPerUnit'],
    ['__proto__', '1', 'key: expected one of QuotaPerUnit'],
    ['QuotaPerUnit', null, 'value: expected a text'],
    ['QuotaPerUnit', {}, 'value: expected a text'],
  ])('PUT /api/option/ refuses an invalid value of an option: %s = %j', async (key, value, sentence) => {
    const before = await options()
    const { status, message } = await put(key, value)
    expect(status).toBe(400)
    expect(message).toContain(sentence)
    expect(await options()).toEqual(before)
  })

  test.each([
    ['RetryTimes', '9'],
    ['GroupRatio', '{"default": 1, "filed": 0.6}'],
    ['UserUsableGroups', '{"default": "", "filed": ""}'],
    ['ModelRatio', '{"m": 7}'],
    ['ModelPrice', '{"m": 7}'],
    ['ModelFallback', '{"m": ["n"]}'],
  ])(
    'PUT /api/option/ refuses with 409 to change an option that gateway.yaml sets: %s',
    async (key, value) => {
      const answer = await put(key, value)
      expect([answer.status, answer.body['code']]).toEqual([409, 'managed_by_file'])
    },
  )

  test('PUT /api/option/ accepts every value that GET /api/option/ returned, also those that gateway.yaml declares', async () => {
    for (const [key, value] of await options())
      expect([key, (await put(key, value)).status]).toEqual([key, 200])
  })
})

describe('groups', () => {
  test('a group is created by a ratio in the option GroupRatio, opened to users by UserUsableGroups, and removed with its ratio', async () => {
    await put('GroupRatio', '{"default": 1, "filed": 0.5, "gold": 0.10}')
    expect((await as('GET /api/group/', undefined, ADMIN)).data).toEqual(['default', 'filed', 'gold'])
    expect((await as('GET /api/user/self/groups', undefined, ANN)).data).toEqual({
      default: { ratio: 1, desc: 'default' },
    })
    await put('UserUsableGroups', '{"default": "", "gold": "for friends"}')
    expect((await as('GET /api/user/self/groups', undefined, ANN)).data).toEqual({
      default: { ratio: 1, desc: 'default' },
      gold: { ratio: 0.1, desc: 'gold' },
    })
    await put('GroupRatio', '{"default": 1, "filed": 0.5}')
    expect((await as('GET /api/group/', undefined, ADMIN)).data).toEqual(['default', 'filed'])
  })

  test('a group cannot be removed while a channel names it', async () => {
    await put('GroupRatio', '{"gold": 0.1}')
    const { data } = await as<{ ids: number[] }>('POST /api/channel/', {
      name: 'golden',
      type: 1,
      key: 'k',
      models: 'x',
      group: 'gold',
    })
    const { status, message } = await put('GroupRatio', '{}')
    expect([status, message]).toEqual([400, expect.stringContaining('a group that groups declares')])
    await as(`DELETE /api/channel/${data.ids[0]}`)
    expect((await put('GroupRatio', '{}')).status).toBe(200)
  })
})

test.each(GATEWAY_STATES)(
  'a command can create a user in a group that was created over HTTP, %s',
  async (manner) => {
    await put('GroupRatio', '{"silver": 0.9}')
    const { dataDir } = fixture.gateway
    const outcome = await inGatewayState(manner, fixture.gateway, () =>
      sluice(['user', 'create', `silver-${manner.length}`, '--group', 'silver', '--unlimited-quota'], {
        DATA_DIR: dataDir,
        GATEWAY_SECRET,
        GATEWAY_CONFIG: join(dataDir, 'gateway.yaml'),
      }),
    )
    await untilItRuns(fixture.gateway)
    expect([outcome.code, outcome.err]).toEqual([0, ''])
  },
)

describe('settings of models', () => {
  test('options set fallbacks, successors and other settings of a model besides its price, and remove them one by one', async () => {
    await put('ModelRatio', '{"m": 1, "novel": 2}')
    await put('ModelFallback', '{"novel": ["m"]}')
    await put('ModelSuccessor', '{"novel": "m"}')
    await put('ModelBalance', '{"novel": "latency"}')
    await put('ModelCache', '{"new": "0", "novel": "10m"}')
    const set = Object.fromEntries(await options())
    expect(set).toMatchObject({
      ModelFallback: '{"novel":["m"]}',
      ModelSuccessor: '{"novel":"m"}',
      ModelBalance: '{"novel":"latency"}',
      ModelCache: '{"new":"0","novel":"10m"}',
    })
    expect(JSON.parse(String(set['ModelRatio']))).toMatchObject({ novel: 2 })
    await put('ModelFallback', '{}')
    expect(Object.fromEntries(await options())).toMatchObject({
      ModelFallback: '{}',
      ModelSuccessor: '{"novel":"m"}',
      ModelBalance: '{"novel":"latency"}',
    })
    await put('ModelSuccessor', '{}')
    await put('ModelBalance', '{}')
    await put('ModelCache', '{}')
    await put('ModelRatio', '{"m": 1}')
    expect(Object.fromEntries(await options())['ModelBalance']).toBe('{}')
  })
})
