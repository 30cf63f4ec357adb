import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, open, type FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { answered, ChargedCalls, events, json } from '../fixtures/media-fixture.ts'

/** Quota units of a token: 2 of text and 3 of an image in, 1 of text and 4 of an image out. */
const TOKENS = { input: 4, image_input: 6, output: 2, image_output: 8 }
/** 20,000 units an image; 40,000 in high quality, 60,000 where it is wide. */
const PER_IMAGE = { image: { default: 0.04, '1024x1024/high': 0.08, '1536x1024': 0.12 } }

let fixture: Fixture
let calls: ChargedCalls
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: {
      tokens: { price: TOKENS },
      image: { price: PER_IMAGE },
      both: { price: { ...TOKENS, ...PER_IMAGE } },
      pair: { price: PER_IMAGE },
    },
    channels: [
      ...['tokens', 'image', 'both'].map((name) => channel(name, upstream.baseUrl(name))),
      channel('pair', upstream.baseUrl('pair'), { priority: 1 }),
      channel('spare', upstream.baseUrl('spare'), { models: ['pair'], model_mapping: { pair: 'p' } }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('poor', { remain_quota: 50_000 })], { quota: 1_000_000_000 }),
    ],
  }))
  calls = new ChargedCalls(fixture, databaseOf(fixture.gateway.dataDir))
})
afterAll(() => fixture?.close())

