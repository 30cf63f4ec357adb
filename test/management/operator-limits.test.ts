import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { sluice } from '../fixtures/command.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }

type Key = Readonly<Record<string, unknown>> & { readonly id: number; readonly name: string }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {
      global: { requests: 0, window: '1s' },
      critical: { requests: 0, window: '1s' },
      key: { requests: 3, window: '1h' },
    },
    groups: { default: {}, slow: {} },
    models: { m: { price: PLAIN_PRICE } },
    channels: [channel('m', upstream.baseUrl('m'))],
    mcp: { toolsets: ['safe', 'search', 'all'].map((name) => ({ name, tools: ['*.*'] })) },
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          ...['lax', 'tight', 'plain', 'former'].map((name) => token(name)),
          token('filed', { rate_limit: { requests: 5, parallel: 4, window: '1h' } }),
          token('spender', { budget: 1_000, budget_period: 'week' }),
        ],
        { access_token: ANN.accessToken, rate_limit: { parallel: 50 } },
      ),
      user(3, 'ada', [token('adas', { rate_limit: { requests: 9, window: '1h' } })], {
        access_token: ADA.accessToken,
        role: 10,
      }),
    ],
  }))
})
afterAll(() => fixture?.close())

async function keyOf(account: Account, name: string): Promise<Key> {
  const { data } = await manage<{ items: Key[] }>(fixture.gateway.url, account, 'GET /api/token/')
  const found = data.items.find((one) => one.name === name)
  if (!found) throw new Error(`there is no key ${name}`)
  return found
}

async function change(account: Account, name: string, fields: object) {
  const { id } = await keyOf(account, name)
  return manage<Key>(fixture.gateway.url, account, 'PUT /api/token/', { id, ...fields })
}

/** Makes calls with a key until one is refused; returns the number of admitted ones. */
async function callsOf(key: string): Promise<number> {
  for (let count = 0; count < 20; count++) {
    const { status } = await fixture.chat(key, ask('m'))
    if (status === 429) return count
    expect(status).toBe(200)
  }
  throw new Error('no call was refused')
}

const HUGE = { rate_limit_requests: 1_000_000, rate_limit_tokens: 1_000_000_000, rate_limit_window: 3600 }

describe('the limit of all keys', () => {
  test('the rate limit for all keys also applies to a key whose holder has set a higher limit', async () => {
    expect((await change(ANN, 'token-lax', HUGE)).data).toMatchObject({ ...HUGE, limits_by: '' })
    expect(await callsOf('lax')).toBe(3)
  })
  test("the tighter one of the rate limit for all keys and the key's own rate limit applies", async () => {
    await change(ANN, 'token-tight', { rate_limit_requests: 1, rate_limit_window: 3600 })
    expect(await callsOf('tight')).toBe(1)
  })
  test('the rate limit for all keys is replaced by one that gateway.yaml or an administrator sets for a key', async () => {
    expect(await callsOf('filed')).toBe(5)
    const { data } = await manage<{ key: string; limits_by: string }>(
      fixture.gateway.url,
      ADA,
      'POST /api/user/2/tokens',
      {
        name: 'given',
        expired_time: -1,
        remain_quota: 0,
        unlimited_quota: true,
        rate_limit_requests: 4,
        rate_limit_window: 3600,
      },
    )
    expect(data.limits_by).toBe('operator')
    expect(await callsOf(data.key.slice('sk-'.length))).toBe(4)
  })
  test("the rate limit for all keys also applies to an administrator's own key, but is replaced by root's limit on its own key", async () => {
    const made = { name: 'own', expired_time: -1, remain_quota: 0, unlimited_quota: true, ...HUGE }
    expect((await manage(fixture.gateway.url, ADA, 'POST /api/token/', made)).status).toBe(200)
    expect(await keyOf(ADA, 'own')).toMatchObject({ limits_by: '' })
    expect((await manage(fixture.gateway.url, ROOT_ACCOUNT, 'POST /api/token/', made)).status).toBe(200)
    expect(await keyOf(ROOT_ACCOUNT, 'own')).toMatchObject({ limits_by: 'operator' })
  })
})

