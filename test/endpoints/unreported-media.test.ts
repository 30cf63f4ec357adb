import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { picture } from '../fixtures/picture.ts'

/** 20,000 units for an image of one size, 50,000 for others, 1,000 for a second. */
const MEDIA_PRICE = { ...PLAIN_PRICE, second: 0.002, image: { '1024x1024': 0.04, default: 0.1 } }
const LANES = ['gemini', 'chat'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: Object.fromEntries(
      LANES.flatMap((name) => [
        [name, { price: PLAIN_PRICE }],
        [`${name}-media`, { price: MEDIA_PRICE }],
      ]),
    ),
    channels: LANES.map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name, models: [name, `${name}-media`] }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
  }))
})
afterAll(() => fixture?.close())

const inline = (mimeType: string, data: string): object => ({ inlineData: { mimeType, data } })
const SOUND = inline('audio/L16;codec=pcm;rate=24000', Buffer.alloc(48_000 * 3).toString('base64'))
const PARTS = [{ text: 'Once upon' }, inline('image/png', picture(1_024, 1_024)), { text: ' a time' }, SOUND]
const ANSWERS = {
  gemini: { candidates: [{ content: { role: 'model', parts: PARTS }, finishReason: 'STOP', index: 0 }] },
  chat: {
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        message: {
          role: 'assistant',
          content: 'Once upon a time',
          audio: { id: 'a', data: Buffer.alloc(48_000 * 3).toString('base64') },
          images: [
            { type: 'image_url', image_url: { url: `data:image/png;base64,${picture(1_024, 1_024)}` } },
          ],
        },
      },
    ],
  },
} as const

const CLIENTS = {
  chat: ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  messages: ['/v1/messages', { max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }],
  responses: ['/v1/responses', { input: 'hi' }],
  gemini: ['', { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }],
} as const

interface Row extends UsageRow {
  readonly cost: readonly { readonly kind: string; readonly count: number; readonly quota: string }[]
}

/** The usage row of a whole response without usage. */
async function unreported(client: keyof typeof CLIENTS, model: string): Promise<Row> {
  const lane = model.replace('-media', '') as (typeof LANES)[number]
  fixture.upstream.script(lane, { kind: 'whole', body: JSON.stringify(ANSWERS[lane]) })
  const [path, body] = CLIENTS[client]
  const { status, text, headers } = await fixture.chat(
    'ann',
    { ...(client !== 'gemini' && { model }), ...body },
    { path: path || `/v1beta/models/${model}:generateContent` },
  )
  expect(status, text).toBe(200)
  const id = String(headers['x-request-id'])
  const { data } = await manage<Pick<Row, 'cost'>>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)
  return { ...(databaseOf(fixture.gateway.dataDir).usageOf(id) as UsageRow), cost: data.cost }
}

const ROADS = [
  ['chat', 'gemini', 1_290],
  ['messages', 'gemini', 1_290],
  ['responses', 'gemini', 1_290],
  ['gemini', 'gemini', 1_290],
  ['chat', 'chat', 4_160],
  ['messages', 'chat', 4_160],
] as const

describe('media in a whole response without usage', () => {
  test.each(ROADS)(
    'media in an answer without usage are charged as estimated tokens if the model has no media price: %s to %s',
    async (client, model, tokens) => {
      const { quota, input_tokens, output_tokens } = await unreported(client, model)
      // Four words, and three seconds at 20 tokens.
      expect(output_tokens - tokens - 60).toBeGreaterThanOrEqual(4)
      expect(output_tokens - tokens - 60).toBeLessThan(8)
      expect(quota).toBe(input_tokens + 4 * output_tokens)
    },
  )

  test.each(ROADS)(
    "media in an answer without usage are charged by the model's prices of seconds and images: %s to %s",
    async (client, model) => {
      const { quota, input_tokens, output_tokens, cost } = await unreported(client, `${model}-media`)
      expect(output_tokens).toBeLessThan(8)
      expect(quota).toBe(input_tokens + 4 * output_tokens + 3 * 1_000 + 20_000)
      expect(cost.map(({ kind, count }) => [kind, count]).slice(2)).toEqual([
        ['second', 3],
        ['image', 1],
      ])
      expect(cost.reduce((sum, line) => sum + Number(line.quota), 0)).toBe(quota)
    },
  )
})