const PATH = '/v1/images/generations'
const generate = (model: string, fields: object = {}, key = 'ann'): (() => Promise<FullResponse>) => {
  const body = { model, prompt: 'a red circle', ...fields }
  return () => call(fixture.gateway.url, body, { path: PATH, key })
}
const edit = (model: string): (() => Promise<FullResponse>) => {
  const body = formBytes([
    { name: 'image[]', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
    { name: 'image[]', content: Buffer.from('two'), filename: 'b.png', type: 'image/png' },
    { name: 'prompt', content: 'put both together' },
    { name: 'model', content: model },
  ])
  return () => call(fixture.gateway.url, body, formCall('/v1/images/edits', 'ann', body))
}
const images = (count: number): object[] => Array.from({ length: count }, () => ({ b64_json: 'aGVsbG8=' }))
const USAGE = {
  input_tokens: 50,
  input_tokens_details: { text_tokens: 10, image_tokens: 40 },
  output_tokens: 272,
  output_tokens_details: { image_tokens: 272, text_tokens: 0 },
  total_tokens: 322,
}

describe('the charge of images', () => {
  test('images are charged by the reported tokens, by modality', async () => {
    const body = { created: 1, data: images(1), size: '1024x1024', usage: USAGE }
    const { row, answer } = await calls.charged('tokens', json(body), generate('tokens'))
    expect(row).toMatchObject({
      quota: 10 * 2 + 40 * 3 + 272 * 4,
      reason: 'complete',
      images: 1,
      kind: 'images',
    })
    expect(answer.text).toBe(JSON.stringify(body))
  })

  test('output tokens of an image call that are reported without details are charged as image tokens', async () => {
    const { output_tokens_details: _, ...usage } = USAGE
    const { row } = await calls.charged('tokens', json({ data: images(1), usage }), generate('tokens'))
    expect(row.quota).toBe(10 * 2 + 40 * 3 + 272 * 4)
  })

  test('text tokens in the output of an image call are charged at the price of text output', async () => {
    const usage = { ...USAGE, output_tokens_details: { image_tokens: 200, text_tokens: 72 } }
    const { row } = await calls.charged('tokens', json({ data: images(1), usage }), generate('tokens'))
    expect(row.quota).toBe(10 * 2 + 40 * 3 + 200 * 4 + 72)
  })

  test('images are charged by the number in the response, where no usage is reported, not by the requested number', async () => {
    const { row } = await calls.charged('image', json({ data: images(2) }), generate('image', { n: 3 }))
    expect(row).toMatchObject({ quota: 40_000, images: 2, reason: 'complete' })
  })

  test('images are charged by the size and quality in the response, else in the request', async () => {
    const stated = json({ data: images(1), size: '1536x1024', quality: 'low' })
    expect((await calls.charged('image', stated, generate('image'))).row.quota).toBe(60_000)
    const asked = generate('image', { size: '1024x1024', quality: 'high' })
    expect((await calls.charged('image', json({ data: images(1) }), asked)).row.quota).toBe(40_000)
  })

  test('images that a response has as URLs are charged', async () => {
    const body = json({ data: [{ url: 'https://images.example/1.png', revised_prompt: '"b64_json":"x"' }] })
    expect((await calls.charged('image', body, generate('image'))).row).toMatchObject({
      quota: 20_000,
      images: 1,
    })
  })

  test.each(['text/plain; charset=utf-8', 'text/json', 'application/octet-stream', ''])(
    'images in JSON are images whatever their content type says: %j',
    async (type) => {
      const body = JSON.stringify({ data: images(1) })
      const { row, answer } = await calls.charged('image', answered(type, body), generate('image'))
      expect(row).toMatchObject({ quota: 20_000, images: 1 })
      expect([answer.text, answer.headers['content-type']]).toEqual([body, 'application/json'])
    },
  )

  test.each(['application/json', 'text/plain', ''])(
    'an image that comes as events in place of JSON is collected whatever their content type says: %j',
    async (type) => {
      const event = { type: 'image_generation.completed', b64_json: 'aGVsbG8=', usage: USAGE }
      const behaviour = answered(type, `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      const { row, answer } = await calls.charged('tokens', behaviour, generate('tokens'))
      expect(row).toMatchObject({ quota: 10 * 2 + 40 * 3 + 272 * 4, images: 1 })
      expect(answer.json()).toMatchObject({ data: images(1) })
    },
  )

  test('images are charged by tokens where both tokens and images have a price', async () => {
    const body = json({ data: images(1), usage: USAGE })
    expect((await calls.charged('both', body, generate('both'))).row.quota).toBe(10 * 2 + 40 * 3 + 272 * 4)
    expect((await calls.charged('both', json({ data: images(1) }), generate('both'))).row.quota).toBe(20_000)
  })

  test('images are charged by estimated tokens where nothing is reported and images have no price', async () => {
    const { row } = await calls.charged('tokens', json({ data: images(1) }), generate('tokens'))
    expect(row).toMatchObject({ reason: 'estimated', images: 1 })
    expect(row.quota).toBeGreaterThan(20_000)
  })

  test('image edits, sent as a form, are charged by the reported tokens of each modality', async () => {
    const { row } = await calls.charged('tokens', json({ data: images(1), usage: USAGE }), edit('tokens'))
    expect(row.quota).toBe(10 * 2 + 40 * 3 + 272 * 4)
    expect(fixture.upstream.only('tokens').path).toBe('/v1/images/edits')
  })

  test('image variations, sent as a form, are charged by the number of images in the response', async () => {
    const body = formBytes([
      { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
      { name: 'n', content: '2' },
      { name: 'model', content: 'image' },
    ])
    const ask = () => call(fixture.gateway.url, body, formCall('/v1/images/variations', 'ann', body))
    const { row } = await calls.charged('image', json({ data: images(2) }), ask)
    expect(row).toMatchObject({ images: 2, reason: 'complete' })
    expect(fixture.upstream.only('image')).toMatchObject({ path: '/v1/images/variations' })
    expect(fixture.upstream.only('image').body.equals(body)).toBe(true)
  })

  test('a large image response is charged by the usage at its end', async () => {
    const large = { data: [{ b64_json: 'QUJD'.repeat(1_000_000) }], usage: USAGE }
    const { row, answer } = await calls.charged('tokens', json(large), generate('tokens'))
    expect(row.quota).toBe(10 * 2 + 40 * 3 + 272 * 4)
    expect(answer.text).toBe(JSON.stringify(large))
  })
})

test('no more than ten times the requested number of images is charged', async () => {
  const ten = await calls.charged('image', json({ data: images(10) }), generate('image'))
  expect(ten.row).toMatchObject({ images: 10, reason: 'complete' })
  const more = await calls.charged('image', json({ data: images(11) }), generate('image'))
  expect(more.row).toMatchObject({ images: 1, reason: 'estimated', note: 'usage_implausible' })
  expect(more.row.quota).toBeLessThan(ten.row.quota)
})

describe('a stream of images', () => {
  const partial = { type: 'image_generation.partial_image', b64_json: 'aGVs', partial_image_index: 0 }
  const completed = { type: 'image_generation.completed', b64_json: 'aGVsbG8='.repeat(50_000), usage: USAGE }
  const stream = generate('tokens', { stream: true, partial_images: 1 })

  test('a stream of images passes unchanged, and is charged by its last event', async () => {
    const { row, answer } = await calls.charged('tokens', events(partial, completed), stream)
    expect(row).toMatchObject({ quota: 10 * 2 + 40 * 3 + 272 * 4, stream: 1, images: 1, reason: 'complete' })
    const frames = [partial, completed].map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`)
    expect(answer.text).toBe(frames.join(''))
    expect(answer.headers['content-type']).toBe('text/event-stream')
  })

  // What an image above 64 KiB needs is held back from the first byte on if the network brings the rest at once.
  test.each([66_000, 80_000, 1_000_000])(
    'the only event of a stream, an image of %i bytes, is whole',
    async (bytes) => {
      const image = { ...completed, b64_json: 'A'.repeat(bytes) }
      const { row, answer } = await calls.charged('tokens', events(image), stream)
      expect(answer.text === `event: ${image.type}\ndata: ${JSON.stringify(image)}\n\n`).toBe(true)
      expect(row).toMatchObject({ reason: 'complete', images: 1 })
    },
  )

  test('an image of any size that came as JSON in place of a stream is whole', async () => {
    const image = 'A'.repeat(1_000_000)
    const { row, answer } = await calls.charged(
      'tokens',
      json({ data: [{ b64_json: image }], usage: USAGE }),
      stream,
    )
    expect(JSON.parse(/^data: (.*)$/m.exec(answer.text)?.[1] ?? '').b64_json === image).toBe(true)
    expect(row).toMatchObject({ reason: 'complete', images: 1 })
  })

  test('a stream of images that breaks off ends with an error, and is charged for what arrived', async () => {
    const frames = [`data: ${JSON.stringify(partial)}\n\n`]
    const cut = { kind: 'stream', frames, ending: 'reset', usage: null } as const
    const { row, answer } = await calls.charged('tokens', cut, stream)
    const { error } = JSON.parse(answer.text.trimEnd().split('event: error\ndata: ')[1] ?? '')
    expect(error).toEqual({
      type: 'api_error',
      code: 'upstream_error',
      message: expect.stringContaining('broke off'),
      param: null,
    })
    expect(row.reason).toBe('cut')
    expect(row.quota).toBeGreaterThan(0)
  })

  test('a stream of images that begins with an error goes to the next channel', async () => {
    const error = { type: 'error', error: { message: 'no', type: 'server_error', code: 'server_error' } }
    fixture.upstream.script('spare', events(completed))
    const { answer } = await calls.charged('pair', events(error), generate('pair', { stream: true }))
    expect(answer.text).toContain('image_generation.completed')
  })
})

describe('a response without an image', () => {
  const rubbish = {
    'a page': answered('text/html', '<html>busy</html>'),
    'JSON without images': json({ created: 1, data: [] }),
    'an error with status 200': json({ error: { message: 'no', type: 'server_error' } }),
    'plain text': answered('text/plain', 'not an image'),
    'no JSON': answered('application/json', 'not an image'.repeat(10_000)),
    'a completion': { kind: 'whole', content: 'hello' } as const,
  }
  for (const [what, behaviour] of Object.entries(rubbish)) {
    test(`the next channel is tried after an image response without an image: ${what}`, async () => {
      fixture.upstream.script('spare', json({ data: images(1) }))
      const { answer, row } = await calls.charged('pair', behaviour, generate('pair'))
      expect(answer.text).toBe(JSON.stringify({ data: images(1) }))
      expect(row.quota).toBe(20_000)
    })
    test(`a response without an image costs nothing where there is no other channel: ${what}`, async () => {
      const answer = await calls.uncharged('image', behaviour, generate('image'))
      expect(answer.status).toBe(500)
    })
  }
})

test('an image response that its upstream breaks off also breaks off for the client, and each image that had begun is charged', async () => {
  const large = Array.from({ length: 3 }, () => ({ b64_json: 'QUJD'.repeat(50_000) }))
  const whole = JSON.stringify({ data: large })
  const half = whole.slice(0, whole.indexOf('}') + 100_000)
  fixture.upstream.script('image', {
    kind: 'raw',
    bytes: `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999\r\n\r\n${half}`,
    ending: 'close',
  })
  const body = { model: 'image', prompt: 'x', n: 3 }
  const live = await open(fixture.gateway.url, body, { path: PATH, key: 'ann' })
  expect((await live.end()).broken).toBe(true)
  expect(await calls.untilSettled()).toMatchObject({ reason: 'cut', quota: 40_000 })
})

test('an image call whose client leaves is charged for the prompt, or for the images that arrived', async () => {
  const never = new Promise<void>(() => {})
  fixture.upstream.script('tokens', { ...json({}), after: never })
  const leaving = new AbortController()
  const leave = async (): Promise<void> => {
    const asked = fetch(`${fixture.gateway.url}${PATH}`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tokens', prompt: 'one two three' }),
    }).catch(() => {})
    await fixture.upstream.receivedAtLeast('tokens', 1)
    leaving.abort()
    await asked
  }
  expect(await calls.rowOf(leave)).toMatchObject({ reason: 'client_gone', input_tokens: 3, quota: 6 })
})

