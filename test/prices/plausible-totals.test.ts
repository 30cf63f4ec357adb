import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

const PROVIDERS = ['chat', 'responses', 'gemini'] as const
type Provider = (typeof PROVIDERS)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: Object.fromEntries(PROVIDERS.map((name) => [name, { vendor: 'acme', price: PLAIN_PRICE }])),
    channels: PROVIDERS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** Token counts of a usage report, independent of the dialect. */
interface Report {
  readonly prompt: number
  readonly output: number
  readonly total: number
  readonly cached?: number
}

/** The usage object in each dialect. */
const USAGE: Readonly<Record<Provider, (report: Report) => string>> = {
  chat: ({ prompt, output, total, cached = 0 }) =>
    `{"prompt_tokens":${prompt},"completion_tokens":${output},"total_tokens":${total},"prompt_tokens_details":{"cached_tokens":${cached}}}`,
  responses: ({ prompt, output, total, cached = 0 }) =>
    `{"input_tokens":${prompt},"output_tokens":${output},"total_tokens":${total},"input_tokens_details":{"cached_tokens":${cached}}}`,
  gemini: ({ prompt, output, total, cached = 0 }) =>
    `{"promptTokenCount":${prompt},"candidatesTokenCount":${output},"totalTokenCount":${total},"cachedContentTokenCount":${cached}}`,
}
const ANSWERS = {
  chat: { whole: wholeChat, streamed: streamedChat },
  responses: { whole: wholeResponse, streamed: streamedResponse },
  gemini: { whole: wholeGemini, streamed: streamedGemini },
} as const

const hi = [{ role: 'user', content: 'hi' }]
/** Requests of a client, with and without a maximum of output. */
const CLIENTS = {
  chat: (model: string, stream: boolean, maximum?: number) => ({
    path: '/v1/chat/completions',
    body: { model, messages: hi, stream, ...(maximum && { max_tokens: maximum }) },
  }),
  messages: (model: string, stream: boolean, maximum?: number) => ({
    path: '/v1/messages',
    body: { model, messages: hi, stream, max_tokens: maximum ?? 8192 },
  }),
  responses: (model: string, stream: boolean, maximum?: number) => ({
    path: '/v1/responses',
    body: { model, input: 'hi', stream, ...(maximum && { max_output_tokens: maximum }) },
  }),
  gemini: (model: string, stream: boolean, maximum?: number) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      contents: [{ parts: [{ text: 'hi' }] }],
      ...(maximum && { generationConfig: { maxOutputTokens: maximum } }),
    },
  }),
} as const
type Client = keyof typeof CLIENTS

interface Call {
  readonly client: Client
  readonly provider: Provider
  readonly stream: boolean
  readonly maximum?: number
  readonly fields?: object
}

/** The usage row of a call for which the provider sends this report. */
async function rowOf({ client, provider, stream, maximum, fields }: Call, report: Report): Promise<UsageRow> {
  const content = { text: 'said', usage: USAGE[provider](report) }
  fixture.upstream.script(provider, ANSWERS[provider][stream ? 'streamed' : 'whole'](content))
  const { path, body } = CLIENTS[client](provider, stream, maximum)
  const answer: FullResponse = await fixture.chat('ann', { ...body, ...fields }, { path })
  expect(answer.status, answer.text).toBe(200)
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error('no row')
  return row
}

/** Whether the log line of a call states that its total was ignored. */
async function ignoredTotal(id: string): Promise<unknown> {
  const lineOf = (): string | undefined =>
    fixture.gateway
      .logs()
      .split('\n')
      .find((line) => line.includes(`"id":"${id}"`) && line.includes('"msg":"request"'))
  await expect.poll(lineOf).toBeDefined()
  return (JSON.parse(lineOf() ?? '') as { ignoredTotal?: unknown }).ignoredTotal
}

const ROADS = PROVIDERS.flatMap((provider) =>
  [provider, provider === 'chat' ? ('messages' as const) : ('chat' as const)].flatMap((client) =>
    [false, true].map((stream) => ({ client, provider, stream })),
  ),
)

describe.each(ROADS)('the total of $provider for a client of $client (streamed: $stream)', (road) => {
  test("a provider's total token count beyond prompt and output is charged as output if it fits into the requested maximum", async () => {
    const row = await rowOf({ ...road, maximum: 50 }, { prompt: 100, output: 10, total: 150 })
    expect(row).toMatchObject({ input_tokens: 100, output_tokens: 50, quota: 100 + 50 * 4 })
    expect(await ignoredTotal(row.id)).toBeUndefined()
  })

  test("a provider's total token count that exceeds the requested output maximum is ignored and logged", async () => {
    const row = await rowOf({ ...road, maximum: 50 }, { prompt: 100, output: 10, total: 151 })
    expect(row).toMatchObject({ input_tokens: 100, output_tokens: 10, quota: 100 + 10 * 4 })
    expect(await ignoredTotal(row.id)).toBe(151)
  })

  test("cached tokens are charged beside the prompt count where the provider's total count includes them on top of it", async () => {
    const row = await rowOf({ ...road, maximum: 50 }, { prompt: 100, output: 10, total: 510, cached: 400 })
    expect(row).toMatchObject({ output_tokens: 10, quota: 100 + 400 / 4 + 10 * 4 })
    expect(await ignoredTotal(row.id)).toBeUndefined()
  })
})

describe.each(PROVIDERS)('the total of %s without a maximum', (provider) => {
  const call = { client: provider, provider, stream: false }

  test("a provider's total token count is charged as up to 65,536 output tokens, and ignored beyond, if the request has no maximum", async () => {
    expect(await rowOf(call, { prompt: 100, output: 10, total: 100 + 65_536 })).toMatchObject({
      output_tokens: 65_536,
    })
    const row = await rowOf(call, { prompt: 100, output: 10, total: 100 + 65_537 })
    expect(row).toMatchObject({ input_tokens: 100, output_tokens: 10 })
    expect(await ignoredTotal(row.id)).toBe(100 + 65_537)
  })
})

test.each([
  ['chat', { n: 3 }],
  ['gemini', { generationConfig: { maxOutputTokens: 50, candidateCount: 3 } }],
] as const)(
  "a %s provider's total token count may include the requested maximum for each requested choice",
  async (provider, fields) => {
    const call = { client: provider, provider, stream: false, maximum: 50, fields }
    expect(await rowOf(call, { prompt: 100, output: 10, total: 250 })).toMatchObject({ output_tokens: 150 })
    expect(await rowOf(call, { prompt: 100, output: 10, total: 251 })).toMatchObject({ output_tokens: 10 })
  },
)
