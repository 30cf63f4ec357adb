import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { byTier } from '../runner/tier.ts'

const ANSWERS = {
  responses: wholeResponse({ text: 'said' }),
  gemini: wholeGemini({ text: 'said' }),
  chat: wholeChat({ text: 'said' }),
}
const MODELS = Object.keys(ANSWERS) as (keyof typeof ANSWERS)[]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(MODELS),
    channels: MODELS.map((protocol) =>
      channel(protocol, upstream.baseUrl(protocol), {
        protocol,
        allow: ['safety_identifier', 'include_obfuscation'],
      }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** JSON values of every kind, also beyond every documented range. */
const ODD = [
  '-7',
  '1.50',
  '1e3',
  '12345678901234567890',
  'true',
  'null',
  '""',
  '"odd"',
  '[]',
  '[[1]]',
  '{}',
  '{"a":{"b":[1]}}',
]

/** Fields that do not affect routing, holds and charges; they are tested with the values in `ODD`. */
const RESPONSES = [
  'instructions',
  'stream_options',
  'conversation',
  'include',
  'parallel_tool_calls',
  'temperature',
  'top_p',
  'top_logprobs',
  'tool_choice',
  'text',
  'reasoning',
  'truncation',
  'metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'safety_identifier',
  'user',
  'prompt',
  'client_metadata',
]
const GEMINI = [
  'systemInstruction',
  'system_instruction',
  'toolConfig',
  'tool_config',
  'safetySettings',
  'safety_settings',
  'cachedContent',
  'cached_content',
  'continuationToken',
  'continuation_token',
  'labels',
]
const GEMINI_CONFIG = [
  'temperature',
  'topP',
  'top_p',
  'topK',
  'top_k',
  'stopSequences',
  'stop_sequences',
  'seed',
  'presencePenalty',
  'presence_penalty',
  'frequencyPenalty',
  'frequency_penalty',
  'responseLogprobs',
  'logprobs',
  'responseModalities',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'mediaResolution',
  'speechConfig',
  'thinkingConfig',
]

type Model = keyof typeof ANSWERS
interface Request {
  readonly path: string
  readonly body: string
}
const responsesRequest = (model: Model, field: string, value: string): Request => ({
  path: '/v1/responses',
  body: `{ "${field}" : ${value},\n "model":"${model}","input":"hi" }`,
})
const geminiRequest = (model: Model, members: string): Request => ({
  path: `/v1beta/models/${model}:generateContent`,
  body: `{ ${members},\n "contents":[ {"parts":[{"text":"hi"}]} ] }`,
})

/** Requests of a client of each dialect, one for each field and odd value. */
const REQUESTS: Readonly<
  Record<'responses' | 'gemini', readonly [string, (model: Model, value: string) => Request][]>
> = {
  responses: RESPONSES.map((field) => [field, (model, value) => responsesRequest(model, field, value)]),
  gemini: [
    ...GEMINI.map((field): [string, (model: Model, value: string) => Request] => [
      field,
      (model, value) => geminiRequest(model, `"${field}" : ${value}`),
    ]),
    ...GEMINI_CONFIG.map((field): [string, (model: Model, value: string) => Request] => [
      `generationConfig.${field}`,
      (model, value) => geminiRequest(model, `"generationConfig":{"${field}" : ${value}}`),
    ]),
  ],
}

/** The values that are tried with a field, at a provider of the same dialect (0) or of another (1): by day half of them. */
const oddValues = (field: number, to: 0 | 1): readonly string[] =>
  byTier(
    ODD.filter((_, at) => (field + at) % 2 === to),
    ODD,
  )

function post(model: Model, { path, body }: Request): Promise<FullResponse> {
  fixture.upstream.script(model, ANSWERS[model])
  return fixture.chat('ann', body, { path })
}

describe.each(['responses', 'gemini'] as const)('a field of %s that the provider checks', (dialect) => {
  const fields = REQUESTS[dialect].map(([field, requestOf], at) => [field, requestOf, at] as const)

  test.each(fields)(
    'the field %s reaches a provider of the same dialect byte for byte, whatever its value',
    async (_, requestOf, at) => {
      for (const value of oddValues(at, 0)) {
        const request = requestOf(dialect, value)
        const answer = await post(dialect, request)
        expect(answer.status, `${value}: ${answer.text}`).toBe(200)
        expect(fixture.upstream.only(dialect).text).toBe(request.body)
      }
    },
  )

  test.each(fields)(
    'a request with an unexpected value of the field %s is converted for another dialect or is a 400, and never a 500',
    async (_, requestOf, at) => {
      for (const value of oddValues(at, 1)) {
        const answer = await post('chat', requestOf('chat', value))
        expect([200, 400], `${value}: ${answer.text}`).toContain(answer.status)
      }
    },
  )
})
