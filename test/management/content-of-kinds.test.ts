import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionText, errorBody, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt, sha256 } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts } from '../fixtures/form.ts'

const OPERATOR = { id: 1, accessToken: 'root-access-token' }
const PRICE = { input: 2, output: 8 }
const MIB = 1024 * 1024

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '1h', scope: 'token' } },
    rate_limits: { global: { requests: 0 } },
    content_log: { what: 'full', readers: 100 },
    groups: { default: { ratio: 1 }, quiet: { content_log: { what: 'none' } } },
    guards: [
      {
        name: 'numbers',
        do: 'redact',
        match: { regex: 'number \\d+' },
        where: ['input'],
        models: ['guarded'],
      },
    ],
    models: {
      m: { price: PRICE },
      guarded: { price: PRICE },
      first: { price: PRICE, vendor: 'loud', fallback: ['second'] },
      second: { price: PRICE, vendor: 'acme' },
      scribe: { price: PRICE },
    },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('guarded', upstream.baseUrl('guarded')),
      channel('first', upstream.baseUrl('first'), { groups: ['default', 'quiet'] }),
      channel('second', upstream.baseUrl('second'), { groups: ['default', 'quiet'] }),
      channel('scribe', upstream.baseUrl('scribe'), { model_mapping: { scribe: 'their-scribe' } }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('quieter', { vendor_routes: '{"acme":"quiet"}' }),
        token('louder', { vendor_routes: '{"loud":"quiet"}' }),
        token('redacted', { content_log: { what: 'redacted' } }),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

const url = (): string => fixture.gateway.url
const idOf = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string =>
  String(headers['x-request-id'])

test("the stored content of a guarded call has the client's request, and the request that the guards changed", async () => {
  fixture.upstream.script('guarded', { kind: 'whole' })
  const request = { model: 'guarded', messages: [{ role: 'user', content: 'it is number 42' }] }
  const answer = await fixture.chat('ann', request)
  expect(answer.status).toBe(200)
  const { parts } = await contentOf(url(), OPERATOR, idOf(answer))
  expect(parts.request_received?.text).toBe(JSON.stringify(request))
  expect(parts.request_sent?.text).toBe(fixture.upstream.only('guarded').text)
  expect(parts.request_sent?.text).not.toContain('42')
})

test.each([
  ['quieter', 'less', 404],
  ['louder', 'more', 200],
])(
  'the group that serves a call after a fallback decides whether its content is stored: group %s stores %s',
  async (key, _, status) => {
    fixture.upstream.script('first', { kind: 'status', status: 503, body: errorBody('away') })
    fixture.upstream.script('second', { kind: 'whole' })
    const answer = await fixture.chat(key, ask('first'))
    expect(answer.headers['x-gateway-model']).toBe('second')
    const later = await fixture.chat('ann', { ...ask('m'), user: `after ${key}` })
    await contentOf(url(), OPERATOR, idOf(later))
    expect((await lookAt(url(), OPERATOR, idOf(answer))).status).toBe(status)
  },
)

test.each([false, true])(
  'a call that is answered from the answer cache has stored content of its own, streamed: %s',
  async (stream) => {
    const body = completionText('kept once', usageText(3, 2))
    fixture.upstream.decide('m', () => (stream ? { kind: 'stream' } : { kind: 'whole', body }))
    const request = { model: 'm', messages: [{ role: 'user', content: `streamed ${stream}` }], stream }
    const first = await fixture.chat('ann', request)
    const hit = await fixture.chat('ann', { ...request })
    expect([first.headers['x-gateway-cache'], hit.headers['x-gateway-cache']]).toEqual(['miss', 'hit'])
    expect(idOf(hit)).not.toBe(idOf(first))
    const { parts } = await contentOf(url(), OPERATOR, idOf(hit))
    const sent = JSON.stringify(request)
    expect(parts).toEqual({
      request_received: { text: sent, sha256: sha256(sent) },
      answer_sent: { text: hit.text, sha256: sha256(hit.text) },
    })
  },
)

test('the stored content of a call has the multipart form from the client and the one sent upstream, byte for byte', async () => {
  fixture.upstream.script('scribe', { kind: 'whole', body: '{"text":"heard"}' })
  const form = formBytes(recordingParts('scribe', Buffer.from([0x52, 0x49, 0xff, 0xfe])))
  const answer = await call(url(), form, formCall('/v1/audio/transcriptions', 'ann', form))
  expect(answer.status, answer.text).toBe(200)
  const { parts } = await contentOf(url(), OPERATOR, idOf(answer))
  expect(parts.request_received).toEqual({ base64: form.toString('base64'), sha256: sha256(form) })
  const sent = fixture.upstream.only('scribe').body
  expect(parts.request_sent).toEqual({ base64: sent.toString('base64'), sha256: sha256(sent) })
  expect(sent.includes('their-scribe')).toBe(true)
  expect(parts.answer_received?.text).toBe('{"text":"heard"}')
})

test('the multipart form of a call is not stored if it is buffered on disk, or at content level redacted', async () => {
  for (const [key, recording] of [
    ['ann', Buffer.alloc(2 * MIB, 0xff)],
    ['redacted', Buffer.from([0xff, 0xfe])],
  ] as const) {
    fixture.upstream.script('scribe', { kind: 'whole', body: '{"text":"heard"}' })
    const form = formBytes(recordingParts('scribe', recording))
    const answer = await call(url(), form, formCall('/v1/audio/transcriptions', key, form))
    expect(answer.status, answer.text).toBe(200)
    const { parts } = await contentOf(url(), OPERATOR, idOf(answer))
    expect(Object.keys(parts)).toEqual(['answer_received'])
  }
})
