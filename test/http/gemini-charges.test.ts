import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames, geminiUsage, streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'

/** Quota units a token: 1 for input, 4 for output, a quarter for cached input; a search is 1,000. */
const price = { input: 2, output: 8, cache_read: 0.5, web_search: 0.002 }
/** The same, with 3 units a token of input audio, and 60 a token of an output image. */
const mediaPrice = { ...price, audio_input: 6, image_output: 120 }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: { plain: { price }, media: { price: mediaPrice } },
    channels: [
      channel('plain', upstream.baseUrl('plain'), { protocol: 'gemini', models: ['plain', 'media'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('poor', { remain_quota: 9_000 }),
        token('modest', { remain_quota: 9_000 }),
        token('tiny', { remain_quota: 3_000 }),
        token('small', { remain_quota: 25_000 }),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const messages = [{ role: 'user', content: 'hi' }]
const SOUND = { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } }
const PICTURE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'cGljdHVyZQ==' } }
const CLIENTS = {
  gemini: { path: '/v1beta/models/plain:generateContent', body: { contents } },
  chat: { path: '/v1/chat/completions', body: { model: 'plain', messages } },
  messages: { path: '/v1/messages', body: { model: 'plain', messages, max_tokens: 90 } },
  responses: { path: '/v1/responses', body: { model: 'plain', input: 'hi' } },
}
type Client = keyof typeof CLIENTS
const EVERY = ['gemini', 'chat', 'messages', 'responses'] as const
const STREAM = '/v1beta/models/plain:streamGenerateContent?alt=sse'

const post = (client: Client, fields: object = {}, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { ...CLIENTS[client].body, ...fields }, { path: CLIENTS[client].path })
const streamed = (client: Client): Promise<FullResponse> =>
  client === 'gemini' ? fixture.chat('ann', { contents }, { path: STREAM }) : post(client, { stream: true })

function charged({ headers, status, text }: FullResponse): number | undefined {
  expect(status, text).toBe(200)
  return databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota
}

const ALL_KINDS = geminiUsage(100, 10, {
  thoughtsTokenCount: 7,
  toolUsePromptTokenCount: 20,
  cachedContentTokenCount: 40,
})
const CHARGE = 80 + 40 / 4 + 17 * 4

describe('the charge of a Gemini call', () => {
  test.each(EVERY)(
    'a Gemini call is charged for prompt and tool results as input, for answer and thoughts as output, for %s',
    async (client) => {
      fixture.upstream.script('plain', wholeGemini({ text: 'said', usage: ALL_KINDS }))
      expect(charged(await post(client))).toBe(CHARGE)
    },
  )

  test.each(EVERY)('a Gemini stream is charged by its last usage report, for %s', async (client) => {
    const early = geminiFrames({
      text: 'Hello there.',
      usage: '{"promptTokenCount":90,"totalTokenCount":90}',
    })
    const last = geminiFrames({ text: 'Hello there.', usage: ALL_KINDS }).slice(-1)
    fixture.upstream.script('plain', {
      kind: 'stream',
      frames: [...early.slice(0, -1), ...last],
      ending: 'no done',
    })
    expect(charged(await streamed(client))).toBe(CHARGE)
  })

  test('a Gemini stream is charged by a usage report after the finish reason', async () => {
    const usage = `data: {"usageMetadata":${ALL_KINDS}}\r\n\r\n`
    const frames = [...geminiFrames({ text: 'Hello there.', usage: geminiUsage(100, 1) }), usage]
    fixture.upstream.script('plain', { kind: 'stream', frames, ending: 'no done' })
    const answer = await streamed('gemini')
    expect(charged(answer)).toBe(CHARGE)
    expect(answer.text).toBe(frames.join(''))
  })

  test('the charge of a Gemini stream is durable before its finish reason is sent', async () => {
    const frames = geminiFrames({ text: 'Hello there.' })
    const { promise: closing, resolve: close } = Promise.withResolvers<undefined>()
    fixture.upstream.script('plain', {
      kind: 'stream',
      frames,
      rest: { after: closing, frames: [] },
      ending: 'no done',
    })
    const live = await fixture.live('ann', { contents }, { path: STREAM })
    await live.until('lo there.')
    expect(live.text()).not.toContain('finishReason')
    close(undefined)
    expect((await live.end()).text).toBe(frames.join(''))
  })

  test('a Gemini response without usage is charged by the tokens that the gateway counts', async () => {
    fixture.upstream.script('plain', wholeGemini({ text: 'said', usage: 'null' }))
    expect(charged(await post('gemini'))).toBeGreaterThan(0)
  })

  test('a Gemini prompt that the provider blocks is charged as input', async () => {
    const body = JSON.stringify({
      promptFeedback: { blockReason: 'SAFETY' },
      usageMetadata: { promptTokenCount: 12, totalTokenCount: 12 },
    })
    fixture.upstream.script('plain', { kind: 'whole', body })
    const answer = await post('gemini')
    expect(answer.text).toBe(body)
    expect(charged(answer)).toBe(12)
    fixture.upstream.script('plain', { kind: 'whole', body })
    expect((await post('chat')).json().choices).toMatchObject([{ finish_reason: 'content_filter' }])
  })

  test('the Google searches of a Gemini call are charged in addition to its tokens', async () => {
    const answer = JSON.parse(String(wholeGemini({ text: 'said' }).body))
    answer.candidates[0].groundingMetadata = { webSearchQueries: ['one', 'two'] }
    fixture.upstream.script('plain', { kind: 'whole', body: JSON.stringify(answer) })
    expect(charged(await post('gemini', { tools: [{ googleSearch: {} }] }))).toBe(10 + 5 * 4 + 2_000)
  })

  test('audio and images of a Gemini call are charged and held at their own prices', async () => {
    const usage = geminiUsage(100, 50, {
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 40 },
        { modality: 'AUDIO', tokenCount: 60 },
      ],
      candidatesTokensDetails: [
        { modality: 'TEXT', tokenCount: 20 },
        { modality: 'IMAGE', tokenCount: 30 },
      ],
    })
    fixture.upstream.script('plain', wholeGemini({ text: 'seen', usage }))
    const path = '/v1beta/models/media:generateContent'
    const asked = (key: string, fields: object = {}) =>
      fixture.chat(key, { contents, generationConfig: { maxOutputTokens: 400, ...fields } }, { path })
    expect(charged(await asked('ann'))).toBe(40 + 60 * 3 + 20 * 4 + 30 * 60)
    expect(charged(await asked('modest'))).toBe(40 + 60 * 3 + 20 * 4 + 30 * 60)
    expect((await asked('modest', { responseModalities: ['TEXT', 'IMAGE'] })).status).toBe(403)
  })

  test.each([
    ['chat', 'tiny', { messages: [{ role: 'user', content: [SOUND] }], max_tokens: 9 }],
    ['responses', 'tiny', { input: [{ role: 'user', content: [SOUND] }], max_output_tokens: 9 }],
    ['messages', 'small', { messages: [{ role: 'user', content: [PICTURE] }], max_tokens: 9 }],
  ] as const)(
    'the hold of a %s request to Gemini counts audio and pictures at their own prices',
    async (client, key, asked) => {
      fixture.upstream.script('plain', wholeGemini({ text: 'seen', usage: geminiUsage(10, 5) }))
      expect((await post(client, { ...asked, model: 'media' }, key)).status).toBe(403)
      expect(fixture.upstream.received('plain')).toHaveLength(0)
      // The same request, at the price of text.
      expect((await post(client, asked, key)).status).toBe(200)
    },
  )

  test('counting tokens of a Gemini request costs nothing, and leaves no usage row', async () => {
    fixture.upstream.script('plain', { kind: 'whole', body: '{"totalTokens":7}' })
    const path = '/v1beta/models/plain:countTokens'
    const { headers, status } = await fixture.chat('ann', { contents }, { path })
    expect(status).toBe(200)
    const database = databaseOf(fixture.gateway.dataDir)
    expect(database.usageOf(String(headers['x-request-id']))).toBeUndefined()
  })
})

