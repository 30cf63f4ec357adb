import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { completionText, contentFrame, DONE_FRAME, finishFrame, usageText } from '../fixtures/behaviour.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt, rowWithContent, sha256 } from '../fixtures/content.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { createToken } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }
const OPERATOR = { id: 1, accessToken: 'root-access-token' }

let fixture: Fixture
const clock = dateClock(afterAll)
beforeAll(async () => {
  const configure = (upstream: ScriptedUpstream): Configuration => ({
    options: { retries: 0 },
    rate_limits: { global: { requests: 0 } },
    content_log: { what: 'full', keep: '30d', readers: 100 },
    groups: {
      quiet: { content_log: { what: 'none' } },
      brief: { content_log: { keep: '1h', what: 'metadata' } },
    },
    models: priced(['m', 'c']),
    channels: [
      channel('m', upstream.baseUrl('m'), { groups: ['default', 'quiet', 'brief'] }),
      channel('c', upstream.baseUrl('c'), { protocol: 'messages' }),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          token('little', { content_log: { what: 'metadata' } }),
          token('redacted', { content_log: { what: 'redacted' } }),
          token('none', { content_log: { what: 'none' } }),
          token('never', { content_log: { sample: 0 } }),
          token('moment', { content_log: { keep: '60s' } }),
        ],
        { access_token: ANN.accessToken },
      ),
      user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
      user(4, 'ada', [token('ada')], { access_token: ADA.accessToken, role: 10 }),
      user(5, 'cyd', [token('cyd')], { group: 'quiet' }),
      user(6, 'dan', [token('dan', { content_log: { what: 'full' } })], { group: 'brief' }),
      user(7, 'eve', [token('eve')], { group: 'quiet', content_log: { what: 'full' } }),
    ],
  })
  fixture = await startFixture(configure, { env: clock.env })
})
afterAll(() => fixture?.close())

const url = (): string => fixture.gateway.url

/** Unusual bytes, which an encoder would write differently. */
const REQUEST =
  '{ "model":"m",  "messages":[{"role":"user","content":"caf\\u00e9 9007199254740993"}],"temperature":0.50 }'

async function say(key: string, body: string | object, path = '/v1/chat/completions') {
  const answer = await fixture.chat(key, body, { path })
  return { ...answer, id: String(answer.headers['x-request-id']) }
}

/** Resolves when the content of all calls until now is stored: that of a later call is. */
async function whenWritten(): Promise<void> {
  await contentOf(url(), OPERATOR, (await say('ann', REQUEST)).id)
}

const rowOf = async (account: { id: number; accessToken: string }, id: string) =>
  (await manage<Record<string, unknown>>(url(), account, `GET /api/log/self/${id}`)).data

/** The key of one of ben's tokens, without `sk-`. */
const keyOf = async (id: number): Promise<string> =>
  (await manage<{ key: string }>(url(), BEN, `POST /api/token/${id}/key`)).data.key.replace('sk-', '')

