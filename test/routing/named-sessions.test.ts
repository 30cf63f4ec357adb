import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type Body, call, type CallOptions, type FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, ChargedCalls, json } from '../fixtures/media-fixture.ts'

const KEYS = ['upstream-key-one', 'upstream-key-two', 'upstream-key-three']
const PRICE = { input: 2, output: 4, image: { default: 0.01 }, second: 0.001, characters: 1 }

let fixture: Fixture
let calls: ChargedCalls
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: Object.fromEntries(
      ['chat', 'text', 'vectors', 'ranks', 'pictures', 'sound', 'judge'].map((name) => [
        name,
        { price: PRICE },
      ]),
    ),
    channels: ['chat', 'text', 'vectors', 'ranks', 'pictures', 'sound', 'judge'].map((name) =>
      channel(name, upstream.baseUrl(name), {
        keys: KEYS,
        allow: ['session', 'prompt_cache_key'],
        ...(name === 'ranks' && { protocol: 'rerank' }),
      }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')], { quota: 1_000_000_000 })],
  }))
  calls = new ChargedCalls(fixture, databaseOf(fixture.gateway.dataDir))
})
afterAll(() => fixture?.close())

const post = (path: string, body: Body, options: CallOptions = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { path, key: 'ann', ...options })
const named = (id: string): CallOptions => ({ headers: { 'x-session-id': id } })
const picture = { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' }

/** The form of a request, with its session in a header. */
function postForm(path: string, body: Buffer, session: string | undefined): Promise<FullResponse> {
  const options = formCall(path, 'ann', body)
  const headers = { ...options.headers, ...(session !== undefined && { 'x-session-id': session }) }
  return call(fixture.gateway.url, body, { ...options, headers })
}

const EMBEDDINGS = JSON.stringify({
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
  usage: { prompt_tokens: 2_000, total_tokens: 2_000 },
})
const JSON_ENDPOINTS: readonly [string, string, object, ReturnType<typeof json>][] = [
  [
    '/v1/completions',
    'text',
    { prompt: 'hi' },
    json({ choices: [{ text: 'a' }], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
  ],
  ['/v1/embeddings', 'vectors', { input: 'hi' }, json(JSON.parse(EMBEDDINGS) as object)],
  [
    '/v1/rerank',
    'ranks',
    { query: 'q', documents: ['a'] },
    json({ results: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens: 3 } }),
  ],
  ['/v1/images/generations', 'pictures', { prompt: 'a circle' }, json({ data: [{ b64_json: 'aGk=' }] })],
  ['/v1/audio/speech', 'sound', { input: 'hi', voice: 'alloy' }, answered('audio/mpeg', 'ID3sound')],
  [
    '/v1/moderations',
    'judge',
    { input: 'hi' },
    json({ id: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }] }),
  ],
]

/** The session of a row, as the row of a chat call has it. */
async function sessionOf(id: string): Promise<string> {
  const body = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }
  const chat = { kind: 'whole', usage: usageText(5, 5, 0) } as const
  const { row } = await calls.charged('chat', chat, () => post('/v1/chat/completions', body, named(id)))
  expect(row.session).toMatch(/^[\da-f]{16}$/)
  return String(row.session)
}

describe('the session of a request without a conversation', () => {
  test.each(JSON_ENDPOINTS)(
    'the usage row of a call at %s has the session that a header or the body names',
    async (path, model, body, answer) => {
      const session = await sessionOf('s')
      const sessionIn = async (more: object, options: CallOptions): Promise<unknown> => {
        const ask = (): Promise<FullResponse> => post(path, { model, ...body, ...more }, options)
        return (await calls.charged(model, answer, ask)).row.session
      }
      expect(await sessionIn({}, named('s'))).toBe(session)
      expect(await sessionIn({ session_id: 's' }, {})).toBe(session)
      expect(await sessionIn({ session_id: 't' }, named('s'))).toBe(session)
      expect(await sessionIn({}, {})).toBe('')
      expect(await sessionIn({}, named(''))).toBe('')
    },
  )

  test('the usage row of a call with a form has the session that a header names', async () => {
    const session = await sessionOf('s')
    const recording = formBytes(recordingParts('sound', waveFile(2)))
    const edit = formBytes([
      picture,
      { name: 'prompt', content: 'more' },
      { name: 'model', content: 'pictures' },
    ])
    for (const [path, model, body, answer] of [
      ['/v1/audio/transcriptions', 'sound', recording, json({ text: 'hi' })],
      ['/v1/images/edits', 'pictures', edit, json({ data: [{ b64_json: 'aGk=' }] })],
    ] as const) {
      const of = async (id: string | undefined): Promise<string> =>
        String((await calls.charged(model, answer, () => postForm(path, body, id))).row.session)
      expect(await of('s')).toBe(session)
      expect(await of(undefined)).toBe('')
    }
  })

  test('embeddings calls with prompts of 2,000 tokens use one upstream key if they name a session, and all keys otherwise', async () => {
    fixture.upstream.script('vectors', { kind: 'whole', body: EMBEDDINGS })
    const keysOf = async (options: CallOptions): Promise<number> => {
      const before = fixture.upstream.received('vectors').length
      for (let n = 0; n < 6; n++)
        await post('/v1/embeddings', { model: 'vectors', input: 'hi '.repeat(2_000) }, options)
      const received = fixture.upstream.received('vectors').slice(before)
      return new Set(received.map(({ headers }) => headers.authorization)).size
    }
    expect(await keysOf({})).toBe(3)
    expect(await keysOf(named('large'))).toBe(1)
  })

  test('the session header of an embeddings call is forwarded where the channel allows it, with the body unchanged', async () => {
    fixture.upstream.script('vectors', { kind: 'whole', body: EMBEDDINGS })
    const body = '{"model":"vectors","input":"hi"}'
    await post('/v1/embeddings', body, named('forwarded'))
    const received = fixture.upstream.received('vectors').at(-1)
    expect(received?.headers['x-session-id']).toBe('forwarded')
    expect(received?.text).toBe(body)
  })

  test('a legacy completion of a session is not a turn of its conversation, and causes no cache break', async () => {
    const body = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }
    const row = async (model: string, path: string, request: object, read: number): Promise<unknown> => {
      const answer = { kind: 'whole', usage: usageText(5_000, 5, read) } as const
      const asked = (): Promise<FullResponse> => post(path, { model, ...request }, named('mixed'))
      return (await calls.charged(model, answer, asked)).row.cache_break
    }
    const turn = (read: number): Promise<unknown> => row('chat', '/v1/chat/completions', body, read)
    expect(await turn(4_000)).toBe('')
    expect(await row('text', '/v1/completions', { prompt: 'hi' }, 0)).toBe('')
    expect(await turn(4_000)).toBe('')
    expect(await row('text', '/v1/completions', { prompt: 'hi' }, 0)).toBe('')
    // The provider forgot it: it is compared with the last turn.
    expect(await turn(0)).toBe('provider')
  })
})
