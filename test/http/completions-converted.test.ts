import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames, geminiUsage, streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { messageFrames, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { frames, responsesUsage, streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

const TEXT = 'hello there'
/** A client that closes sooner after its request may only have closed its sending side. */
const PAST_HALF_CLOSE_MS = 120

/** Responses of one protocol with the same text: ten tokens of prompt and five of output. */
interface Spoken {
  readonly whole: Behaviour
  readonly streamed: Behaviour
  readonly frames: readonly string[]
  /** The request path for a stream. */
  readonly path: string
}

const SPOKEN = {
  messages: {
    whole: wholeMessage([{ text: TEXT }]),
    streamed: streamedMessage([{ text: TEXT }]),
    frames: messageFrames([{ text: TEXT }]),
    path: '/v1/messages',
  },
  gemini: {
    whole: wholeGemini({ text: TEXT, usage: geminiUsage(10, 5) }),
    streamed: streamedGemini({ text: TEXT, usage: geminiUsage(10, 5) }),
    frames: geminiFrames({ text: TEXT, usage: geminiUsage(10, 5) }),
    path: '/v1/models/gemini:streamGenerateContent?alt=sse',
  },
  responses: {
    whole: wholeResponse({ text: TEXT, usage: responsesUsage(10, 5) }),
    streamed: streamedResponse({ text: TEXT, usage: responsesUsage(10, 5) }),
    frames: frames({ text: TEXT, usage: responsesUsage(10, 5) }),
    path: '/v1/responses',
  },
} satisfies Record<string, Spoken>
const PROTOCOLS = Object.keys(SPOKEN) as (keyof typeof SPOKEN)[]

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: Object.fromEntries(
      PROTOCOLS.flatMap((name) => [name, `pair-${name}`]).map((name) => [name, { price: PLAIN_PRICE }]),
    ),
    channels: PROTOCOLS.flatMap((name) => [
      channel(name, upstream.baseUrl(name), { protocol: name }),
      channel(`first-${name}`, upstream.baseUrl(`first-${name}`), {
        protocol: name,
        models: [`pair-${name}`],
        priority: 5,
      }),
      channel(`second-${name}`, upstream.baseUrl(`second-${name}`), {
        protocol: name,
        models: [`pair-${name}`],
      }),
    ]),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const PATH = '/v1/completions'
const body = (model: string, fields: object = {}): object => ({
  model,
  prompt: 'say hello',
  max_tokens: 20,
  stream: true,
  ...fields,
})
const complete = (model: string, fields: object = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, body(model, fields), { key: 'ann', path: PATH })

interface Chunk {
  readonly object?: string
  readonly choices?: readonly { readonly text?: string; readonly finish_reason?: string | null }[]
  readonly usage?: object | null
  readonly error?: object
}

/** The chunks of a stream, without its terminator. */
const chunksOf = (text: string): Chunk[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as Chunk)

const textOf = (chunks: readonly Chunk[]): string =>
  chunks.flatMap(({ choices = [] }) => choices.map(({ text = '' }) => text)).join('')

function rowOf(answer: Pick<FullResponse, 'headers'>): UsageRow | undefined {
  return database.usageOf(String(answer.headers['x-request-id']))
}

describe.each(PROTOCOLS)('a prompt on a channel of %s', (name) => {
  const spoken: Spoken = SPOKEN[name]

  test('a converted legacy completion is streamed as text chunks, the last one with its finish reason, and charged by usage', async () => {
    fixture.upstream.script(name, spoken.streamed)
    const answer = await complete(name)
    const chunks = chunksOf(answer.text)
    expect(new Set(chunks.map(({ object }) => object))).toEqual(new Set(['text_completion']))
    expect(textOf(chunks)).toBe(TEXT)
    const reasons = chunks.flatMap(({ choices = [] }) => choices.map((one) => one.finish_reason ?? null))
    expect(reasons.filter((reason) => reason !== null)).toEqual(['stop'])
    expect(chunks.every(({ usage }) => usage === undefined || usage === null)).toBe(true)
    expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(fixture.upstream.only(name).path).toBe(spoken.path)
    expect(rowOf(answer)).toMatchObject({ kind: 'completions', quota: 10 + 4 * 5, reason: 'complete' })
  })

  test('a converted stream of a legacy completion ends with the usage where the client requests it', async () => {
    fixture.upstream.script(name, spoken.streamed)
    const chunks = chunksOf((await complete(name, { stream_options: { include_usage: true } })).text)
    expect(chunks.at(-1)).toMatchObject({
      object: 'text_completion',
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    })
  })

  test('the official OpenAI client reads a converted legacy completion, whole and streamed', async () => {
    const { url } = fixture.gateway
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${url}/v1`, maxRetries: 0 })
    const request = { model: name, prompt: 'say hello', max_tokens: 20 }
    fixture.upstream.script(name, spoken.whole)
    const { choices, usage } = await client.completions.create(request)
    expect([choices[0]?.text, usage?.total_tokens]).toEqual([TEXT, 15])
    fixture.upstream.script(name, spoken.streamed)
    let text = ''
    for await (const chunk of await client.completions.create({ ...request, stream: true }))
      text += chunk.choices[0]?.text ?? ''
    expect(text).toBe(TEXT)
  })

  test('a converted legacy completion goes to the next channel where the first one fails before any text', async () => {
    const model = `pair-${name}`
    fixture.upstream.script(`first-${name}`, { kind: 'status', status: 500, body: '{}' })
    fixture.upstream.script(`second-${name}`, spoken.streamed)
    const answer = await complete(model)
    expect(textOf(chunksOf(answer.text))).toBe(TEXT)
    expect(rowOf(answer)).toMatchObject({ quota: 30, channel: `second-${name}` })
  })

  test('a converted legacy completion whose stream breaks off ends with an error, and is charged for the output that arrived', async () => {
    fixture.upstream.script(name, { kind: 'stream', frames: spoken.frames.slice(0, -2), ending: 'reset' })
    const answer = await (await open(fixture.gateway.url, body(name), { key: 'ann', path: PATH })).end()
    const chunks = chunksOf(answer.text)
    expect(TEXT.startsWith(textOf(chunks))).toBe(true)
    expect(chunks.at(-1)?.error).toBeDefined()
    expect(answer.text).not.toContain('[DONE]')
    await expect.poll(() => rowOf(answer)).toMatchObject({ reason: 'cut' })
    expect(rowOf(answer)?.quota).toBeGreaterThan(0)
  })

  test('a converted legacy completion whose client leaves in the middle is charged for the output generated until then', async () => {
    const never = new Promise<void>(() => {})
    fixture.upstream.script(name, {
      kind: 'stream',
      frames: spoken.frames.slice(0, -2),
      rest: { after: never, frames: [] },
    })
    const live = await open(fixture.gateway.url, body(name), { key: 'ann', path: PATH })
    await live.until('"text":"h')
    await sleep(PAST_HALF_CLOSE_MS)
    live.abort()
    await expect.poll(() => rowOf(live)).toMatchObject({ reason: 'client_gone', kind: 'completions' })
    expect(rowOf(live)?.output_tokens).toBeGreaterThan(0)
  })

  test.each([
    ['echo', { echo: true }],
    ['suffix', { suffix: 'b' }],
    ['best_of', { best_of: 2 }],
    ['logprobs', { logprobs: 0 }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [[1, 2]] }],
  ])(
    'a legacy completion with a parameter that cannot be converted to a conversation is a 400: %s',
    async (field, fields) => {
      fixture.upstream.script(name, spoken.streamed)
      const answer = await complete(name, fields)
      expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
      expect(answer.json().error.message).toContain(`'${field}'`)
      expect(fixture.upstream.received(name)).toEqual([])
    },
  )
})