describe('limits of a key that the operator set', () => {
  test.each([
    ['more requests', 'filed', { rate_limit_requests: 6 }, 'rate_limit_requests', '5'],
    ['no limit of requests', 'filed', { rate_limit_requests: 0 }, 'rate_limit_requests', '5'],
    ['more calls at once', 'filed', { rate_limit_parallel: 5 }, 'rate_limit_parallel', '4'],
    ['another window', 'filed', { rate_limit_window: 60 }, 'rate_limit_window', '3600'],
    ['a larger budget', 'spender', { budget: 1_001 }, 'budget', '1000'],
    ['no budget', 'spender', { budget: 0 }, 'budget', '1000'],
    ['another period', 'spender', { budget: 9, budget_period: 'month' }, 'budget_period', 'week'],
    ['a longer limit of an administrator', 'adas', { rate_limit_requests: 10 }, 'rate_limit_requests', '9'],
  ])(
    "a limit that an operator set for a key cannot be loosened by the key's holder: %s",
    async (_, name, fields, field, most) => {
      const account = name === 'adas' ? ADA : ANN
      const before = await keyOf(account, `token-${name}`)
      const refused = await change(account, `token-${name}`, { ...fields, name: 'renamed' })
      expect(refused).toMatchObject({ status: 403, success: false, body: { code: 'operator_limit' } })
      expect(refused.message).toMatch(new RegExp(`^${field}: .* ${most},`))
      expect(await keyOf(account, `token-${name}`)).toEqual(before)
    },
  )

  test("a limit that an operator set for a key can be tightened by the key's holder, and remains the maximum", async () => {
    const tight = { rate_limit_requests: 2, rate_limit_tokens: 7, rate_limit_parallel: 1 }
    const tightened = await change(ANN, 'token-filed', tight)
    expect(tightened.data).toMatchObject({ ...tight, limits_by: 'operator' })
    const back = { rate_limit_requests: 5, rate_limit_tokens: 0, rate_limit_parallel: 4 }
    expect((await change(ANN, 'token-filed', back)).data).toMatchObject(back)
    expect((await change(ANN, 'token-filed', { rate_limit_requests: 6 })).status).toBe(403)
    expect((await change(ANN, 'token-spender', { budget: 10 })).data).toMatchObject({ budget: 10 })
    expect((await change(ANN, 'token-spender', { budget: 1_000 })).data).toMatchObject({ budget: 1_000 })
  })

  test("a limit that an operator set for a key stays the operator's when the holder sends its fields back unchanged", async () => {
    const present = await keyOf(ANN, 'token-filed')
    const { id: _, ...fields } = present
    expect((await change(ANN, 'token-filed', { ...fields, model_limits: 'm' })).status).toBe(200)
  })

  test('a limit that an operator set for a key can be set and removed on the command line', async () => {
    const { id } = await keyOf(ANN, 'token-former')
    const budget = (...fields: string[]) =>
      sluice(['token', 'update', String(id), '--budget', ...fields], { DATA_DIR: fixture.gateway.dataDir })
    await change(ANN, 'token-former', { budget: 70, budget_period: 'day' })
    await budget('50', '--per', 'day')
    expect(await keyOf(ANN, 'token-former')).toMatchObject({ budget: 50, limits_by: 'operator' })
    expect((await change(ANN, 'token-former', { budget: 51 })).status).toBe(403)
    await budget('0')
    expect(await keyOf(ANN, 'token-former')).toMatchObject({ budget: 0, limits_by: '' })
    expect((await change(ANN, 'token-former', { budget: 51, budget_period: 'day' })).status).toBe(200)
  })

  describe('limits of a key that the operator created', () => {
    const LIMITS = {
      expired_time: 2_000_000_000,
      remain_quota: 5_000,
      unlimited_quota: false,
      model_limits_enabled: true,
      model_limits: 'm, n',
      allow_ips: '10.0.0.0/8\n192.168.1.1',
      group: 'default',
      vendor_routes: '{"v":"slow"}',
      toolsets: ['safe', 'search'],
    }
    const NONE = {
      expired_time: -1,
      remain_quota: 0,
      unlimited_quota: true,
      model_limits_enabled: false,
      model_limits: '',
      allow_ips: null,
      group: '',
      vendor_routes: '',
      toolsets: [],
    }

    async function given(name: string, fields: object): Promise<Key> {
      const path = 'POST /api/user/2/tokens'
      const made = await manage<Key>(fixture.gateway.url, ADA, path, { name, ...NONE, ...fields })
      expect([made.status, made.message]).toEqual([200, ''])
      return made.data
    }

    test.each<[string, object, string]>([
      ['a larger quota', { remain_quota: 5_001 }, 'remain_quota'],
      ['any quota', { unlimited_quota: true }, 'unlimited_quota'],
      ['another model', { model_limits: 'm, o' }, 'model_limits'],
      ['all models', { model_limits_enabled: false }, 'model_limits_enabled'],
      ['another address', { allow_ips: '10.0.0.1\n192.168.1.2' }, 'allow_ips'],
      ['a wider network', { allow_ips: '10.0.0.0/7' }, 'allow_ips'],
      ['all addresses', { allow_ips: null }, 'allow_ips'],
      ['a later end', { expired_time: 2_000_000_001 }, 'expired_time'],
      ['no end', { expired_time: -1 }, 'expired_time'],
      ['another group', { group: 'slow' }, 'group'],
      ["the user's own group", { group: '' }, 'group'],
      ['another group for a vendor', { vendor_routes: '{"v":"default"}' }, 'vendor_routes'],
      ["a vendor's route less", { vendor_routes: '{"w":"default"}' }, 'vendor_routes'],
      [
        'another group for a vendor without a route',
        { vendor_routes: '{"v":"slow","w":"slow"}' },
        'vendor_routes',
      ],
      ['another toolset', { toolsets: ['safe', 'all'] }, 'toolsets'],
      ['all toolsets', { toolsets: [] }, 'toolsets'],
    ])('the holder of a key that an operator limited cannot give it %s', async (what, fields, field) => {
      const { unlimited_quota: _, model_limits_enabled: __, ...limits } = LIMITS
      expect(await given(what, LIMITS)).toMatchObject({ limits_by: 'operator', operator_limits: limits })
      const before = await keyOf(ANN, what)
      const refused = await change(ANN, what, { guards: [], ...fields })
      expect(refused).toMatchObject({ status: 403, success: false, body: { code: 'operator_limit' } })
      expect(refused.message.startsWith(`${field}: `), refused.message).toBe(true)
      expect(await keyOf(ANN, what)).toEqual(before)
    })

    test('the holder of a key that an operator limited can tighten all of its limits, and restore them', async () => {
      await given('tightened', LIMITS)
      const tight = {
        expired_time: 1_999_999_999,
        remain_quota: 10,
        model_limits: 'n',
        allow_ips: '10.1.0.0/16\n10.2.3.4\n192.168.1.1/32',
        toolsets: ['search'],
      }
      expect((await change(ANN, 'tightened', tight)).data).toMatchObject({ ...tight, limits_by: 'operator' })
      expect((await change(ANN, 'tightened', LIMITS)).data).toMatchObject(LIMITS)
    })

    test('the holder of a key whose quota an operator set cannot raise the remaining quota after calls have spent some', async () => {
      const { key } = (await given('spent', { remain_quota: 1_000_000, unlimited_quota: false })) as Key & {
        readonly key: string
      }
      expect((await fixture.chat(key.slice('sk-'.length), ask('m'))).status).toBe(200)
      const { used_quota: used, remain_quota: left } = await keyOf(ANN, 'spent')
      expect(used).toBeGreaterThan(0)
      expect(Number(left) + Number(used)).toBe(1_000_000)
      expect((await change(ANN, 'spent', { remain_quota: Number(left) + 1 })).status).toBe(403)
      expect((await change(ANN, 'spent', { remain_quota: left })).status).toBe(200)
    })

    test('the holder of a key that an operator created without limits controls all of its limits', async () => {
      expect(await given('free', {})).toMatchObject({ limits_by: '' })
      expect((await change(ANN, 'free', LIMITS)).data).toMatchObject({ ...LIMITS, limits_by: '' })
      expect((await change(ANN, 'free', NONE)).data).toMatchObject(NONE)
    })
  })

  test('GET /api/user/self shows users whether an operator set their limits', async () => {
    const { data } = await manage(fixture.gateway.url, ANN, 'GET /api/user/self')
    expect(data).toMatchObject({ rate_limit_parallel: 50, limits_by: 'operator' })
    const of = await manage(fixture.gateway.url, ADA, 'GET /api/user/self')
    expect(of.data).toMatchObject({ limits_by: '' })
  })
})

