import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { manage } from '../fixtures/account.ts'
import {
  channel,
  type Configuration,
  ROOT,
  token,
  user,
  withoutModelLists,
} from '../fixtures/configuration.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'
import { eventually } from '../operations/program.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

interface Shown {
  readonly id: number
  readonly name: string
  readonly managed: boolean
  readonly managed_by: string
  readonly header_override: string
  readonly base_url: string
  readonly type: number
}

let fixture: Fixture
let base: Configuration
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    base = {
      rate_limits: {},
      models: { m: { price: { input: 2, output: 8 } } },
      channels: [
        channel('filed', upstream.baseUrl('filed'), {
          models: ['m'],
          headers: { 'x-team': 'secret-of-a-header' },
        }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
    return base
  })
})
afterAll(() => fixture.close())

const as = <Data>(request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(fixture.gateway.url, ROOT_ACCOUNT, request, body)

const channels = async (): Promise<Shown[]> => (await as<{ items: Shown[] }>('GET /api/channel/')).data.items

const stored = (name: string, of: object = {}) =>
  as<{ ids: number[] }>('POST /api/channel/', {
    name,
    type: 1,
    key: 'k',
    base_url: fixture.upstream.baseUrl(name).replace(/\/v1$/, ''),
    models: 'n',
    ...of,
  })

let readings = 0
const reload = async (config: Configuration): Promise<void> => {
  const before = fixture.gateway.logs().split('"configuration applied"').length
  writeFileSync(
    join(fixture.gateway.dataDir, 'gateway.yaml'),
    stringify(withoutModelLists({ ...config, options: { hold_tokens: 5000 + readings++ } })),
  )
  await eventually(() => fixture.gateway.logs().split('"configuration applied"').length > before, 'a reading')
}

describe('a channel of gateway.yaml', () => {
  test("a channel of gateway.yaml is shown as managed, without its key and without its headers' values", async () => {
    const [shown, ...more] = await channels()
    expect(more).toEqual([])
    expect(shown).toMatchObject({
      name: 'filed',
      managed: true,
      managed_by: 'gateway.yaml',
      type: 8,
      base_url: fixture.upstream.baseUrl('filed').replace(/\/v1$/, ''),
    })
    expect(JSON.parse(shown?.header_override ?? '')).toEqual({ 'x-team': '' })
    expect(shown?.id).toBeGreaterThanOrEqual(1_000_000_000)
    expect((await as<Shown>(`GET /api/channel/${shown?.id}`)).data).toEqual(shown)
  })

  test('a channel of gateway.yaml has the same id after a restart', async () => {
    const [before] = await channels()
    await fixture.gateway.restart()
    expect((await channels())[0]?.id).toBe(before?.id)
  })

  test('a channel of gateway.yaml cannot be changed or removed over HTTP, and its key cannot be shown', async () => {
    const id = (await channels())[0]?.id ?? 0
    const refused = await Promise.all([
      as('PUT /api/channel/', { id, priority: 1 }),
      as(`DELETE /api/channel/${id}`),
      as('POST /api/channel/batch', { ids: [id] }),
      as(`POST /api/channel/${id}/key`),
      stored('filed'),
    ])
    expect(refused.map(({ status, body }) => [status, body['code']])).toEqual(
      refused.map(() => [409, 'managed_by_file']),
    )
    expect(await channels()).toHaveLength(1)
  })
})

describe('a reload of gateway.yaml', () => {
  test('channels and options that were set over HTTP are kept at a reload of gateway.yaml', async () => {
    await stored('beside')
    await as('PUT /api/option/', { key: 'ModelRatio', value: '{"n": 1}' })
    expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
    await reload({ ...base, groups: { more: { ratio: 2 } } })
    expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
    expect((await channels()).map(({ name }) => name)).toEqual(['beside', 'filed'])
  })

  test('a channel of gateway.yaml replaces a stored one of the same name, which returns when the declared one is removed', async () => {
    const twin = channel('beside', fixture.upstream.baseUrl('twin'), { models: ['n'] })
    await reload({ ...base, channels: [...(base.channels ?? []), twin] })
    fixture.upstream.forget('beside')
    expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
    expect([fixture.upstream.received('twin').length, fixture.upstream.received('beside').length]).toEqual([
      1, 0,
    ])
    await expect.poll(() => fixture.gateway.logs()).toContain('channels beside, set over HTTP, is left out')
    const own = (await channels()).find(({ name, managed }) => name === 'beside' && !managed)
    expect((await as(`GET /api/channel/test/${own?.id}`)).status).toBe(400)
    await reload(base)
    expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
    expect(fixture.upstream.received('beside').length).toBe(1)
  })

  test('a reload of gateway.yaml that removes a group leaves out the stored channels of that group, and nothing else', async () => {
    await reload({ ...base, groups: { gone: { ratio: 1 } } })
    expect((await stored('orphan', { group: 'gone', models: 'o' })).status).toBe(200)
    await reload(base)
    await expect
      .poll(() => fixture.gateway.logs())
      .toContain('channels orphan, set over HTTP, is left out: groups[0]: expected a group')
    expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
    // An entry that is left out already does not prevent other changes, and can be corrected or removed.
    expect((await stored('later', { models: 'l' })).status).toBe(200)
    const orphan = (await channels()).find(({ name }) => name === 'orphan')
    expect((await as('PUT /api/channel/', { id: orphan?.id, priority: 2 })).status).toBe(400)
    expect((await as('PUT /api/channel/', { id: orphan?.id, group: 'default' })).status).toBe(200)
  })

  test('an option in a reloaded gateway.yaml overrides the same option that was stored over HTTP', async () => {
    await as('PUT /api/option/', { key: 'RetryTimes', value: '7' })
    const retries = async () =>
      (await as<{ key: string; value: string }[]>('GET /api/option/')).data.find(
        ({ key }) => key === 'RetryTimes',
      )?.value
    expect(await retries()).toBe('7')
    const text = stringify(withoutModelLists({ ...base, options: { retries: 3 } }))
    writeFileSync(join(fixture.gateway.dataDir, 'gateway.yaml'), text)
    await eventually(async () => (await retries()) === '3', 'the option of the file')
    writeFileSync(join(fixture.gateway.dataDir, 'gateway.yaml'), stringify(withoutModelLists(base)))
    await eventually(async () => (await retries()) === '7', 'the stored option')
  })
})

test('channels that are created from keys in the environment cannot be changed, and stored channels can exist beside them', async () => {
  const gateway = await startGateway({
    config: { rate_limits: {}, users: [ROOT] },
    env: { MISTRAL_API_KEY: 'key-of-mistral' },
  })
  try {
    const ask = <Data>(request: Parameters<typeof manage>[2], body?: object) =>
      manage<Data>(gateway.url, ROOT_ACCOUNT, request, body)
    const list = async () => (await ask<{ items: Shown[] }>('GET /api/channel/')).data.items
    const [mistral] = await list()
    expect(mistral).toMatchObject({
      name: 'mistral',
      type: 42,
      base_url: 'https://api.mistral.ai',
      managed_by: 'environment',
    })
    const made = { name: 'own', type: 1, key: 'k', models: 'x' }
    expect((await ask('POST /api/channel/', made)).status).toBe(200)
    expect((await ask('POST /api/channel/', { ...made, name: 'mistral' })).status).toBe(409)
    expect((await list()).map(({ name, managed }) => [name, managed])).toEqual([
      ['own', false],
      ['mistral', true],
    ])
  } finally {
    await gateway.discard()
  }
})
