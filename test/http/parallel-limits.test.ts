import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FullResponse, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

const REQUEST = { model: 'm', input: 'hi' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    users: [ROOT, user(2, 'ann', [token('ann'), token('single', { rate_limit: { parallel: 1 } })])],
  }))
})
afterAll(() => fixture?.close())

const make = (key: string, more: object = {}): Promise<FullResponse> =>
  fixture.chat(key, { ...REQUEST, ...more }, { path: '/v1/responses' })

/** Begins a request that the upstream does not answer, runs `meanwhile`, and leaves. */
async function whileUnderWay(
  method: string,
  path: (id: string) => string,
  meanwhile: (id: string) => Promise<void>,
): Promise<void> {
  const provider = storingUpstream('m')
  fixture.upstream.decide('m', (received) => provider.decision(received))
  const { id } = (await make('ann', { background: true })).json() as { id: string }
  const isHeld = (received: { method: string; path: string }): boolean =>
    received.method !== 'POST' || received.path.endsWith('/input_tokens')
  fixture.upstream.forget('m')
  fixture.upstream.decide('m', (received) =>
    isHeld(received) ? { kind: 'silence' } : provider.decision(received),
  )
  const body = method === 'POST' ? REQUEST : undefined
  const sent = send(fixture.gateway.url, body, { key: 'single', method, path: path(id) })
  await fixture.upstream.receivedAtLeast('m', 1)
  try {
    await meanwhile(id)
  } finally {
    sent.destroy()
  }
}

test.each([
  ['a count of tokens', 'POST', () => '/v1/responses/input_tokens'],
  ['a stored response', 'GET', (id: string) => `/v1/responses/${id}`],
  ['a stream of a stored response', 'GET', (id: string) => `/v1/responses/${id}?stream=true`],
  ['items of a stored response', 'GET', (id: string) => `/v1/responses/${id}/input_items`],
] as const)(
  'a request for %s is one of the calls that a key may have under way at once',
  async (_, askedMethod, askedPath) => {
    await whileUnderWay(askedMethod, askedPath, async (id) => {
      const stored = `/v1/responses/${id}`
      for (const [method, path] of [
        ['POST', '/v1/responses'],
        ['POST', '/v1/responses/input_tokens'],
        ['GET', stored],
        ['GET', `${stored}?stream=true`],
        ['GET', `${stored}/input_items`],
        ['DELETE', stored],
      ] as const) {
        const body = method === 'POST' ? REQUEST : undefined
        const { status, text } = await fixture.chat('single', body, { method, path })
        expect(status, `${method} ${path}: ${text}`).toBe(429)
        expect(text).toContain('calls under way at once')
      }
      expect(fixture.upstream.received('m')).toHaveLength(1)
    })
    await vi.waitFor(async () => expect((await make('single')).status).toBe(200), 60_000)
  },
)

test.each(['', '?stream=true', '/input_items'])(
  "the provider's request for a stored response (%s) ends when its client leaves",
  async (below) => {
    let received: ReturnType<typeof fixture.upstream.only> | undefined
    await whileUnderWay(
      'GET',
      (id) => `/v1/responses/${id}${below}`,
      async () => void (received = fixture.upstream.only('m')),
    )
    await received?.ended
    await vi.waitFor(async () => expect((await make('single')).status).toBe(200), 60_000)
  },
)

test('a deletion whose client has left is a call under way until the provider has answered, and is then made here too', async () => {
  const provider = storingUpstream('m')
  const answered = Promise.withResolvers<void>()
  fixture.upstream.decide('m', (received) => ({
    ...provider.decision(received),
    ...(received.method === 'DELETE' && { after: answered.promise }),
  }))
  const { id } = (await make('ann')).json() as { id: string }
  fixture.upstream.forget('m')
  const path = `/v1/responses/${id}`
  const sent = send(fixture.gateway.url, undefined, { key: 'single', method: 'DELETE', path })
  await fixture.upstream.receivedAtLeast('m', 1)
  sent.destroy()
  await untilOver(fixture.gateway.url, 0)
  expect((await make('single')).status).toBe(429)
  answered.resolve()
  await vi.waitFor(async () => expect((await make('single')).status).toBe(200), 60_000)
  expect((await fixture.chat('ann', undefined, { method: 'GET', path })).status).toBe(404)
})

test('a response can be cancelled while its stream is the only call that a key may have under way', async () => {
  await whileUnderWay(
    'GET',
    (id) => `/v1/responses/${id}?stream=true`,
    async (id) => {
      const cancelled = await fixture.chat('single', undefined, {
        method: 'POST',
        path: `/v1/responses/${id}/cancel`,
      })
      expect(cancelled.json()).toMatchObject({ id, status: 'cancelled' })
    },
  )
})
