import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { byTier } from '../runner/tier.ts'

const CONVERTED = ['chat', 'messages', 'responses'] as const
const ALL = ['gemini', ...CONVERTED] as const
type Model = (typeof ALL)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(ALL),
    channels: ALL.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const ANSWERS = {
  gemini: wholeGemini({ text: 'said' }),
  chat: wholeChat({ text: 'said' }),
  messages: wholeMessage([{ text: 'said' }]),
  responses: wholeResponse({ text: 'said' }),
}
const spent = (): number => databaseOf(fixture.gateway.dataDir).user('ann').used_quota
const hi = { role: 'user', parts: [{ text: 'hi' }] }

/** The response to a request whose upstream answers normally. */
function post(model: Model, body: string | object, method = 'generateContent'): Promise<FullResponse> {
  fixture.upstream.script(model, ANSWERS[model])
  return fixture.chat('ann', body, { path: `/v1beta/models/${model}:${method}` })
}

/** Asserts a 400 with this message, without a charge and without an upstream request. */
async function refused(model: Model, body: string | object, message: string): Promise<void> {
  const before = spent()
  const answer = await post(model, body)
  expect(answer.status, answer.text).toBe(400)
  const { error } = JSON.parse(answer.text)
  expect(error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
  expect(error.message).toContain(message)
  expect(answer.headers['x-should-retry']).toBe('false')
  expect(fixture.upstream.received(model)).toHaveLength(0)
  expect(spent()).toBe(before)
}

async function answered(model: Model, body: string | object): Promise<string> {
  const answer = await post(model, body)
  expect(answer.status, answer.text).toBe(200)
  return fixture.upstream.only(model).text
}

describe('invalid Gemini requests', () => {
  test.each(ALL)(
    'invalid Gemini contents are a 400 before anything is charged, with a channel of %s',
    async (model) => {
      await refused(model, {}, "'contents' is required")
      await refused(model, { contents: [] }, "Invalid 'contents': expected at least one content")
      await refused(model, { contents: ['hi'] }, "Invalid 'contents[0]': expected an object")
      await refused(model, { contents: 'hi' }, "Invalid 'contents'")
      await refused(model, { contents: [{ parts: [7] }] }, "Invalid 'contents[0].parts[0]'")
      await refused(model, '{"contents":', 'JSON')
    },
  )

  test.each(ALL)(
    'an invalid maxOutputTokens or candidateCount is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      const asked = (generationConfig: object): object => ({ contents: [hi], generationConfig })
      await refused(model, asked({ maxOutputTokens: 0 }), "Invalid 'generationConfig.maxOutputTokens'")
      await refused(model, asked({ maxOutputTokens: '9' }), "Invalid 'generationConfig.maxOutputTokens'")
      await refused(model, asked({ candidateCount: 99 }), "Invalid 'generationConfig.candidateCount'")
    },
  )

  test.each(CONVERTED)(
    'a thinking budget beside a thinking level is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      const thinkingConfig = { thinkingBudget: 9, thinkingLevel: 'LOW' }
      await refused(model, { contents: [hi], generationConfig: { thinkingConfig } }, 'thinkingLevel')
    },
  )

  test.each(CONVERTED)(
    'a function response that is not an object is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      const call = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] }
      for (const response of ['done', ['done'], 7]) {
        const result = { role: 'user', parts: [{ functionResponse: { name: 'f', response } }] }
        await refused(model, { contents: [hi, call, result] }, 'functionResponse.response')
      }
    },
  )

  test.each(CONVERTED)(
    'inline data that is not base64 is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      const inlineData = { mimeType: 'image/png', data: 'not base64 at all!' }
      await refused(model, { contents: [{ parts: [{ inlineData }] }] }, 'inlineData.data')
    },
  )
})

