import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { type Body, call, type CallOptions, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames, googleError, streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'

const ASK = '{"contents": [{"role":"user","parts":[{"text":"Hi"}]}],"x":9007199254740993}'
const MODELS = ['small', 'allowing', 'mapped', 'spare', 'gemini-embedding-001', 'gpt-image-1'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: Object.fromEntries(MODELS.map((name) => [name, { price: PLAIN_PRICE }])),
    channels: MODELS.map((name) =>
      channel(name, upstream.baseUrl(name), {
        protocol: name === 'gpt-image-1' ? 'chat' : 'gemini',
        ...(name === 'allowing' && { allow: ['service_tier'] }),
        ...(name === 'mapped' && { model_mapping: { mapped: 'tunedModels/mine' } }),
        ...(name === 'spare' && { keys: ['first-upstream-key', 'second-upstream-key'] }),
      }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const KEY = { 'x-goog-api-key': 'sk-ann' }
const post = (path: string, body: Body | null = ASK, options: CallOptions = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, body ?? undefined, { path, headers: KEY, ...options })
const at = (method: string, model = 'small', version = 'v1beta'): string =>
  `/${version}/models/${model}:${method}`
const generate = at('generateContent')
const stream = at('streamGenerateContent')

describe('a response of a channel of the same protocol', () => {
  test.each([
    ['v1beta', 'small', ':'],
    ['v1', 'small', ':'],
    ['v1beta', 'models/small', ':'],
    ['v1beta', 'models%2Fsmall', ':'],
    ['v1beta', 'small', '%3A'],
    ['v1', 'small', '%3a'],
  ])(
    'request and response of a Gemini client on a Gemini channel pass byte for byte: %s %s %s',
    async (version, model, colon) => {
      fixture.upstream.script('small', wholeGemini())
      const answer = await post(`/${version}/models/${model}${colon}generateContent`)
      expect(answer.status, answer.text).toBe(200)
      expect(answer.text).toBe(wholeGemini().body)
      expect(answer.headers['content-type']).toBe('application/json')
      const { path, text, headers } = fixture.upstream.only('small')
      expect(path).toBe('/v1/models/small:generateContent')
      expect(text).toBe(ASK)
      expect(headers['x-goog-api-key']).toBe('upstream-key-of-small')
      expect(headers.authorization).toBeUndefined()
    },
  )

  test('a native Gemini stream is passed on as the upstream sends it, line ends included', async () => {
    fixture.upstream.script('small', streamedGemini())
    const answer = await post(`${stream}?alt=sse`)
    expect(answer.headers['content-type']).toBe('text/event-stream')
    expect(answer.text).toBe(geminiFrames({ text: 'Hello there.' }).join(''))
    expect(fixture.upstream.only('small').path).toBe('/v1/models/small:streamGenerateContent?alt=sse')
  })

  test('a native Gemini stream without alt=sse reaches the client as one array of the same chunks', async () => {
    fixture.upstream.script('small', streamedGemini())
    const answer = await post(stream)
    expect(answer.headers['content-type']).toBe('application/json')
    const chunks = geminiFrames({ text: 'Hello there.' }).map((frame) => frame.slice(6).trimEnd())
    expect(answer.text).toBe(`[${chunks.join(',\r\n')}]`)
    expect(fixture.upstream.only('small').path).toContain('?alt=sse')
  })

  test("a native Gemini call uses the channel's name of the model, in its upstream path", async () => {
    fixture.upstream.script('mapped', wholeGemini())
    expect((await post(at('generateContent', 'mapped'))).status).toBe(200)
    expect(fixture.upstream.only('mapped').path).toBe('/v1/tunedModels/mine:generateContent')
  })

  test('a native Gemini request has no service tier unless the channel allows it', async () => {
    const body = { contents: [{ parts: [{ text: 'Hi' }] }], serviceTier: 'flex' }
    for (const name of ['small', 'allowing']) fixture.upstream.script(name, wholeGemini())
    await post(generate, body)
    await post(at('generateContent', 'allowing'), body)
    expect(fixture.upstream.only('small').text).not.toContain('flex')
    expect(fixture.upstream.only('allowing').text).toContain('flex')
  })
})

describe('the key of a Gemini client', () => {
  const places: [string, string, CallOptions][] = [
    ['x-goog-api-key', generate, { headers: KEY }],
    ['Authorization', generate, { headers: { authorization: 'Bearer sk-ann' } }],
    ['the query', `${generate}?key=sk-ann`, { headers: {} }],
    ['the query, twice', `${generate}?key=sk-ann&key=sk-other-secret-key`, { headers: {} }],
  ]
  test.each(places)('the API key of a Gemini client is taken from %s', async (_, path, options) => {
    fixture.upstream.script('small', wholeGemini())
    const answer = await post(path, ASK, options)
    expect(answer.status, answer.text).toBe(200)
    const { path: sent, headers } = fixture.upstream.only('small')
    expect(sent).not.toContain('key=')
    expect(JSON.stringify(headers)).not.toContain('sk-ann')
  })

  test('an API key in the query does not appear in logs or errors', async () => {
    fixture.upstream.script('small', { kind: 'status', status: 500, body: '{}' })
    const paths = [
      `${generate}?key=sk-queried-1`,
      `${at('nothingOfThis')}?key=sk-queried-2&key=sk-queried-3`,
      `${at('generateContent', 'unknown')}?alt=sse&key=sk-ann`,
      `${generate}?key=sk-ann`,
      `/v1beta/models?key=sk-queried-4`,
    ]
    const bodies: string[] = []
    for (const path of paths) bodies.push((await post(path, ASK, { headers: {} })).text)
    expect(bodies.join('')).not.toMatch(/sk-queried|sk-ann/)
    expect(fixture.gateway.logs()).not.toMatch(/sk-queried|sk-ann|key=/)
  })

  test.each([
    ['is missing', {}],
    ['is unknown', { 'x-goog-api-key': 'sk-nobody' }],
  ])("a Gemini key that %s is an UNAUTHENTICATED error in Google's envelope", async (_, headers) => {
    const answer = await post(generate, ASK, { headers })
    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: {
        code: 401,
        status: 'UNAUTHENTICATED',
        message: expect.stringContaining('(request id: '),
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            domain: 'sluice',
            metadata: { request_id: answer.headers['x-request-id'] },
          },
        ],
      },
    })
  })
})

