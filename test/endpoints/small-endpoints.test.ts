import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { Whole } from '../fixtures/behaviour.ts'
import { type Body, type CallOptions, call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, ChargedCalls, json } from '../fixtures/media-fixture.ts'

/** An endpoint other than conversations, and a call of it. */
interface SmallEndpoint {
  readonly path: string
  /** Its name in the usage log, and in model lists. */
  readonly kind: string
  readonly price: object
  readonly answer: Whole
  /** Quota units of the response, and the usage in its row. */
  readonly quota: number
  readonly counts: Readonly<Record<string, number>>
  /** Fields of a JSON body, or the parts of a form except its model. */
  readonly fields?: object
  readonly parts?: (model: string) => Buffer
  /** Quota units where the client leaves before the response. */
  readonly left: number
  /** Whether the response is passed on as it arrives, so that no other channel can be tried. */
  readonly isPassed?: boolean
}

const SECONDS = 2
const recording = (model: string): Buffer => formBytes(recordingParts(model, waveFile(SECONDS)))
const picture = (model: string): Buffer =>
  formBytes([
    { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
    { name: 'prompt', content: 'a red circle' },
    { name: 'model', content: model },
  ])
const IMAGES = json({ data: [{ b64_json: 'aGVsbG8=' }, { b64_json: 'aGVsbG8=' }] })
const TOKENS = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }

const RECORDED = {
  kind: 'transcriptions',
  price: { second: 0.0002 },
  parts: recording,
  answer: json({ text: 'hello there, and more of it' }),
  quota: SECONDS * 100,
  counts: { seconds: SECONDS },
  left: SECONDS * 100,
}

const ENDPOINTS: Readonly<Record<string, SmallEndpoint>> = {
  embeddings: {
    path: '/v1/embeddings',
    kind: 'embeddings',
    price: { input: 2, output: 0 },
    fields: { input: 'one two three' },
    answer: json({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
      usage: { prompt_tokens: 9, total_tokens: 9 },
    }),
    quota: 9,
    counts: { prompt_tokens: 9 },
    left: 3,
  },
  completions: {
    path: '/v1/completions',
    kind: 'completions',
    price: PLAIN_PRICE,
    fields: { prompt: 'one two three', max_tokens: 9 },
    answer: json({
      object: 'text_completion',
      choices: [{ text: 'hi', index: 0, finish_reason: 'stop' }],
      usage: TOKENS,
    }),
    quota: 9 + 5 * 4,
    counts: { prompt_tokens: 9, completion_tokens: 5 },
    left: 3,
  },
  images: {
    path: '/v1/images/generations',
    kind: 'images',
    price: { image: 0.04 },
    fields: { prompt: 'a red circle', n: 2 },
    answer: IMAGES,
    quota: 40_000,
    counts: { images: 2 },
    left: 0,
  },
  edits: {
    path: '/v1/images/edits',
    kind: 'images',
    price: { image: 0.04 },
    parts: picture,
    answer: IMAGES,
    quota: 40_000,
    counts: { images: 2 },
    left: 0,
  },
  speech: {
    path: '/v1/audio/speech',
    kind: 'speech',
    price: { characters: 20 },
    fields: { input: 'hello there', voice: 'alloy' },
    answer: answered('audio/mpeg', 'ID3 a sound that is long enough to be cut'),
    quota: 110,
    counts: { characters: 11 },
    left: 110,
    isPassed: true,
  },
  transcriptions: { path: '/v1/audio/transcriptions', ...RECORDED },
  translations: { path: '/v1/audio/translations', ...RECORDED },
  moderation: {
    path: '/v1/moderations',
    kind: 'moderations',
    price: { request: 0.002 },
    fields: { input: 'one two three' },
    answer: json({ id: 'modr-1', results: [{ flagged: false }] }),
    quota: 1000,
    counts: {},
    left: 1000,
  },
}
const NAMES = Object.keys(ENDPOINTS)

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
let fixture: Fixture
let calls: ChargedCalls
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: Object.fromEntries(NAMES.map((name) => [name, { price: ENDPOINTS[name]?.price }])),
    channels: NAMES.flatMap((name) => [
      channel(name, upstream.baseUrl(name), { priority: 1 }),
      channel(`spare-${name}`, upstream.baseUrl(`spare-${name}`), { models: [name] }),
    ]),
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          ...NAMES.map((name) => token(`once${name}`, { rate_limit: { requests: 1, window: '60s' } })),
        ],
        {
          access_token: ANN.accessToken,
          quota: 1_000_000_000,
        },
      ),
    ],
  }))
  calls = new ChargedCalls(fixture, databaseOf(fixture.gateway.dataDir))
})
afterAll(() => fixture?.close())

function requestOf(name: string, key: string): [Body, CallOptions] {
  const { path, fields, parts } = ENDPOINTS[name] as SmallEndpoint
  if (!parts)
    return [
      { model: name, ...fields },
      { path, key },
    ]
  const body = parts(name)
  return [body, formCall(path, key, body)]
}
const ask =
  (name: string, key = 'ann') =>
  (): Promise<FullResponse> =>
    call(fixture.gateway.url, ...requestOf(name, key))

