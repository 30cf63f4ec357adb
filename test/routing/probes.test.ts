import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const FAILING: Behaviour = { kind: 'status', status: 503, body: errorBody('out of order') }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m', 'mapped', 'gpt-image-1', 'begun']),
    channels: [
      channel('first', upstream.baseUrl('first'), {
        models: ['m'],
        priority: 1,
        probe: '1s',
        model_mapping: { m: 'their-m' },
      }),
      channel('painter', upstream.baseUrl('painter'), { models: ['gpt-image-1'], priority: 1, probe: '1s' }),
      channel('other-painter', upstream.baseUrl('other-painter'), { models: ['gpt-image-1'] }),
      channel('spare', upstream.baseUrl('spare'), { models: ['m', 'mapped'] }),
      channel('begun', upstream.baseUrl('begun'), { priority: 1, probe: '1h' }),
      channel('begun-spare', upstream.baseUrl('begun-spare'), { models: ['begun'] }),
      channel('mapped', upstream.baseUrl('mapped'), { priority: 1, status_mapping: { 400: 503, 500: 422 } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

test('a channel in cooldown is probed with a request for one token, until it answers', async () => {
  fixture.upstream.script('first', FAILING)
  for (let i = 0; i < 5; i++) expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  // A first probe may have come already.
  const isProbe = ({ text }: { text: string }): boolean => text.includes('"max_tokens":1')
  expect(fixture.upstream.received('first').filter((one) => !isProbe(one))).toHaveLength(5)
  // The sixth and the seventh request are the gateway's own.
  await fixture.upstream.receivedAtLeast('first', 6)
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  await fixture.upstream.receivedAtLeast('first', 7)
  const probe = JSON.parse(fixture.upstream.received('first')[6]?.text ?? '')
  expect(probe).toEqual({ model: 'their-m', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] })
  fixture.upstream.script('first', { kind: 'whole', content: 'from the first' })
  await fixture.upstream.receivedAtLeast('first', 1)
  await expect.poll(async () => (await fixture.chat('ann', ask('m'))).text).toContain('from the first')
})

test('an answer that began before the cooldown of a channel does not end the cooldown', async () => {
  const { promise: endsAfter, resolve: endNow } = Promise.withResolvers<void>()
  fixture.upstream.script('begun', { kind: 'stream', endsAfter })
  const before = await fixture.live('ann', askStream('begun'))
  fixture.upstream.script('begun', FAILING)
  for (let i = 0; i < 5; i++) expect((await fixture.chat('ann', ask('begun'))).status).toBe(200)
  endNow()
  expect((await before.end()).text).toContain('data: [DONE]')
  fixture.upstream.forget('begun')
  expect((await fixture.chat('ann', ask('begun'))).status).toBe(200)
  expect(fixture.upstream.received('begun')).toHaveLength(0)
})

test('a channel of images in cooldown is probed by requesting its list of models, never by generating an image', async () => {
  fixture.upstream.script('painter', FAILING)
  fixture.upstream.script('other-painter', { kind: 'whole', body: '{"data":[{"b64_json":"AAAA"}]}' })
  const asked = { model: 'gpt-image-1', prompt: 'a dot' }
  const options = { path: '/v1/images/generations' }
  for (let i = 0; i < 5; i++) expect((await fixture.chat('ann', asked, options)).status).toBe(200)
  await fixture.upstream.receivedAtLeast('painter', 7)
  const probes = fixture.upstream.received('painter').slice(5)
  expect(new Set(probes.map(({ method, path }) => `${method} ${path}`))).toEqual(new Set(['GET /v1/models']))
})

test('the status mapping of a channel decides whether another channel is tried, and which status the client gets', async () => {
  fixture.upstream.script('spare', { kind: 'whole' })
  fixture.upstream.script('mapped', { kind: 'status', status: 400, body: errorBody('no such field') })
  expect((await fixture.chat('ann', ask('mapped'))).status).toBe(200)
  fixture.upstream.script('mapped', { kind: 'status', status: 500, body: errorBody('not so') })
  fixture.upstream.forget('spare')
  const { status, text } = await fixture.chat('ann', ask('mapped'))
  expect(status).toBe(422)
  expect(text).toContain('not so')
  expect(fixture.upstream.received('spare')).toHaveLength(0)
})