describe('errors for a Gemini client', () => {
  test.each([
    ['of an unknown method', at('doSomething'), 404, 'NOT_FOUND', 'not_found'],
    ['of an unknown method in small letters', at('predict'), 404, 'NOT_FOUND', 'not_found'],
    ['of an unknown method below /v1', at('doSomething', 'small', 'v1'), 404, 'NOT_FOUND', 'not_found'],
    ['in small letters below /v1', at('predict', 'small', 'v1'), 404, 'NOT_FOUND', 'not_found'],
    ['of what the gateway does not keep', '/v1beta/cachedContents', 404, 'NOT_FOUND', 'not_found'],
    ['of an unknown model', at('generateContent', 'unknown'), 503, 'UNAVAILABLE', 'model_not_found'],
    ['of a model without UTF-8', at('generateContent', '%ff'), 400, 'INVALID_ARGUMENT', 'invalid_request'],
  ])("a Gemini client gets an error %s in Google's error format", async (_, path, status, name, reason) => {
    const answer = await post(path)
    expect(answer.status, answer.text).toBe(status)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { code: status, status: name, details: [{ reason, domain: 'sluice' }] },
    })
  })

  test('a GET of a Gemini method that needs POST is a 405', async () => {
    expect((await post(generate, null, { method: 'GET' })).status).toBe(405)
  })

  test('an error of a streamed Gemini call without alt=sse is sent as an array with one element', async () => {
    const answer = await post(stream, {})
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject([{ error: { code: 400, status: 'INVALID_ARGUMENT' } }])
    expect(JSON.parse((await post(`${stream}?alt=sse`, {})).text)).toMatchObject({ error: { code: 400 } })
  })

  test('an error of a Gemini upstream is passed on with its details, without secrets', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [] }]
    const body = googleError(400, 'INVALID_ARGUMENT', 'bad upstream-key-of-small', details)
    fixture.upstream.script('small', { kind: 'status', status: 400, body })
    const answer = await post(generate)
    expect(answer.status).toBe(400)
    expect(answer.text).toBe(googleError(400, 'INVALID_ARGUMENT', 'bad [redacted]', details))
    fixture.upstream.script('small', { kind: 'status', status: 400, body })
    expect((await post(stream)).text).toContain('[redacted]')
  })

  test('a rate limit error of a Gemini upstream states when to retry, in a header and as the upstream did', async () => {
    const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '33.5s' }
    const body = googleError(429, 'RESOURCE_EXHAUSTED', 'slow down', [retry])
    fixture.upstream.script('small', { kind: 'status', status: 429, body })
    const answer = await post(generate)
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBe('34')
    expect(answer.text).toBe(body)
    const chat = await fixture.chat('ann', { model: 'small', messages: [{ role: 'user', content: 'Hi' }] })
    expect(chat.headers['retry-after']).toBe('34')
  })

  test('after Google rejects one key of the channel, another key is tried, and the client is served', async () => {
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }
    const body = googleError(400, 'INVALID_ARGUMENT', 'API key not valid.', [info])
    fixture.upstream.decide('spare', ({ headers }) =>
      headers['x-goog-api-key'] === 'first-upstream-key'
        ? { kind: 'status', status: 400, body }
        : wholeGemini(),
    )
    for (let call = 0; call < 2; call++) expect((await post(at('generateContent', 'spare'))).status).toBe(200)
    expect(fixture.upstream.received('spare')).toHaveLength(3)
  })

  test('an error in the middle of a Gemini stream has an HTTP code and is the last event, or the last array element', async () => {
    const [first = ''] = geminiFrames({ text: 'Hello there.' })
    const error = googleError(503, 'UNAVAILABLE', 'overloaded')
    const broken = { kind: 'stream', frames: [first, `data: ${error}\r\n\r\n`], ending: 'no done' } as const
    fixture.upstream.script('small', broken)
    expect((await post(`${stream}?alt=sse`)).text).toBe(`${first}data: ${error}\r\n\r\n`)
    expect(JSON.parse((await post(stream)).text)).toMatchObject([
      { candidates: [{}] },
      { error: { code: 503, message: 'overloaded' } },
    ])
  })

  test('a Gemini stream without a finish reason ends with an error of code 500 for the client', async () => {
    const [first = ''] = geminiFrames({ text: 'Hello there.' })
    fixture.upstream.script('small', { kind: 'stream', frames: [first], ending: 'no done' })
    const { text } = await post(`${stream}?alt=sse`)
    expect(text.startsWith(first)).toBe(true)
    expect(JSON.parse(text.slice(first.length + 6))).toMatchObject({ error: { code: 500 } })
  })

  test('an error of a Gemini upstream is converted to the envelope of a client of another protocol', async () => {
    fixture.upstream.script('small', { kind: 'status', status: 400, body: errorBody('no such thing') })
    expect(JSON.parse((await post(generate)).text)).toMatchObject({
      error: { code: 400, message: 'no such thing', status: 'INVALID_ARGUMENT' },
    })
  })
})