describe('fields that the provider itself judges', () => {
  test.each([
    [
      'a budget beside a level',
      { generationConfig: { thinkingConfig: { thinkingBudget: 9, thinkingLevel: 'LOW' } } },
    ],
    [
      'a response that is not an object',
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: 'x' } }] }] },
    ],
    ['invalid base64', { contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: '!' } }] }] }],
    ['a signature of another provider', { contents: [{ parts: [{ text: 'x', thoughtSignature: '!' }] }] }],
  ])(
    'a doubtful field that only the Gemini provider can judge is sent to it unchanged: %s',
    async (_, fields) => {
      const body = JSON.stringify({ contents: [hi], ...fields })
      expect(await answered('gemini', body)).toBe(body)
    },
  )
})

describe('requests that other gateways break on', () => {
  test.each(ALL)('a Gemini content without a role is accepted, with a channel of %s', async (model) => {
    expect(await answered(model, { contents: [{ parts: [{ text: 'hello' }] }] })).toContain('hello')
  })

  test.each(ALL)(
    'Gemini contents that are one object instead of an array are accepted, with a channel of %s',
    async (model) => {
      expect(await answered(model, { contents: { parts: { text: 'hello' } } })).toContain('hello')
    },
  )

  test.each(ALL)('a thought signature of 200 KB is accepted, with a channel of %s', async (model) => {
    const thoughtSignature = Buffer.alloc(150_000, 'x').toString('base64')
    const parts = [{ functionCall: { name: 'f', args: {} }, thoughtSignature }]
    const result = { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'x' } } }] }
    const sent = await answered(model, { contents: [hi, { role: 'model', parts }, result] })
    if (model === 'gemini') expect(sent).toContain(thoughtSignature)
  })

  test("a thought signature of another provider is accepted, and not sent to the upstream as Google's", async () => {
    const parts = [{ text: 'thought', thought: true, thoughtSignature: 'Zm9yZWlnbg==' }, { text: 'said' }]
    const sent = await answered('messages', { contents: [hi, { role: 'model', parts }, hi] })
    expect(JSON.parse(sent)).toMatchObject({ model: 'messages' })
    expect(sent).not.toContain('"signature":"Zm9yZWlnbg=="')
  })
})

describe('responses that other gateways break on', () => {
  const stream = (method = 'streamGenerateContent?alt=sse'): Promise<FullResponse> =>
    fixture.chat('ann', { contents: [hi] }, { path: `/v1beta/models/gemini:${method}` })
  const chat = (): Promise<FullResponse> =>
    fixture.chat('ann', { model: 'gemini', stream: true, messages: [{ role: 'user', content: 'hi' }] })

  test('a Gemini response that arrives byte by byte, which divides characters, is passed on intact', async () => {
    const frames = geminiFrames({ text: '日本語 🎉 é' })
    fixture.upstream.script('gemini', { kind: 'stream', frames, drip: true, ending: 'no done' })
    expect((await stream()).text).toBe(frames.join(''))
    const array = JSON.parse((await stream('streamGenerateContent')).text) as object[]
    for (const told of [JSON.stringify(array), (await chat()).text]) {
      expect(told).toContain('"日本語"')
      expect(told).toContain('" 🎉 é"')
    }
  })

  test('a Gemini response with a line of many megabytes is passed on', async () => {
    const data = 'A'.repeat(byTier(6_000_000, 30_000_000))
    const picture = `data: {"candidates":[{"content":{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"${data}"}}]},"index":0}]}\r\n\r\n`
    const frames = [picture, ...geminiFrames({ text: 'That is it.' })]
    fixture.upstream.script('gemini', { kind: 'stream', frames, ending: 'no done' })
    expect((await stream()).bytes.equals(Buffer.from(frames.join('')))).toBe(true)
    const array = (await stream('streamGenerateContent')).bytes
    expect(array.length).toBeGreaterThan(data.length)
    expect(array.subarray(-1).toString()).toBe(']')
    expect(array.subarray(0, 16).toString()).toBe('[{"candidates":[')
  })
})
