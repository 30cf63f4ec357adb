import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { channelHealth } from '../fixtures/channel-health.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { metricsOf } from '../operations/metrics-text.ts'

const UNAUTHORIZED = 'User: arn:aws:iam::1:user/u is not authorized to perform: bedrock:CountTokens'
const refused = (status: number, message: string, headers: Record<string, string> = {}): Behaviour => ({
  kind: 'status',
  status,
  headers,
  body: JSON.stringify({ type: 'error', error: { type: 'api_error', message } }),
})

/** Answers of a counter that say nothing about the messages of its channel. */
const FAILING: Readonly<Record<string, Behaviour>> = {
  'wrong-key': refused(401, 'no such key'),
  'not-permitted': refused(403, UNAUTHORIZED),
  limited: refused(429, 'slow down', {
    'retry-after': '60',
    'anthropic-ratelimit-requests-limit': '50',
    'anthropic-ratelimit-requests-remaining': '0',
    'anthropic-ratelimit-requests-reset': new Date(Date.now() + 60_000).toISOString(),
  }),
  broken: refused(503, 'busy', { 'retry-after': '60' }),
  silent: { kind: 'drop' },
  'no-endpoint': refused(405, 'not here'),
}
const NAMES = [...Object.keys(FAILING), 'wrong', 'failing']
/** More than the failures after which a channel rests. */
const MANY = 6

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...NAMES, 'alone']),
    channels: [
      ...[...NAMES, 'alone'].map((name) =>
        channel(name, upstream.baseUrl(name), { protocol: 'messages', priority: 1 }),
      ),
      ...NAMES.map((name) => channel(`${name}-chat`, upstream.baseUrl(`${name}-chat`), { models: [name] })),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

function script(name: string, counter: Behaviour, messages: Behaviour = wholeMessage([{ text: 'Hi.' }])) {
  fixture.upstream.decide(name, ({ path }) => (path.endsWith('/count_tokens') ? counter : messages))
  fixture.upstream.script(`${name}-chat`, { kind: 'whole' })
}

function count(model: string): Promise<FullResponse> {
  return fixture.chat('ann', ask(model), { path: '/v1/messages/count_tokens' })
}

/** Makes a call, and returns the paths that the first channel received. */
async function pathsOfCall(model: string): Promise<string[]> {
  fixture.upstream.forget(model)
  const { status, text } = await fixture.chat('ann', ask(model, { max_tokens: 9 }), { path: '/v1/messages' })
  expect(status, text).toBe(200)
  return fixture.upstream.received(model).map(({ path }) => path)
}

test.each(Object.entries(FAILING))(
  'an upstream that does not count is not avoided by calls, and the gateway counts: %s',
  async (name, counter) => {
    script(name, counter)
    for (let times = 0; times < MANY; times += 1) {
      const { status, text } = await count(name)
      expect(status, text).toBe(200)
      expect(JSON.parse(text).input_tokens).toBeGreaterThan(0)
    }
    expect(fixture.upstream.received(name)).toHaveLength(MANY)
    expect(await pathsOfCall(name)).toEqual(['/v1/messages'])
    expect(await channelHealth(fixture.gateway.url, name)).toMatchObject({
      state: 'works',
      condition: 'works',
      keys: { set_aside: 0, limits: [{}] },
    })
    const account = { id: ROOT.id, accessToken: ROOT.access_token }
    const { data } = await manage<{ items: { name: string; minutes: { requests: number }[] }[] }>(
      fixture.gateway.url,
      account,
      'GET /api/channel/health',
    )
    const minutes = data.items.find((one) => one.name === name)?.minutes ?? []
    expect(minutes.reduce((sum, { requests }) => sum + requests, 0)).toBe(1)
  },
)

test('the error of an upstream that refuses a request to count tokens as wrong reaches the client', async () => {
  script('wrong', refused(400, 'messages: roles must alternate'))
  const { status, text } = await count('wrong')
  expect([status, text]).toEqual([400, expect.stringContaining('roles must alternate')])
})

test('a key that rests for calls goes on resting after it has counted tokens', async () => {
  const slow = refused(429, 'slow', { 'retry-after': '60' })
  script('alone', { kind: 'whole', body: '{"input_tokens":3}' }, slow)
  expect((await fixture.chat('ann', ask('alone', { max_tokens: 9 }), { path: '/v1/messages' })).status).toBe(
    429,
  )
  expect((await count('alone')).json()).toEqual({ input_tokens: 3 })
  expect(await channelHealth(fixture.gateway.url, 'alone')).toMatchObject({ keys: { set_aside: 1 } })
})

test('a model that a channel does not have for calls is still missing after the channel has counted tokens', async () => {
  script('alone', { kind: 'whole', body: '{"input_tokens":3}' }, refused(404, 'no such model'))
  await fixture.chat('ann', ask('alone', { max_tokens: 9 }), { path: '/v1/messages' })
  expect((await count('alone')).json()).toEqual({ input_tokens: 3 })
  const { families } = await metricsOf(fixture.gateway.url)
  expect(families.get('sluice_missing_models')?.lines.map(({ labels }) => labels)).toContainEqual({
    channel: 'alone',
    model: 'alone',
  })
})

test('failures of a channel are in a row although it counts tokens between them', async () => {
  script('failing', { kind: 'whole', body: '{"input_tokens":3}' }, refused(500, 'broken'))
  for (let times = 0; times < MANY; times += 1) {
    await pathsOfCall('failing')
    expect((await count('failing')).status).toBe(200)
  }
  expect((await channelHealth(fixture.gateway.url, 'failing'))?.state).toMatch(/^(resting|probing)$/)
})