describe('token counts for a Gemini client', () => {
  const whole = `{"generateContentRequest":{"model":"models/mapped",${ASK.slice(1)}}`

  test('tokens are counted by a Gemini upstream, which gets the bytes of the client', async () => {
    const body = '{"totalTokens": 7,"promptTokensDetails":[]}'
    fixture.upstream.script('small', { kind: 'whole', body })
    const answer = await post(at('countTokens'))
    expect(answer.text).toBe(body)
    expect(fixture.upstream.only('small')).toMatchObject({ path: '/v1/models/small:countTokens', text: ASK })
    fixture.upstream.script('mapped', { kind: 'whole', body })
    await post(at('countTokens', 'mapped'), whole)
    expect(fixture.upstream.only('mapped').text).toBe(whole.replace('models/mapped', 'tunedModels/mine'))
  })

  test('tokens of a Gemini client are counted by the gateway where the upstream cannot count', async () => {
    fixture.upstream.script('small', { kind: 'status', status: 404, body: '{}' })
    const { status, text } = await post(at('countTokens'))
    expect({ status, body: JSON.parse(text) }).toMatchObject({
      status: 200,
      body: { totalTokens: expect.any(Number) },
    })
  })
})

describe('the list of models for a Gemini client', () => {
  const get = async (path: string): Promise<{ status: number; body: unknown }> => {
    const { status, text } = await post(path, null, { method: 'GET' })
    return { status, body: JSON.parse(text) }
  }
  const entry = {
    name: 'models/small',
    displayName: 'small',
    supportedGenerationMethods: ['generateContent', 'countTokens'],
  }

  test('the model list for Gemini clients has the methods that each model supports', async () => {
    const { body } = await get('/v1beta/models')
    const methods = {
      'gemini-embedding-001': ['embedContent', 'batchEmbedContents'],
      'gpt-image-1': [],
    }
    const others = Object.entries(methods).map(([displayName, supportedGenerationMethods]) =>
      expect.objectContaining({ displayName, supportedGenerationMethods }),
    )
    expect(body).toMatchObject({ models: expect.arrayContaining([entry, ...others]) })
  })

  test.each(['small', 'models/small', 'models%2Fsmall'])(
    'a Gemini client can request the entry of a single model in the model list: %s',
    async (name) => {
      expect(await get(`/v1beta/models/${name}`)).toEqual({ status: 200, body: entry })
    },
  )

  test("a Gemini client's request for an unknown model is a 404 NOT_FOUND with the reason model_not_found", async () => {
    expect(await get('/v1beta/models/nothing')).toMatchObject({
      status: 404,
      body: { error: { code: 404, status: 'NOT_FOUND', details: [{ reason: 'model_not_found' }] } },
    })
  })

  test('the model list has the endpoints at which each model can be called', async () => {
    const { text } = await post('/v1/models', null, {
      method: 'GET',
      headers: { authorization: 'Bearer sk-ann' },
    })
    expect(JSON.parse(text)).toMatchObject({
      data: expect.arrayContaining([
        expect.objectContaining({
          id: 'small',
          supported_endpoint_types: ['compat'],
          endpoints: ['chat', 'messages', 'responses', 'gemini', 'completions'],
        }),
      ]),
    })
  })
})