describe('limits of keys that gateway.yaml declares', () => {
  const MODELS = Array.from({ length: 7_000 }, (_, index) => `model${String(index).padStart(5, '0')}`)
  const ADDRESSES = Array.from({ length: 2_000 }, (_, index) => `10.1.${index >> 8}.${index & 255}`)
  const config = {
    rate_limits: { global: { requests: 0 } },
    groups: { default: {}, slow: {} },
    models: { m: { price: PLAIN_PRICE } },
    mcp: { toolsets: [{ name: 'safe', tools: ['*.*'] }] },
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('large', {
            model_limits_enabled: true,
            model_limits: MODELS.join(','),
            allow_ips: ADDRESSES.join('\n'),
          }),
          token('before', {
            remain_quota: 100,
            model_limits_enabled: true,
            model_limits: 'm',
            group: 'slow',
            toolsets: ['safe'],
          }),
        ],
        { access_token: ANN.accessToken },
      ),
    ],
  }

  test('texts in gateway.yaml may be longer than those that are written over HTTP, and are the ceiling of the key', async () => {
    const gateway = await startGateway({ config })
    onTestFinished(() => gateway.discard())
    const { data } = await manage<{ items: Key[] }>(gateway.url, ANN, 'GET /api/token/')
    const large = data.items.find(({ name }) => name === 'token-large')
    expect(large?.['model_limits']).toBe(MODELS.join(','))
    const put = (fields: object) => manage(gateway.url, ANN, 'PUT /api/token/', { id: large?.id, ...fields })
    const refused = await put({ model_limits: 'm'.repeat(65_537) })
    expect([refused.status, refused.message]).toEqual([
      400,
      expect.stringMatching(/model_limits.*65536 bytes/),
    ])
    expect((await put({ model_limits: 'another' })).body).toMatchObject({ code: 'operator_limit' })
    expect((await put({ model_limits: MODELS[7], allow_ips: ADDRESSES[7] })).status).toBe(200)
  })

  test('a key from before these limits gets them at the next start, and its holder may change what gateway.yaml does not state', async () => {
    const gateway = await startGateway({ config })
    onTestFinished(() => gateway.discard())
    const keys = async () => {
      const { data } = await manage<{ items: Key[] }>(gateway.url, ANN, 'GET /api/token/')
      return new Map(data.items.map((one) => [one.name.slice('token-'.length), one]))
    }
    await gateway.stop()
    const database = new DatabaseSync(join(gateway.dataDir, 'sluice.db'))
    database.exec("update tokens set operator_terms = '' where name = 'token-before'")
    database.close()
    await gateway.restart()
    const before = (await keys()).get('before')
    expect(before).toMatchObject({
      limits_by: 'operator',
      operator_limits: { remain_quota: 100, model_limits: 'm', group: 'slow', toolsets: ['safe'] },
    })
    const put = (id: number | undefined, fields: object) =>
      manage(gateway.url, ANN, 'PUT /api/token/', { id, ...fields })
    for (const fields of [
      { remain_quota: 101 },
      { model_limits: 'm,n' },
      { group: 'default' },
      { group: '' },
      { toolsets: [] },
    ])
      expect((await put(before?.id, fields)).body).toMatchObject({ code: 'operator_limit' })
    expect((await put(before?.id, { remain_quota: 1 })).status).toBe(200)
    expect((await put(before?.id, { remain_quota: 100, expired_time: 2_000_000_000 })).status).toBe(200)
  })
})
