import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { OUTPUT_USERS, outputGuards } from '../fixtures/output-guards.ts'

const CODE = 'it is code-1-x'

let fixture: Fixture
let services: GuardServices
beforeAll(async () => {
  services = await startGuardServices()
  fixture = await startFixture((upstream) => ({
    models: priced(['vectors', 'gemini-vectors']),
    channels: [
      channel('vectors', upstream.baseUrl('vectors')),
      channel('gemini-vectors', upstream.baseUrl('gemini-vectors'), { protocol: 'gemini' }),
    ],
    guards: outputGuards(services.url),
    users: OUTPUT_USERS,
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})

const NUMBERS = Array.from({ length: 500 }, (_, at) => at / 8)

/** The APIs of embeddings: an answer with a text in places where an upstream may write one, and an empty answer. */
const APIS = {
  openai: {
    model: 'vectors',
    answer: (text: string) => ({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: NUMBERS, x_note: text },
        { object: 'embedding', index: 1, embedding: NUMBERS, x_notes: [{ deep: text }] },
      ],
      model: 'vectors',
      usage: { prompt_tokens: 3, total_tokens: 3 },
      x_note: text,
    }),
    emptied: { object: 'list', data: [], usage: { prompt_tokens: 3 } },
    ask: (key: string, model: string) =>
      fixture.chat(key, { model, input: ['a', 'b'] }, { path: '/v1/embeddings' }),
  },
  gemini: {
    model: 'gemini-vectors',
    answer: (text: string) => ({
      embedding: { values: NUMBERS, x_note: text, x_notes: [{ deep: text }] },
      usageMetadata: { promptTokenCount: 3 },
      x_note: text,
    }),
    emptied: { embedding: { values: [] }, usageMetadata: { promptTokenCount: 3 } },
    ask: (key: string, model: string) =>
      fixture.chat(
        key,
        { content: { parts: [{ text: 'a' }] } },
        { path: `/v1beta/models/${model}:embedContent`, headers: { 'x-goog-api-key': `sk-${key}` } },
      ),
  },
} as const

function answered(api: keyof typeof APIS, key: string, body: object): Promise<FullResponse> {
  const { ask, model } = APIS[api]
  fixture.upstream.script(model, { kind: 'whole', body: JSON.stringify(body) })
  return ask(key, model)
}

describe.each(['openai', 'gemini'] as const)('an answer of embeddings in the API of %s', (api) => {
  const { answer, emptied } = APIS[api]

  test.each([
    ['a guard of texts', 'ann', 'it is [REDACTED]'],
    ["a guard's service", 'eve', 'it is <code>'],
  ])(
    'is redacted by %s in each text that the upstream has added, and keeps its vectors',
    async (_, key, instead) => {
      const { status, text } = await answered(api, key, answer(CODE))
      expect([status, JSON.parse(text)]).toEqual([200, answer(instead)])
    },
  )

  test('has no vectors and no text of the upstream if a guard blocks it', async () => {
    const { status, text } = await answered(api, 'ben', answer(CODE))
    expect(status).toBe(200)
    expect(JSON.parse(text)).toMatchObject(emptied)
    expect(text).not.toContain('code-1-x')
  })

  test('passes byte for byte as without guards if nothing matches', async () => {
    const { text } = await answered(api, 'kim', answer('fine'))
    expect(text).toBe(JSON.stringify(answer('fine')))
    for (const key of ['ann', 'ben', 'eve'])
      expect((await answered(api, key, answer('fine'))).text).toBe(text)
  })
})

test.each([
  ['a text in place of a vector', CODE],
  ['a list with a text', [0.5, CODE]],
])('%s is checked like any other text', async (_, embedding) => {
  const body = JSON.stringify({
    object: 'list',
    data: [{ object: 'embedding', embedding }],
    model: 'vectors',
  })
  const texts = []
  for (const key of ['kim', 'ann']) {
    fixture.upstream.script('vectors', { kind: 'whole', body })
    texts.push((await APIS.openai.ask(key, 'vectors')).text)
  }
  expect(texts[0]).toBe(body)
  expect(texts[1]).not.toContain(JSON.stringify(embedding))
})

test('a converted answer of embeddings has no text of the upstream in place of a vector', async () => {
  fixture.upstream.script('gemini-vectors', {
    kind: 'whole',
    body: JSON.stringify({ embeddings: [{ values: CODE }, { values: CODE }] }),
  })
  const { status, text } = await APIS.openai.ask('kim', 'gemini-vectors')
  expect(status).toBe(500)
  expect(text).not.toContain('code-1-x')
})

test('an answer with more numbers than guards could list one by one passes', async () => {
  const many = { object: 'embedding', embedding: Array.from({ length: 12_000 }, () => 0.5) }
  const body = {
    object: 'list',
    data: Array.from({ length: 200 }, () => many),
    model: 'vectors',
    x_note: CODE,
  }
  const { status, text } = await answered('openai', 'ann', body)
  expect(status).toBe(200)
  expect(text).toBe(JSON.stringify({ ...body, x_note: 'it is [REDACTED]' }))
})

test('vectors that are converted to base64 for their client keep their form behind a guard', async () => {
  fixture.upstream.script('vectors', { kind: 'whole', body: JSON.stringify(APIS.openai.answer(CODE)) })
  const asked = { model: 'vectors', input: ['a', 'b'], encoding_format: 'base64' }
  const { text } = await fixture.chat('ann', asked, { path: '/v1/embeddings' })
  const embedding = Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')
  const { data, ...rest } = APIS.openai.answer('it is [REDACTED]')
  expect(JSON.parse(text)).toEqual({ ...rest, data: data.map((one) => ({ ...one, embedding })) })
})