describe('the hold of a Gemini call', () => {
  test('the hold of a Gemini call covers the maximum output, thoughts included, for each requested candidate', async () => {
    fixture.upstream.script('plain', wholeGemini({ text: 'said' }))
    const asked = (maxOutputTokens: number, candidateCount = 1) =>
      post('gemini', { generationConfig: { maxOutputTokens, candidateCount } }, 'poor')
    expect((await asked(2_000)).status).toBe(200)
    const tooMany = await asked(2_000, 2)
    expect(tooMany.status).toBe(403)
    expect(JSON.parse(tooMany.text)).toMatchObject({
      error: { status: 'PERMISSION_DENIED', details: [{ reason: 'insufficient_quota' }] },
    })
    expect((await asked(4_000)).status).toBe(403)
  })

  test("a Gemini stream that uses up its held quota ends with an error in Google's format", async () => {
    const words = Array.from({ length: 400 }, () => 'word '.repeat(40)).join('')
    fixture.upstream.script('plain', streamedGemini({ text: words, usage: 'null' }))
    const { text } = await fixture.chat(
      'poor',
      { contents, generationConfig: { maxOutputTokens: 10 } },
      { path: STREAM },
    )
    expect(JSON.parse(text.trimEnd().split('\r\n\r\n').at(-1)?.slice(6) ?? '')).toMatchObject({
      error: { details: [{ reason: 'insufficient_quota' }] },
    })
  })
})
