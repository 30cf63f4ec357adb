import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const lane = (name: string, fields: Record<string, unknown>) =>
      channel(name, upstream.baseUrl(name), fields)
    return {
      models: priced(['ranked', 'shared', 'mapped', 'prefixed', 'headed', 'constructor']),
      channels: [
        lane('second', { models: ['ranked'], priority: 1 }),
        lane('first', { models: ['ranked'], priority: 5 }),
        lane('third', { models: ['ranked'], priority: 0, weight: 1000 }),
        lane('light', { models: ['shared'], weight: 1 }),
        lane('heavy', { models: ['shared'], weight: 4 }),
        lane('mapping', { models: ['mapped'], model_mapping: { mapped: 'vendor/real-name-2025' } }),
        lane('headers', {
          models: ['headed'],
          headers: { 'x-tenant': 'blue', 'X-Title': 'Sluice' },
        }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
  })
})
afterAll(() => fixture?.close())

describe('the choice among the channels of a model', () => {
  test('the channel of the highest priority is tried first, whatever the weights', async () => {
    for (const lane of ['first', 'second', 'third']) fixture.upstream.script(lane, { kind: 'whole' })
    for (let call = 0; call < 10; call++) expect((await fixture.chat('ann', ask('ranked'))).status).toBe(200)
    expect(fixture.upstream.received('first')).toHaveLength(10)
    expect(fixture.upstream.received('second')).toHaveLength(0)
    expect(fixture.upstream.received('third')).toHaveLength(0)
  })

  test('the weight of a channel is its share among channels of equal priority', async () => {
    for (const lane of ['light', 'heavy']) fixture.upstream.script(lane, { kind: 'whole' })
    const calls = 300
    for (let batch = 0; batch < calls / 20; batch++)
      await Promise.all(Array.from({ length: 20 }, () => fixture.chat('ann', ask('shared'))))
    const share = fixture.upstream.received('light').length / calls
    // One fifth; a fair draw leaves this range less than once in ten million runs.
    expect(share).toBeGreaterThan(0.08)
    expect(share).toBeLessThan(0.33)
    expect(fixture.upstream.received('heavy').length).toBe(calls - fixture.upstream.received('light').length)
  })

  test('the model mapping of a channel sends the upstream its own name for the model', async () => {
    fixture.upstream.script('mapping', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('mapped'))).status).toBe(200)
    expect(JSON.parse(fixture.upstream.only('mapping').text).model).toBe('vendor/real-name-2025')
  })

  test("clients cannot call a mapped model by the upstream's name", async () => {
    expect((await fixture.chat('ann', ask('vendor/real-name-2025'))).status).toBeOneOf([400, 503])
  })

  test('a call for a model without a channel is refused with 400 or 503, even if the name is a JavaScript property', async () => {
    for (const name of ['constructor', '__proto__', 'toString'])
      expect((await fixture.chat('ann', ask(name))).status, name).toBeOneOf([400, 503])
  })
})

describe('a request to an upstream', () => {
  test('an upstream request goes to the base URL of its channel, with the key and the headers of the channel', async () => {
    fixture.upstream.script('headers', { kind: 'whole' })
    await fixture.chat('ann', ask('headed'))
    const { method, path, headers } = fixture.upstream.only('headers')
    expect(`${method} ${path}`).toBe('POST /v1/chat/completions')
    expect(headers).toMatchObject({
      authorization: 'Bearer upstream-key-of-headers',
      'x-tenant': 'blue',
      'x-title': 'Sluice',
      'content-type': 'application/json',
    })
    expect(headers['accept-encoding'] ?? 'identity').toBe('identity')
  })

  test('cookies, keys, addresses and unknown headers of the client are not sent to the upstream', async () => {
    fixture.upstream.script('headers', { kind: 'whole' })
    await fixture.chat('ann', ask('headed'), {
      headers: {
        cookie: 'session=canary-cookie',
        'x-api-key': 'canary-key',
        'x-forwarded-for': '203.0.113.9',
        'x-anything': 'canary-anything',
        'proxy-authorization': 'canary-proxy',
        'x-tenant': 'red',
      },
    })
    const { headers, text } = fixture.upstream.only('headers')
    expect(JSON.stringify(headers)).not.toMatch(/canary|203\.0\.113\.9|sk-ann|red/)
    expect(text).not.toContain('canary')
  })
})

test('cookies and other headers of an upstream response that are not permitted do not reach the client', async () => {
  fixture.upstream.script('headers', {
    kind: 'whole',
    headers: {
      'set-cookie': ['a=canary'],
      server: 'canary',
      'x-upstream-secret': 'canary',
      'access-control-allow-origin': 'canary',
      'openai-organization': 'canary',
    },
  })
  const answer = await fixture.chat('ann', ask('headed'))
  expect(answer.status).toBe(200)
  expect(JSON.stringify(answer.headers)).not.toContain('canary')
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
  expect(answer.headers['x-request-id']).toBeTypeOf('string')
})
