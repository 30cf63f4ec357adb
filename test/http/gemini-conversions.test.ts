import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat, streamedChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage, streamedMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

const OTHERS = ['chat', 'messages', 'responses'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...OTHERS, 'gemini', 'gemini-3-pro']),
    channels: [
      ...OTHERS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
      channel('gemini', upstream.baseUrl('gemini'), {
        protocol: 'gemini',
        models: ['gemini', 'gemini-3-pro'],
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const said = { text: 'Hello there.', calls: [{ id: 'c1', name: 'look', input: '{"at":1}' }] }
const WHOLE = {
  chat: wholeChat(said),
  messages: wholeMessage([{ text: said.text }, ...said.calls]),
  responses: wholeResponse(said),
}
const STREAMED = {
  chat: streamedChat(said),
  messages: streamedMessage([{ text: said.text }, ...said.calls]),
  responses: streamedResponse(said),
}
const contents = [{ parts: [{ text: 'hi' }] }]
const tools = [{ functionDeclarations: [{ name: 'look', parameters: { type: 'OBJECT' } }] }]
const ask = (model: string, method: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { contents, tools, ...fields }, { path: `/v1beta/models/${model}:${method}` })

/** All parts and finish reasons in the chunks of a response. */
function toldBy(chunks: readonly { candidates: readonly Candidate[] }[]): object {
  const candidates = chunks.flatMap((chunk) => chunk.candidates)
  const parts = candidates.flatMap(({ content }) => content.parts)
  expect(candidates.every(({ content }) => content.parts.length > 0)).toBe(true)
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    calls: parts.flatMap(({ functionCall }) => (functionCall ? [functionCall] : [])),
    reasons: candidates.flatMap(({ finishReason }) => (finishReason ? [finishReason] : [])),
  }
}

interface Candidate {
  readonly content: { readonly parts: readonly { readonly text?: string; readonly functionCall?: object }[] }
  readonly finishReason?: string
}

const EXPECTED = {
  text: 'Hello there.',
  calls: [{ id: 'c1', name: 'look', args: { at: 1 } }],
  reasons: ['STOP'],
}

describe.each(OTHERS)('a client of Gemini on a channel of %s', (model) => {
  test('a Gemini client gets the whole response of a channel of another protocol, converted', async () => {
    fixture.upstream.script(model, WHOLE[model])
    const { status, text } = await ask(model, 'generateContent')
    expect(status, text).toBe(200)
    expect(toldBy([JSON.parse(text)])).toEqual(EXPECTED)
    expect(JSON.parse(fixture.upstream.only(model).text)).toMatchObject({ model })
  })

  test('a Gemini client gets the stream of a channel of another protocol, converted to server-sent events', async () => {
    fixture.upstream.script(model, STREAMED[model])
    const { text, headers } = await ask(model, 'streamGenerateContent?alt=sse')
    expect(headers['content-type']).toBe('text/event-stream')
    const events = text.split('\r\n\r\n').filter(Boolean)
    expect(toldBy(events.map((event) => JSON.parse(event.slice(6))))).toEqual(EXPECTED)
    expect(JSON.parse(fixture.upstream.only(model).text)).toMatchObject({ model, stream: true })
  })

  test("a Gemini client without alt=sse gets the converted stream of another protocol's channel as one array", async () => {
    fixture.upstream.script(model, STREAMED[model])
    const { text, headers } = await ask(model, 'streamGenerateContent')
    expect(headers['content-type']).toBe('application/json')
    expect(toldBy(JSON.parse(text))).toEqual(EXPECTED)
  })

  test("a Gemini client gets an error in mid-stream in Google's error format, as the last event or array element", async () => {
    const { frames = [] } = STREAMED[model]
    const cut = { kind: 'stream', frames: frames.slice(0, 5), ending: 'no done' } as const
    fixture.upstream.script(model, cut)
    const errorOf = ({ headers }: FullResponse) => {
      const metadata = { request_id: headers['x-request-id'] }
      return { error: { code: 500, details: [{ domain: 'sluice', metadata }] } }
    }
    const events = await ask(model, 'streamGenerateContent?alt=sse')
    const last = events.text.trimEnd().split('\r\n\r\n').at(-1)
    expect(JSON.parse(last?.slice(6) ?? '')).toMatchObject(errorOf(events))
    fixture.upstream.script(model, cut)
    const array = await ask(model, 'streamGenerateContent')
    expect(JSON.parse(array.text).at(-1)).toMatchObject(errorOf(array))
  })

  test("a Gemini client gets a refusal by the gateway in Google's error format", async () => {
    fixture.upstream.script(model, {
      kind: 'status',
      status: 429,
      body: '{}',
      headers: { 'retry-after': '7' },
    })
    const { status, text, headers } = await ask(model, 'generateContent')
    expect(status).toBe(429)
    expect(headers['retry-after']).toBe('7')
    expect(JSON.parse(text)).toMatchObject({
      error: { status: 'RESOURCE_EXHAUSTED', details: [{}, { retryDelay: '7s' }] },
    })
  })

  test("x-gateway-dropped lists the fields that were left out of a Gemini client's converted request", async () => {
    fixture.upstream.script(model, WHOLE[model])
    const { headers } = await ask(model, 'generateContent', {
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
    })
    expect(headers['x-gateway-dropped']).toContain('safetySettings')
  })

  test('the gateway counts the tokens of a Gemini client on a channel of another protocol', async () => {
    const { status, text } = await ask(model, 'countTokens')
    expect(status, text).toBe(200)
    expect(JSON.parse(text)).toMatchObject({ totalTokens: expect.any(Number) })
  })
})

describe('a conversation that moves to a channel of Gemini', () => {
  test("a Gemini upstream gets Google's placeholder in place of the thought signatures of another provider", async () => {
    const thought = { thinking: 'I had better look.', signature: 'c2lnbmVk' }
    fixture.upstream.script('messages', wholeMessage([thought, { text: said.text }, ...said.calls]))
    const { text } = await ask('messages', 'generateContent', {
      generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } },
    })
    const answered = JSON.parse(text).candidates[0].content
    expect(answered.parts[0]).toMatchObject({ thought: true, thoughtSignature: expect.any(String) })
    const results = [{ functionResponse: { id: 'c1', name: 'look', response: { output: 'seen' } } }]
    fixture.upstream.script('gemini', wholeGemini())
    await ask('gemini', 'generateContent', { contents: [...contents, answered, { parts: results }] })
    const sent = JSON.parse(fixture.upstream.only('gemini').text).contents
    expect(sent).toEqual([
      ...contents,
      {
        ...answered,
        parts: answered.parts
          .filter((part: { thought?: boolean }) => !part.thought)
          .map((part: { functionCall?: object }) =>
            part.functionCall ? { ...part, thoughtSignature: 'skip_thought_signature_validator' } : part,
          ),
      },
      { parts: results },
    ])
  })
})