describe('what is kept of a call', () => {
  test('the stored content of a call without conversion is its request and its answer, each once and byte for byte', async () => {
    const body = completionText('Caf\u00e9', usageText(3, 2))
    fixture.upstream.script('m', { kind: 'whole', body })
    const { id, text } = await say('ann', REQUEST)
    const { what, parts } = await contentOf(url(), ANN, id)
    expect(text).toBe(body)
    expect({ what, parts }).toEqual({
      what: 'full',
      parts: {
        request_received: { text: REQUEST, sha256: sha256(REQUEST) },
        answer_received: { text: body, sha256: sha256(body) },
      },
    })
    expect(await rowWithContent(url(), ANN, `/api/log/self/${id}`)).toMatchObject({
      content_address: expect.stringMatching(new RegExp(`^content/\\d{4}-\\d\\d-\\d\\d\\.db#${id}$`)),
      content_sha256: sha256(REQUEST, body),
    })
  })

  test('the stored content of a streamed call has the bytes of the stream unchanged', async () => {
    const frames = [contentFrame('one'), ': a comment\n\n', contentFrame('two'), finishFrame(), DONE_FRAME]
    fixture.upstream.script('m', { kind: 'stream', frames, drip: true })
    const request = REQUEST.replace(' }', ',"stream":true}')
    const { id, text } = await say('ann', request)
    const { parts } = await contentOf(url(), ANN, id)
    expect(parts.request_received?.text).toBe(request)
    expect(parts.request_sent?.text).toBe(
      fixture.upstream.only('m').text === request ? undefined : fixture.upstream.only('m').text,
    )
    expect(parts.answer_received?.text).toBe(frames.join(''))
    expect(parts.answer_sent?.text ?? parts.answer_received?.text).toBe(text)
  })

  test('the stored content of a converted call has its request and its answer, each both as received and as sent after conversion', async () => {
    const body = JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'x',
      content: [{ type: 'text', text: 'converted' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 2 },
    })
    fixture.upstream.script('c', { kind: 'whole', body })
    const request = REQUEST.replace('"m"', '"c"')
    const { id, text } = await say('ann', request)
    const { parts, conversation } = await contentOf(url(), ANN, id)
    expect(conversation).toEqual([
      { role: 'user', parts: [{ kind: 'text', text: 'caf\u00e9 9007199254740993' }] },
      { role: 'assistant', parts: [{ kind: 'text', text: 'converted' }] },
    ])
    const sent = fixture.upstream.only('c').text
    expect(parts).toEqual({
      request_received: { text: request, sha256: sha256(request) },
      request_sent: { text: sent, sha256: sha256(sent) },
      answer_received: { text: body, sha256: sha256(body) },
      answer_sent: { text, sha256: sha256(text) },
    })
    const row = await rowWithContent(url(), ANN, `/api/log/self/${id}`)
    expect(row['content_sha256']).toBe(sha256(request, sent, body, text))
  })

  test('the stored content of a call that the provider refused has its error and the error that the client got', async () => {
    const error =
      '{"error":{"message":"no such thing","type":"invalid_request_error","code":null,"param":null}}'
    fixture.upstream.script('m', { kind: 'status', status: 400, body: error })
    const { id, text, status } = await say('ann', REQUEST)
    expect(status).toBe(400)
    const { parts } = await contentOf(url(), ANN, id)
    expect(parts.answer_received?.text).toBe(error)
    expect(parts.answer_sent?.text ?? parts.answer_received?.text).toBe(text)
  })

  test('the stored content of a stream that broke off has the part that arrived', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 3, ending: 'reset' })
    const live = await fixture.live('ann', askStream('m'))
    const { text } = await live.end()
    const { parts } = await contentOf(url(), ANN, String(live.headers['x-request-id']))
    expect(parts.answer_received?.text).toContain('"content"')
    expect(parts.answer_sent?.text).toBe(text)
    expect(text).toContain('error')
  })

  test('the stored content of a stream that its client left has the part that arrived', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Infinity, paceMs: 5, word: 'word' })
    const live = await fixture.live('ann', askStream('m'))
    await live.until('word')
    live.abort()
    const { parts } = await contentOf(url(), ANN, String(live.headers['x-request-id']))
    expect(parts.answer_received?.text).toContain('word')
  })

  test('stored content that is not text is shown as base64, and is no part of the conversation', async () => {
    const body = Buffer.from([0x52, 0x49, 0x46, 0x46, 0xff, 0xfe])
    fixture.upstream.script('m', { kind: 'whole', body, headers: { 'content-type': 'audio/wav' } })
    const { id, bytes } = await say('ann', { model: 'm', input: 'hi', voice: 'alloy' }, '/v1/audio/speech')
    const { parts, conversation } = await contentOf(url(), ANN, id)
    expect(conversation).toEqual([{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }])
    expect(parts.answer_received).toEqual({ base64: body.toString('base64'), sha256: sha256(body) })
    expect(bytes).toEqual(body)
  })
})

