import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Dialect, type Json } from './facts.ts'
import { startRoads } from './roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

const PROMPT = [{ role: 'user', content: 'hi' }]
/** Requests for two choices with log probabilities, from a client of chat and one of Gemini. */
function chat(model: Dialect, fields: object): Promise<FullResponse> {
  return fixture.chat('ann', { model, messages: PROMPT, ...fields })
}
function gemini(
  model: Dialect,
  config: object,
  method = 'generateContent',
  key = 'ann',
): Promise<FullResponse> {
  const body = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: config }
  return fixture.chat(key, body, { path: `/v1beta/models/${model}:${method}` })
}

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const eventsOf = (text: string): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Json)

const CALL = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const TOKEN = { token: 'Yes', logprob: -0.25, bytes: null }
const OTHER = { token: 'No', logprob: -1.5, bytes: null }
const LOGPROBS = { content: [{ ...TOKEN, top_logprobs: [TOKEN, OTHER] }], refusal: null }
const RESULT = {
  topCandidates: [
    {
      candidates: [
        { token: 'Yes', logProbability: -0.25 },
        { token: 'No', logProbability: -1.5 },
      ],
    },
  ],
  chosenCandidates: [{ token: 'Yes', logProbability: -0.25 }],
}
const CHAT_USAGE = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
const GEMINI_USAGE = { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 }

const CHAT_ANSWER = {
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'Yes' }, logprobs: LOGPROBS, finish_reason: 'length' },
    {
      index: 1,
      message: { role: 'assistant', content: null, tool_calls: [CALL] },
      finish_reason: 'tool_calls',
    },
  ],
  usage: CHAT_USAGE,
}
const GEMINI_ANSWER = {
  candidates: [
    {
      index: 0,
      content: { role: 'model', parts: [{ text: 'Yes' }] },
      finishReason: 'MAX_TOKENS',
      logprobsResult: RESULT,
    },
    {
      index: 1,
      content: { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } } }] },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: GEMINI_USAGE,
}

describe('several choices of a Gemini provider', () => {
  test("a Gemini provider's whole response with several candidates becomes several choices for a chat client", async () => {
    fixture.upstream.script('gemini', { kind: 'whole', body: JSON.stringify(GEMINI_ANSWER) })
    const reply = await chat('gemini', { n: 2, logprobs: true, top_logprobs: 2 })
    expect(JSON.parse(fixture.upstream.only('gemini').text)['generationConfig']).toEqual({
      candidateCount: 2,
      responseLogprobs: true,
      logprobs: 2,
    })
    const answer = reply.json() as Json
    expect(answer['choices']).toMatchObject([
      { index: 0, message: { content: 'Yes' }, finish_reason: 'length', logprobs: LOGPROBS },
      {
        index: 1,
        message: { content: null, tool_calls: [{ function: CALL.function }] },
        finish_reason: 'tool_calls',
      },
    ])
    expect(answer['usage']).toMatchObject({ completion_tokens: 5 })
  })

  test('streamed candidates of a Gemini provider become choices for a chat client, in whatever order their chunks alternate', async () => {
    const [first, second] = GEMINI_ANSWER.candidates
    const text = [
      frame({ candidates: [second] }),
      frame({ candidates: [{ index: 0, content: { parts: [{ text: 'Yes' }] }, logprobsResult: RESULT }] }),
      frame({
        candidates: [{ ...first, logprobsResult: undefined, content: {} }],
        usageMetadata: GEMINI_USAGE,
      }),
    ].join('')
    fixture.upstream.script('gemini', { kind: 'stream', frames: [text], ending: 'no done' })
    const options = { stream: true, stream_options: { include_usage: true } }
    const answer = await chat('gemini', { n: 2, logprobs: true, ...options })
    const events = eventsOf(answer.text)
    const of = (index: number): Json[] =>
      events.flatMap((event) => event['choices'] ?? []).filter((one: Json) => one['index'] === index)
    expect(
      of(0)
        .map(({ delta }) => delta.content ?? '')
        .join(''),
    ).toBe('Yes')
    expect(of(0).find(({ logprobs }) => logprobs)?.['logprobs']).toEqual(LOGPROBS)
    expect(of(1)[0]).toMatchObject({ delta: { role: 'assistant' } })
    const pieces = of(1).flatMap(({ delta }) => delta.tool_calls ?? [])
    expect(pieces.map((call) => call.function.arguments ?? '').join('')).toBe('{"a":1}')
    expect(of(0).at(-1)).toMatchObject({ finish_reason: 'length' })
    expect(of(1).at(-1)).toMatchObject({ finish_reason: 'tool_calls' })
    expect(events.at(-1)?.['usage']).toMatchObject({ completion_tokens: 5 })
    expect(answer.text).toMatch(/data: \[DONE\]\n\n$/)
  })
})