describe.each(NAMES)('%s', (name) => {
  const { answer, quota, counts, kind, left, isPassed = false } = ENDPOINTS[name] as SmallEndpoint
  const bytes = Buffer.from(answer.body ?? '')

  test('a call of an endpoint other than conversations is charged exactly, and usage row, sums and CSV file have its counts', async () => {
    const stat = async () =>
      (await manage<Record<string, number>>(fixture.gateway.url, ANN, 'GET /api/log/self/stat')).data
    const before = await stat()
    const { answer: got, row } = await calls.charged(name, answer, ask(name))
    expect(got.bytes.equals(bytes)).toBe(true)
    expect(row).toMatchObject({ quota, kind, model: name })
    const listed = await manage<{ items: Record<string, unknown>[] }>(
      fixture.gateway.url,
      ANN,
      'GET /api/log/self',
    )
    expect(listed.data.items[0]).toMatchObject({ request_id: row.id, kind, quota, ...counts })
    const after = await stat()
    for (const [counted, amount] of Object.entries({ quota, ...counts }))
      expect((after[counted] ?? 0) - (before[counted] ?? 0), counted).toBe(amount)
    const headers = { authorization: ANN.accessToken, 'gateway-user': String(ANN.id) }
    const file = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/log/self/export',
      headers,
    })
    const [columns = [], line = []] = file.text.split('\r\n').map((one) => one.split(','))
    const cells = Object.fromEntries(columns.map((column, at) => [column, line[at]]))
    const expected = Object.entries({ request_id: row.id, kind, quota, ...counts })
    expect(cells).toMatchObject(Object.fromEntries(expected.map(([column, cell]) => [column, String(cell)])))
  })

  test('a call of any endpoint other than conversations goes to the next channel when one fails, and is charged once', async () => {
    fixture.upstream.script(`spare-${name}`, answer)
    const failure = { kind: 'status', status: 500, body: '{}' } as const
    const { answer: got, row } = await calls.charged(name, failure, ask(name))
    expect(got.bytes.equals(bytes)).toBe(true)
    expect(row).toMatchObject({ quota, channel: `spare-${name}` })
    const [failed] = fixture.upstream.received(name)
    const [made] = fixture.upstream.received(`spare-${name}`)
    expect(made?.body.equals(failed?.body ?? Buffer.alloc(0))).toBe(true)
  })

  test("a response other than of a conversation that breaks off is replaced by another channel's, or breaks off and is charged", async () => {
    fixture.upstream.script(`spare-${name}`, answer)
    const head = `HTTP/1.1 200 OK\r\ncontent-type: ${String(answer.headers?.['content-type'])}\r\ncontent-length: ${bytes.length}\r\n\r\n`
    const half = Buffer.concat([Buffer.from(head), bytes.subarray(0, -4)])
    fixture.upstream.script(name, { kind: 'raw', bytes: half, ending: 'close' })
    const live = await open(fixture.gateway.url, ...requestOf(name, 'ann'))
    const got = await live.end()
    const row = await calls.untilSettled()
    expect(got.broken).toBe(isPassed)
    if (isPassed) expect(row).toMatchObject({ reason: 'cut', channel: name, quota })
    else expect([got.text, row?.quota, row?.channel]).toEqual([bytes.toString(), quota, `spare-${name}`])
  })

  test('a call of an endpoint other than conversations is charged for its prompt if its client leaves', async () => {
    fixture.upstream.script(name, { ...answer, after: new Promise<void>(() => {}) })
    const leaving = new AbortController()
    const [body, { headers = {}, path = '' }] = requestOf(name, 'ann')
    const row = await calls.rowOf(async () => {
      const asked = fetch(`${fixture.gateway.url}${path}`, {
        method: 'POST',
        signal: leaving.signal,
        headers: {
          authorization: 'Bearer sk-ann',
          'content-type': headers['content-type'] ?? 'application/json',
        },
        body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body),
      }).catch(() => {})
      await fixture.upstream.receivedAtLeast(name, 1)
      leaving.abort()
      await asked
    })
    expect(row).toMatchObject({ reason: 'client_gone', quota: left, kind })
  })

  test('calls of every endpoint other than conversations count against the rate limit of the key', async () => {
    fixture.upstream.script(name, answer)
    expect((await ask(name, `once${name}`)()).status).toBe(200)
    fixture.upstream.forget(name)
    const refused = await ask(name, `once${name}`)()
    expect([refused.status, refused.headers['retry-after'] !== undefined]).toEqual([429, true])
    expect(fixture.upstream.received(name)).toHaveLength(0)
  })
})

test('a moderation of a model that is priced per token is charged for a count of its prompt if its response reports zeros', async () => {
  const usage = { prompt_tokens: 0, total_tokens: 0 }
  const answer = json({ id: 'modr-1', results: [{ flagged: false }], usage })
  const body = { model: 'completions', input: 'one two three' }
  const { row } = await calls.charged('completions', answer, () =>
    call(fixture.gateway.url, body, { path: '/v1/moderations', key: 'ann' }),
  )
  expect(row).toMatchObject({ quota: 3, reason: 'estimated' })
})

test('the model lists name the endpoint of each model that does not serve conversations', async () => {
  const { text } = await call(fixture.gateway.url, undefined, {
    method: 'GET',
    path: '/v1/models',
    key: 'ann',
  })
  const listed: { id: string; endpoints: string[] }[] = JSON.parse(text).data
  for (const { id, endpoints } of listed) expect(endpoints, id).toContain(ENDPOINTS[id]?.kind)
})