describe('a client of another protocol on a channel of Gemini', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  const REQUESTS = {
    chat: { path: '/v1/chat/completions', body: { messages } },
    messages: { path: '/v1/messages', body: { messages, max_tokens: 90 } },
    responses: { path: '/v1/responses', body: { input: 'hi' } },
  }
  const content = { text: 'Hello there.', calls: [{ name: 'look', args: '{"at": 9007199254740993}' }] }

  test.each(OTHERS)(
    'a client of another protocol gets the converted response of a Gemini channel: %s',
    async (client) => {
      fixture.upstream.script('gemini', wholeGemini(content))
      const { path, body } = REQUESTS[client]
      const { status, text } = await fixture.chat('ann', { model: 'gemini', ...body }, { path })
      expect(status, text).toBe(200)
      expect(text).toContain('Hello there.')
      expect(text).toContain('9007199254740993')
      expect(text).toMatch(/tool_calls|tool_use|function_call/)
      expect(fixture.upstream.only('gemini').path).toBe('/v1/models/gemini:generateContent')
    },
  )

  test.each(OTHERS)(
    'a client of another protocol gets the converted stream of a Gemini channel: %s',
    async (client) => {
      fixture.upstream.script('gemini', streamedGemini(content))
      const { path, body } = REQUESTS[client]
      const { text } = await fixture.chat('ann', { model: 'gemini', stream: true, ...body }, { path })
      expect(text).toContain('9007199254740993')
      expect(text).toMatch(/"tool_calls"|tool_use|response.completed/)
      expect(fixture.upstream.only('gemini').path).toBe('/v1/models/gemini:streamGenerateContent?alt=sse')
    },
  )

  test('an empty part with a signature after a Gemini answer makes no content block for a messages client', async () => {
    const { path, body } = REQUESTS.messages
    const ask = (stream: boolean) => fixture.chat('ann', { model: 'gemini', stream, ...body }, { path })
    const signed = '{"text":"","thoughtSignature":"c2lnbmVk"}'
    const answer = String(wholeGemini().body).replace('}],"role"', `},${signed}],"role"`)
    fixture.upstream.script('gemini', { kind: 'whole', body: answer })
    expect(JSON.parse((await ask(false)).text).content).toMatchObject([
      { type: 'text', text: 'Hello there.' },
    ])
    const frames = (streamedGemini().frames ?? []).map((frame) => frame.replace('{"text":""}', signed))
    fixture.upstream.script('gemini', { kind: 'stream', frames, ending: 'no done' })
    const { text } = await ask(true)
    expect(text.match(/content_block_start"/g)).toHaveLength(1)
  })

  test("where a client drops thought signatures and the model requires one, the gateway sends Google's placeholder", async () => {
    fixture.upstream.script('gemini', wholeGemini())
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }
    await fixture.chat('ann', {
      model: 'gemini-3-pro',
      messages: [
        ...messages,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: 'seen' },
      ],
    })
    expect(fixture.upstream.only('gemini').text).toContain(
      '"thoughtSignature":"skip_thought_signature_validator"',
    )
  })
})
