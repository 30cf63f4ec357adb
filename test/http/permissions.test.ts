import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const lane = (name: string, models: string[], groups: string[]) =>
      channel(name, upstream.baseUrl(name), { models, groups })
    return {
      groups: { default: { ratio: 1 }, vip: { ratio: 0.5 }, inner: { ratio: 1, open: false } },
      models: {
        alpha: { vendor: 'acme', price: PLAIN_PRICE },
        beta: { vendor: 'bolt', price: PLAIN_PRICE },
        lonely: { vendor: 'acme', price: PLAIN_PRICE },
      },
      channels: [
        lane('plain', ['alpha', 'beta'], ['default']),
        lane('fine', ['alpha', 'beta', 'lonely'], ['vip']),
        lane('closed', ['alpha'], ['inner']),
      ],
      users: [
        ROOT,
        user(2, 'ann', [
          token('free'),
          token('limited', { model_limits_enabled: true, model_limits: 'beta,gamma' }),
          token('spaced', { model_limits_enabled: true, model_limits: ' alpha , beta' }),
          token('off', { model_limits_enabled: false, model_limits: 'beta' }),
          token('nothing', { model_limits_enabled: true, model_limits: '' }),
          token('vip', { group: 'vip' }),
          // The configuration forbids these tokens' groups, so the database is written directly, below.
          token('intruder', { group: 'vip' }),
          token('routed', { group: 'vip', vendor_routes: '{"acme":"default"}' }),
          token('sneaky', { vendor_routes: '{"acme":"vip"}' }),
          token('stranded', { group: 'vip' }),
        ]),
        user(3, 'insider', [token('inside'), token('inside2', { group: 'inner' })], { group: 'inner' }),
      ],
    }
  })
  const database = databaseOf(fixture.gateway.dataDir)
  database.write("update tokens set group_name = 'inner' where name = 'token-intruder'")
  database.write(`update tokens set vendor_routes = '{"acme":"inner"}' where name = 'token-sneaky'`)
  database.write("update tokens set group_name = 'abolished' where name = 'token-stranded'")
})
afterAll(() => fixture?.close())

async function laneOf(key: string, model: string): Promise<string> {
  const lanes = ['plain', 'fine', 'closed']
  for (const lane of lanes) fixture.upstream.script(lane, { kind: 'whole' })
  const answer = await fixture.chat(key, ask(model))
  expect(answer.status, answer.text).toBe(200)
  return lanes.filter((lane) => fixture.upstream.received(lane).length > 0).join()
}

function forbidden(answer: FullResponse): string {
  expect(answer.status, answer.text).toBe(403)
  expect(answer.json().error.type).toBe('permission_error')
  return answer.json().error.message
}

describe('model limits', () => {
  test('the model limits of a key refuse a model that is not in the list with 403', async () => {
    expect(forbidden(await fixture.chat('limited', ask('alpha')))).toContain('alpha')
  })
  test('the model limits of a key admit a listed model', async () => {
    expect((await fixture.chat('limited', ask('beta'))).status).toBe(200)
    expect((await fixture.chat('spaced', ask('alpha'))).status).toBe(200)
  })
  test('the model limits of a key have no effect while they are not enabled', async () => {
    expect((await fixture.chat('off', ask('alpha'))).status).toBe(200)
  })
  test('the model limits of a key with an empty list refuse every model', async () =>
    void forbidden(await fixture.chat('nothing', ask('alpha'))))
  test('the model limits of a key are case-sensitive', async () =>
    void forbidden(await fixture.chat('limited', ask('BETA'))))
})

describe('the group of a call', () => {
  test('a key that names no group uses the group of its user', async () => {
    expect(await laneOf('free', 'alpha')).toBe('plain')
    expect(await laneOf('inside', 'alpha')).toBe('closed')
  })
  test('a call goes to the channels of the group that its key names', async () =>
    expect(await laneOf('vip', 'alpha')).toBe('fine'))
  test('a closed group may be named by its own users', async () =>
    expect(await laneOf('inside2', 'alpha')).toBe('closed'))
  test('a closed group is refused with 403 to other users', async () => {
    expect(forbidden(await fixture.chat('intruder', ask('alpha')))).toContain('inner')
  })
  test('a group that no longer exists is refused with 403', async () => {
    expect(forbidden(await fixture.chat('stranded', ask('alpha')))).toContain('abolished')
  })
  test("a call uses the group that vendor_routes name for the model's vendor, else the key's group", async () => {
    expect(await laneOf('routed', 'alpha')).toBe('plain')
    expect(await laneOf('routed', 'beta')).toBe('fine')
  })
  test('a closed group cannot be reached by vendor_routes', async () => {
    forbidden(await fixture.chat('sneaky', ask('alpha')))
    expect((await fixture.chat('sneaky', ask('beta'))).status).toBe(200)
  })
})

describe('a model without an enabled channel in the group', () => {
  const missing = async (key: string, model: string, group: string): Promise<void> => {
    const answer = await fixture.chat(key, ask(model))
    expect(answer.status, answer.text).toBe(503)
    const { error } = answer.json()
    expect(error).toMatchObject({ type: 'gateway_error', code: 'model_not_found' })
    expect(error.message.toLowerCase()).toContain(
      `no available channel for model ${model} under group ${group}`,
    )
    expect(error.message).toMatch(/\(request id: [^()\s]+\)$/)
  }
  test('a model without an enabled channel in the group is 503 model_not_found', () =>
    missing('free', 'lonely', 'default'))
  test('a model without an enabled channel is reported with the group that the call used', () =>
    missing('inside', 'beta', 'inner'))
})
