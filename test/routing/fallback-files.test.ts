import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, ChargedCalls, events, json } from '../fixtures/media-fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const FAILING: Behaviour = { kind: 'status', status: 503, body: errorBody('out of order') }
/**
 * Each endpoint has its own price, which shows the charged model: 20,000 units an image, 10 a character, 100
 * a second.
 */
const PRICES = { image: 0.04, characters: 20, second: 0.0002 }
const DEAR = { image: 0.12, characters: 60, second: 0.0006 }

/** The first bytes of an image, which identify its type. */
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ', 'base64')

let fixture: Fixture
let calls: ChargedCalls
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { media: { allow_private_networks: true } },
    models: {
      images: { price: PRICES, fallback: ['second'] },
      sounds: { price: PRICES, fallback: ['second'] },
      second: { price: DEAR },
      // All its channels are in cooldown, except the one with a limit.
      resting: { price: PLAIN_PRICE, fallback: ['counted'] },
      counted: { price: PLAIN_PRICE, rate_limit: { requests: 1, window: '10m' } },
      ...priced(['other', 'only-resting', 'only-back']),
    },
    channels: [
      channel('images', upstream.baseUrl('images')),
      channel('sounds', upstream.baseUrl('sounds')),
      channel('second', upstream.baseUrl('second'), { model_mapping: { second: 'their-second' } }),
      channel('resting', upstream.baseUrl('resting'), {
        models: ['resting', 'only-resting'],
        probe: '10m',
      }),
      channel('limited', upstream.baseUrl('limited'), {
        models: ['counted', 'other'],
        protocol: 'messages',
        priority: 1,
        rate_limit: { requests: 1, window: '10m' },
      }),
      channel('back', upstream.baseUrl('back'), { models: ['counted', 'only-back'], probe: '10m' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')], { quota: 1_000_000_000 })],
  }))
  calls = new ChargedCalls(fixture, databaseOf(fixture.gateway.dataDir))
})
afterAll(() => fixture?.close())
beforeEach(() => {
  fixture.upstream.script('images', FAILING)
  fixture.upstream.script('sounds', FAILING)
  fixture.upstream.forget('second')
})

const post = (path: string, fields: object): (() => Promise<FullResponse>) => {
  const body = { model: path.includes('audio') ? 'sounds' : 'images', ...fields }
  return () => call(fixture.gateway.url, body, { path, key: 'ann' })
}
const postForm = (path: string, body: Buffer): (() => Promise<FullResponse>) => {
  return () => call(fixture.gateway.url, body, formCall(path, 'ann', body))
}
const IMAGE = json({ created: 1, data: [{ b64_json: 'aGVsbG8=' }] })

describe('fallbacks of calls with files', () => {
  test.each<[string, () => Promise<FullResponse>, Behaviour, number]>([
    ['an image', post('/v1/images/generations', { prompt: 'a red circle' }), IMAGE, 60_000],
    [
      'a stream of images',
      post('/v1/images/generations', { prompt: 'a red circle', stream: true }),
      events({ type: 'image_generation.completed', b64_json: 'aGVsbG8=' }),
      60_000,
    ],
    [
      'an image that is edited',
      postForm(
        '/v1/images/edits',
        formBytes([
          { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
          { name: 'prompt', content: 'make it blue' },
          { name: 'model', content: 'images' },
        ]),
      ),
      IMAGE,
      60_000,
    ],
    [
      'speech',
      post('/v1/audio/speech', { input: 'hello there', voice: 'alloy' }),
      answered('audio/mpeg', 'sound'),
      11 * 30,
    ],
    [
      // A body above 1 MiB is read from its file a second time.
      'a recording',
      postForm('/v1/audio/transcriptions', formBytes(recordingParts('sounds', waveFile(40)))),
      json({ text: 'hello' }),
      40 * 300,
    ],
    [
      'a recording whose transcript is a stream',
      postForm(
        '/v1/audio/transcriptions',
        formBytes(recordingParts('sounds', waveFile(2), [{ name: 'stream', content: 'true' }])),
      ),
      events({ type: 'transcript.text.done', text: 'hello' }),
      2 * 300,
    ],
  ])(
    'a call whose channels have all failed falls back to the next model, at its price: %s',
    async (_, ask, behaviour, quota) => {
      const { answer, row } = await calls.charged('second', behaviour, ask)
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-gateway-model']).toBe('second')
      expect(row).toMatchObject({ model: 'second', upstream_model: 'their-second', quota })
      expect(row['requested_model']).toMatch(/^(?:images|sounds)$/)
      const sent = fixture.upstream.only('second').body
      const [first] = [...fixture.upstream.received('images'), ...fixture.upstream.received('sounds')]
      const renamed = first?.body.toString('latin1').replace(/images|sounds/, 'their-second') ?? ''
      expect(sent.equals(Buffer.from(renamed, 'latin1'))).toBe(true)
    },
  )
})

test('a call counts once against the limit of its fallback model, however often that model is tried', async () => {
  const { upstream } = fixture
  for (const lane of ['resting', 'back']) {
    upstream.script(lane, FAILING)
    // Five failures open a circuit.
    for (let i = 0; i < 5; i++) expect((await fixture.chat('ann', ask(`only-${lane}`))).status).toBe(503)
  }
  upstream.script('limited', wholeMessage([{ text: 'hello' }]))
  upstream.script('back', { kind: 'whole', content: 'back again' })
  // The call waits for its image while another call takes the last request of the chosen channel.
  const { promise: taken, resolve: take } = Promise.withResolvers<void>()
  upstream.script('picture', { ...answered('image/png', PNG), after: taken })
  const picture = { type: 'image_url', image_url: { url: `${upstream.baseUrl('picture')}/a.png` } }
  const waiting = fixture.chat('ann', ask('resting', { messages: [{ role: 'user', content: [picture] }] }))
  await upstream.receivedAtLeast('picture', 1)
  expect((await fixture.chat('ann', ask('other'))).status).toBe(200)
  take()
  const { status, text, headers } = await waiting
  expect(status, text).toBe(200)
  expect(headers['x-gateway-model']).toBe('counted')
  expect(text).toContain('back again')
  expect(upstream.received('limited')).toHaveLength(1)
})