describe('several choices of a chat provider', () => {
  const CANDIDATES = [
    {
      index: 0,
      content: { parts: [{ text: 'Yes' }] },
      finishReason: 'MAX_TOKENS',
      avgLogprobs: -0.25,
      logprobsResult: RESULT,
    },
    {
      index: 1,
      content: { parts: [{ functionCall: { id: 'c1', name: 'f', args: { a: 1 } } }] },
      finishReason: 'STOP',
    },
  ]
  const config = { candidateCount: 2, responseLogprobs: true, logprobs: 2 }

  test("a chat provider's whole response with several choices becomes several candidates for a Gemini client", async () => {
    fixture.upstream.script('chat', { kind: 'whole', body: JSON.stringify(CHAT_ANSWER) })
    const answer = await gemini('chat', config)
    expect(JSON.parse(fixture.upstream.only('chat').text)).toMatchObject({
      n: 2,
      logprobs: true,
      top_logprobs: 2,
    })
    expect((answer.json() as Json)['candidates']).toMatchObject(CANDIDATES)
  })

  const chunk = (choice: object): string =>
    frame({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] })
  const STREAM = [
    chunk({ index: 1, delta: { role: 'assistant', tool_calls: [{ index: 0, ...CALL }] } }),
    chunk({ index: 0, delta: { content: 'Yes' }, logprobs: LOGPROBS }),
    chunk({ index: 1, delta: {}, finish_reason: 'tool_calls' }),
    chunk({ index: 0, delta: {}, finish_reason: 'length' }),
    frame({ id: 'x', choices: [], usage: CHAT_USAGE }),
    'data: [DONE]\n\n',
  ]

  test.each(['?alt=sse', ''])(
    'streamed choices of a chat provider become candidates for a Gemini client (%s)',
    async (form) => {
      fixture.upstream.script('chat', { kind: 'stream', frames: [STREAM.join('')], ending: 'no done' })
      const answer = await gemini('chat', config, `streamGenerateContent${form}`)
      const events = form === '' ? (JSON.parse(answer.text) as Json[]) : eventsOf(answer.text)
      const of = (index: number): Json[] =>
        events.flatMap((event) => event['candidates']).filter((one: Json) => one['index'] === index)
      expect(
        of(0)
          .map(({ content }) => content.parts[0].text)
          .join(''),
      ).toBe('Yes')
      expect(of(0).find(({ logprobsResult }) => logprobsResult)?.['logprobsResult']).toEqual(RESULT)
      expect(of(1)[0]).toMatchObject({
        content: { parts: [{ functionCall: { name: 'f', args: { a: 1 } } }] },
      })
      expect([of(0).at(-1)?.['finishReason'], of(1).at(-1)?.['finishReason']]).toEqual(['MAX_TOKENS', 'STOP'])
      expect(events.at(-1)?.['usageMetadata']).toMatchObject({ candidatesTokenCount: 5 })
    },
  )

  test('a stream of several choices that breaks off before all have finished ends with an error', async () => {
    const cut = STREAM.slice(0, 3).join('')
    fixture.upstream.script('chat', { kind: 'stream', frames: [cut], ending: 'no done' })
    const answer = await gemini('chat', config, 'streamGenerateContent?alt=sse')
    expect(eventsOf(answer.text).at(-1)).toHaveProperty('error')
  })

  test('the hold covers the maximum output of each requested choice, so that a small quota admits one but not three', async () => {
    fixture.upstream.script('chat', { kind: 'whole', body: JSON.stringify(CHAT_ANSWER) })
    // 40,000 quota units of output each, of 100,000.
    const asked = (candidateCount: number): Promise<FullResponse> =>
      gemini('chat', { candidateCount, maxOutputTokens: 10_000 }, 'generateContent', 'poor')
    expect((await asked(1)).status).toBe(200)
    expect((await asked(3)).status).toBe(403)
  })
})

describe('dialects with one choice', () => {
  test('a messages channel gets a request for one choice only, and the parameter n is listed as dropped', async () => {
    fixture.upstream.script('messages', wholeMessage([{ text: 'x' }]))
    const answer = await chat('messages', { n: 2 })
    expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([200, 'n'])
  })

  test.each([
    ['chat', 'responses', 'n'],
    ['gemini', 'responses', 'candidateCount'],
    ['gemini', 'messages', 'candidateCount'],
  ] as const)(
    'a request for several choices of a %s client is refused with 400 on a channel of %s',
    async (client, model, field) => {
      const answer = await (client === 'chat' ? chat(model, { n: 2 }) : gemini(model, { candidateCount: 2 }))
      expect(answer.status).toBe(400)
      expect(answer.text).toContain(field)
    },
  )

  test('choices of an upstream beyond the requested number do not reach the client', async () => {
    fixture.upstream.script('chat', { kind: 'whole', body: JSON.stringify(CHAT_ANSWER) })
    expect(((await gemini('chat', {})).json() as Json)['candidates']).toHaveLength(1)
  })
})