test("an upstream's refusal of an image is passed on", async () => {
  const error = {
    message: 'size: 3x3 is no size',
    type: 'image_generation_user_error',
    code: 'invalid_value',
  }
  const refusal = { kind: 'status', status: 400, body: JSON.stringify({ error }) } as const
  const answer = await calls.uncharged('image', refusal, generate('image', { size: '3x3' }))
  expect([answer.status, answer.json().error.type, answer.json().error.code]).toEqual([
    400,
    'image_generation_user_error',
    'invalid_value',
  ])
})

test('an image call is refused where the key cannot pay for every requested image at the highest price', async () => {
  fixture.upstream.script('image', json({ data: images(1) }))
  expect((await generate('image', { n: 1 }, 'poor')()).status).toBe(403)
  expect((await generate('image', { n: 1, size: '1024x1024' })()).status).toBe(200)
})

test.each([
  [{ n: 0 }, /Invalid 'n'/],
  [{ n: 'two' }, /Invalid 'n'/],
  [{ stream: 'maybe' }, /Invalid 'stream'/],
  [{ prompt: 7 }, /Invalid 'prompt'/],
  [{ model: '' }, /'model'/],
])('an image request with %j is a 400', async (fields, message) => {
  const answer = await generate('image', fields)()
  expect([answer.status, answer.json().error.type]).toEqual([400, 'invalid_request_error'])
  expect(answer.json().error.message).toMatch(message)
})
