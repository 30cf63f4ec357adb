import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  PermissionDeniedError,
  RateLimitError,
} from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DONE_FRAME, errorBody, finishFrame, roleFrame, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('limited', { model_limits_enabled: true, model_limits: 'x' })]),
    ],
  }))
  client = clientWith('sk-ann')
})
afterAll(() => fixture?.close())

const clientWith = (apiKey: string): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'hi' }]

describe('the official OpenAI client', () => {
  test('the OpenAI client gets a whole response through the gateway, with usage and the id of the request', async () => {
    fixture.upstream.script('m', { kind: 'whole', content: 'Hello there.', usage: usageText(10, 5) })
    const { data, request_id: id } = await client.chat.completions
      .create({ model: 'm', messages })
      .withResponse()
    expect(data.choices[0]?.message.content).toBe('Hello there.')
    expect(data.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 })
    expect(id).toBeTypeOf('string')
  })

  test.each([true, false])(
    'the OpenAI client gets a stream through the gateway (include_usage: %j)',
    async (include) => {
      fixture.upstream.script('m', { kind: 'stream', events: 3, usage: usageText(10, 3) })
      const stream = await client.chat.completions.create({
        model: 'm',
        messages,
        stream: true,
        stream_options: { include_usage: include },
      })
      let text = ''
      let usage: unknown
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? ''
        usage ??= chunk.usage
      }
      expect(text).toBe(' word0 word1 word2')
      expect(usage ?? null).toEqual(include ? JSON.parse(usageText(10, 3)) : null)
    },
  )

  test('the OpenAI client gets tool calls, whole and streamed', async () => {
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'weather', arguments: '{"city":"Bern"}' },
    }
    const body = JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: [call] },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
    })
    fixture.upstream.script('m', { kind: 'whole', body })
    const tools = [
      { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } },
    ]
    const whole = await client.chat.completions.create({
      model: 'm',
      messages,
      tools,
      tool_choice: 'required',
    })
    expect(whole.choices[0]?.message.tool_calls?.[0]).toEqual(call)
    expect(JSON.parse(fixture.upstream.only('m').text)).toMatchObject({ tools, tool_choice: 'required' })

    const delta = (text: string): string =>
      `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[${text}]},"finish_reason":null}]}\n\n`
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [
        roleFrame(),
        delta('{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}'),
        delta('{"index":0,"function":{"arguments":"{\\"city\\":"}}'),
        delta('{"index":0,"function":{"arguments":"\\"Bern\\"}"}}'),
        finishFrame(usageText(9, 4)),
        DONE_FRAME,
      ],
    })
    const final = await client.chat.completions.stream({ model: 'm', messages, tools }).finalChatCompletion()
    expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject({ id: call.id, function: call.function })
  })

  test('the OpenAI client sends an image as a data URL, which arrives unchanged', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const url = `data:image/png;base64,${Buffer.alloc(100_000, 7).toString('base64')}`
    const content = [
      { type: 'text' as const, text: 'what is it?' },
      { type: 'image_url' as const, image_url: { url, detail: 'low' as const } },
    ]
    await client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }] })
    expect(JSON.parse(fixture.upstream.only('m').text).messages[0].content).toEqual(content)
  })

  test('the upstream request is aborted when the OpenAI client stops reading or aborts its call', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 10 })
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 3) break
    await fixture.upstream.only('m').ended

    fixture.upstream.script('m', { kind: 'silence' })
    const controller = new AbortController()
    const answer = client.chat.completions.create({ model: 'm', messages }, { signal: controller.signal })
    await fixture.upstream.receivedAtLeast('m', 1)
    controller.abort()
    await expect(answer).rejects.toBeInstanceOf(APIUserAbortError)
    await fixture.upstream.only('m').ended
  })
})

describe('error classes of the OpenAI client', () => {
  const create = (by: OpenAI = client, fields: object = {}) =>
    by.chat.completions.create({ model: 'm', messages, ...fields })
  test('the OpenAI client throws AuthenticationError for an unknown API key', async () => {
    await expect(create(clientWith('sk-nobody'))).rejects.toBeInstanceOf(AuthenticationError)
  })
  test('the OpenAI client throws PermissionDeniedError for a model that the API key may not call', async () => {
    await expect(create(clientWith('sk-limited'))).rejects.toBeInstanceOf(PermissionDeniedError)
  })
  test('the OpenAI client throws BadRequestError for an invalid parameter, with the code and the id of the request', async () => {
    const error = await create(client, { n: 0 }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BadRequestError)
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      code: expect.any(String),
      requestID: expect.any(String),
    })
  })
  test("the OpenAI client throws RateLimitError with the upstream's message for a 429 of the upstream", async () => {
    fixture.upstream.script('m', {
      kind: 'status',
      status: 429,
      body: errorBody('slow down', 'rate_limit_error', 'rate'),
    })
    await expect(create()).rejects.toThrow(/slow down/)
    await expect(create()).rejects.toBeInstanceOf(RateLimitError)
  })
  test('the OpenAI client throws InternalServerError when the upstream drops the connection, and an error 503 for an unknown model', async () => {
    fixture.upstream.script('m', { kind: 'drop' })
    await expect(create()).rejects.toBeInstanceOf(InternalServerError)
    await expect(create(client, { model: 'no-such-model' })).rejects.toMatchObject({
      status: 503,
      code: 'model_not_found',
    })
  })
  test('the OpenAI client throws an APIError when the upstream breaks off in the middle of a stream', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 2, ending: 'reset' })
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true })
    let text = ''
    const read = async (): Promise<void> => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    }
    await expect(read()).rejects.toBeInstanceOf(APIError)
    expect(text).toBe(' word0 word1')
  })
})