describe('how much is kept', () => {
  test('at content level metadata, sizes, digests, roles, tool names, parameters and finish reason are stored, and no text', async () => {
    const body = completionText('a secret answer', usageText(3, 2))
    fixture.upstream.script('m', { kind: 'whole', body })
    const request = JSON.stringify({
      model: 'm',
      messages: [
        { role: 'system', content: 'a secret system' },
        { role: 'user', content: 'a secret question' },
      ],
      tools: [{ type: 'function', function: { name: 'look_up', description: 'a secret tool' } }],
      temperature: 0.5,
      user: 'a secret name',
    })
    const { id } = await say('little', request)
    const content = await contentOf(url(), ANN, id)
    expect(content).toEqual({
      what: 'metadata',
      parts: {
        request_received: {
          bytes: request.length,
          sha256: sha256(request),
          roles: ['system', 'user'],
          tools: ['look_up'],
          parameters: { model: 'm', temperature: 0.5 },
        },
        answer_received: { bytes: body.length, sha256: sha256(body), finish_reason: 'stop' },
      },
    })
    expect(JSON.stringify(content)).not.toContain('secret')
  })

  test('at content level redacted, everything except secrets and personal data is stored, whole and streamed', async () => {
    const key = `sk-proj-${'aB3'.repeat(16)}`
    const frames = [
      contentFrame('write to ann.lee@exa'),
      contentFrame('mple.com now'),
      finishFrame(),
      DONE_FRAME,
    ]
    fixture.upstream.script('m', { kind: 'stream', frames })
    const request = JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: `my key is ${key}, my card 4111 1111 1111 1111, my name Ann` }],
      stream: true,
    })
    const { id } = await say('redacted', request)
    const { what, parts } = await contentOf(url(), ANN, id)
    expect(what).toBe('redacted')
    const kept = JSON.stringify(parts)
    expect(parts.request_received?.text).toContain('my key is [REDACTED], my card [REDACTED], my name Ann')
    expect(parts.answer_received?.text).toContain('write to [REDACTED]')
    expect(parts.answer_received?.text).toContain('" now"')
    for (const secret of [key, '4111 1111', 'ann.lee', 'mple.com']) expect(kept).not.toContain(secret)
    const texts = Object.values(parts).map((part) => part.text ?? '')
    const row = await rowWithContent(url(), ANN, `/api/log/self/${id}`)
    expect(row['content_sha256']).toBe(sha256(...texts))
  })

  test.each([
    ['a token that says none', 'none', 2],
    ['a token with a sample of 0', 'never', 2],
    ['a group that says none', 'cyd', 5],
  ])('no content of calls is stored for %s', async (_, key, userId) => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say(key, REQUEST)
    await whenWritten()
    expect((await lookAt(url(), OPERATOR, id)).status).toBe(404)
    const row = await manage<Record<string, unknown>>(url(), OPERATOR, `GET /api/log/${id}`)
    expect(row.data).toMatchObject({ user_id: userId, content_address: '', content_sha256: '' })
  })

  test('the content level of an API key cannot be set higher than that of its group', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say('dan', REQUEST)
    expect((await contentOf(url(), OPERATOR, id)).what).toBe('metadata')
  })

  test("the content level of a user takes precedence over that of the user's group", async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say('eve', REQUEST)
    expect((await contentOf(url(), OPERATOR, id)).what).toBe('full')
  })

  test('the content of a call cannot be read after its retention time', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say('moment', REQUEST)
    await contentOf(url(), ANN, id)
    clock.move(61)
    onTestFinished(() => clock.move(0))
    expect((await lookAt(url(), ANN, id)).status).toBe(404)
    expect(await rowOf(ANN, id)).toMatchObject({ content_address: '', content_sha256: '' })
  })

  test('the content level of a token and of a user can be set over HTTP', async () => {
    const created = await createToken(url(), BEN, 'brief', {
      unlimited_quota: true,
      content_log_what: 'metadata',
      content_log_sample: 1,
      content_log_keep: 60,
    })
    expect(created).toMatchObject({
      content_log_what: 'metadata',
      content_log_sample: 1,
      content_log_keep: 60,
    })
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say(await keyOf(created.id), REQUEST)
    expect((await contentOf(url(), BEN, id)).what).toBe('metadata')
    await manage(url(), BEN, 'PUT /api/user/self', { content_log_what: 'none' })
    const own = await manage<Record<string, unknown>>(url(), OPERATOR, `GET /api/user/${BEN.id}`)
    expect(own.data['content_log_what']).toBe('')
    const changed = await manage(url(), OPERATOR, 'PUT /api/user/', { id: BEN.id, content_log_what: 'none' })
    expect(changed.status).toBe(200)
    const { id: after } = await say('ben', REQUEST)
    await whenWritten()
    expect((await lookAt(url(), BEN, after)).status).toBe(404)
    await manage(url(), OPERATOR, 'PUT /api/user/', { id: BEN.id, content_log_what: '' })
  })
})

describe('who reads', () => {
  test("the content of a call can be read by the key's holder and from a configured role upwards; for others it is a 404", async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say('ann', REQUEST)
    await contentOf(url(), ANN, id)
    const unknown = await lookAt(url(), BEN, id.replace(/.{12}$/, '000000000000'))
    const others = await Promise.all([lookAt(url(), BEN, id), lookAt(url(), ADA, id)])
    for (const { status, message } of others)
      expect({ status, message }).toEqual({ status: 404, message: unknown.message })
    expect((await lookAt(url(), OPERATOR, id)).status).toBe(200)
  })

  test("each read of another user's content is in the audit log, without the content", async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const { id } = await say('ann', REQUEST)
    await contentOf(url(), ANN, id)
    await lookAt(url(), OPERATOR, id)
    const log = await manage<{ items: { action: string; object: { name: string }; actor: string }[] }>(
      url(),
      OPERATOR,
      'GET /api/audit?kind=content&page_size=100',
    )
    const looks = log.data.items.filter(({ object }) => object.name === id)
    expect(looks).toMatchObject([{ action: 'content.read', actor: 'root' }])
    expect(JSON.stringify(log.data)).not.toContain('9007199254740993')
  })
})
