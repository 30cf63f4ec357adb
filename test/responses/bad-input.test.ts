import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { Body, FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { byTier } from '../runner/tier.ts'

const NATIVE = 'responses'
const CONVERTED = ['chat', 'messages', 'gemini'] as const
const ALL = [NATIVE, ...CONVERTED] as const
type Model = (typeof ALL)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { body_limit: '32MiB', retries: 0, keep_responses: '1h' },
    models: priced(ALL),
    channels: ALL.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
})
afterAll(() => fixture?.close())

const ANSWERS = {
  responses: wholeResponse({ text: 'said' }),
  chat: wholeChat({ text: 'said' }),
  messages: wholeMessage([{ text: 'said' }]),
  gemini: wholeGemini({ text: 'said' }),
}
const send = (body: Body): Promise<FullResponse> => fixture.chat('ann', body, { path: '/v1/responses' })
const spentBy = (name: string): number => databaseOf(fixture.gateway.dataDir).user(name).used_quota
const spent = (): number => spentBy('ann')

/** The response to a request whose upstream answers normally. */
function post(model: Model, fields: object): Promise<FullResponse> {
  fixture.upstream.script(model, ANSWERS[model])
  return send({ model, input: 'hi', ...fields })
}

/** Asserts a 400 with this message, without a charge and without an upstream request. */
async function refused(model: Model, fields: object, message: string): Promise<void> {
  const before = spent()
  const answer = await post(model, fields)
  expect(answer.status).toBe(400)
  expect(answer.json().error).toMatchObject({ type: 'invalid_request_error' })
  expect(answer.json().error.message).toContain(message)
  expect(answer.headers['x-should-retry']).toBe('false')
  expect(fixture.upstream.received(model)).toHaveLength(0)
  expect(spent()).toBe(before)
}

const hi = { role: 'user', content: 'hi' }
const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'done' }

describe('invalid responses requests', () => {
  test.each(ALL)(
    'an invalid input is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      await refused(model, { input: [] }, "Invalid 'input': expected a string or a non-empty array")
      await refused(model, { input: '' }, "Invalid 'input': expected a non-empty string")
      await refused(model, { input: null }, "'input' is required")
      await refused(model, { input: { role: 'user' } }, "Invalid 'input'")
      await refused(model, { input: [hi, 'hi'] }, "Invalid 'input[1]': expected an object")
      await refused(model, { input: [{ type: 5 }] }, "Invalid 'input[0].type': expected a string")
      await refused(model, { input: [{ role: ['user'] }] }, "Invalid 'input[0].role': expected a string")
    },
  )

  test.each(ALL)(
    'an invalid previous_response_id is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      for (const id of ['resp_/../x', '', 'resp_', `resp_${'a'.repeat(48)}`, 'x'.repeat(100_000)])
        await refused(model, { previous_response_id: id }, 'not found')
    },
  )

  test.each(ALL)(
    'an invalid max_output_tokens or a tool without a type is a 400 before any charge, with a channel of %s',
    async (model) => {
      await refused(model, { max_output_tokens: 0 }, "Invalid 'max_output_tokens'")
      await refused(model, { max_output_tokens: 1.5 }, "Invalid 'max_output_tokens'")
      await refused(model, { tools: [{ name: 'f' }] }, "Invalid 'tools[0].type'")
    },
  )

  test.each(ALL)(
    'JSON that is nested too deeply is a 400 before anything is charged, with a channel of %s',
    async (model) => {
      const deep = '['.repeat(100_000) + ']'.repeat(100_000)
      const before = spent()
      fixture.upstream.script(model, ANSWERS[model])
      for (const field of ['input', 'metadata', 'x_unknown']) {
        const answer = await send(
          `{"model":"${model}","input":"hi","${field === 'input' ? 'text' : field}":${deep}}`,
        )
        expect(answer.status).toBe(400)
        expect(answer.json().error.message).toContain('nested deeper than')
      }
      expect(fixture.upstream.received(model)).toHaveLength(0)
      expect(spent()).toBe(before)
    },
  )

  test.each(CONVERTED)(
    'an input that cannot be converted to %s is a 400 before anything is charged',
    async (model) => {
      const role = "Invalid 'input[1].role': expected user, assistant, system or developer"
      await refused(model, { input: [hi, { role: 'critic', content: 'x' }] }, role)
      await refused(model, { input: [hi, call] }, "No tool output found for the tool call 'c1'")
      await refused(model, { input: [hi, output] }, "No tool call found for the tool call output 'c1'")
      for (const id of [5, null, { a: 1 }])
        await refused(model, { input: [hi, { ...call, call_id: id }] }, "'input[1].call_id'")
      await refused(model, { input: [hi, { ...output, call_id: 'a'.repeat(70_000) }] }, 'No tool call found')
    },
  )
})

describe('the id of a response', () => {
  const at = (id: string, key: string, method = 'GET', below = ''): Promise<FullResponse> =>
    fixture.chat(key, undefined, { path: `/v1/responses/${id}${below}`, method })

  test.each(ALL)(
    "the id of a user's response is unknown to all other users, with a channel of %s",
    async (model) => {
      const { id } = (await post(model, {})).json()
      const before = [fixture.upstream.received(model).length, spentBy('bob')]
      for (const path of ['', '/input_tokens', '/compact']) {
        const body = { model, input: 'hi', previous_response_id: id }
        const refused = await fixture.chat('bob', body, { path: `/v1/responses${path}` })
        expect(refused.status).toBe(400)
        expect(refused.json().error.code).toBe('previous_response_not_found')
      }
      for (const [method, below] of [
        ['GET', ''],
        ['GET', '/input_items'],
        ['POST', '/cancel'],
        ['DELETE', ''],
      ] as const)
        expect((await at(id, 'bob', method, below)).status).toBe(404)
      expect([fixture.upstream.received(model).length, spentBy('bob')]).toEqual(before)
      if (model !== NATIVE) expect((await at(id, 'ann')).status).toBe(200)
    },
  )

  test('a response id that does not exist is a 404, whatever it looks like', async () => {
    for (const id of ['resp_', 'x', '%00', '%2e%2e', 'resp_%2F..%2F', 'a'.repeat(10_000), '%ff'])
      expect((await at(id, 'ann')).status, id).toBe(404)
  })
})

test.each(ALL)(
  'a call with previous_response_id that is retried after a 500 is charged once, with a channel of %s',
  async (model) => {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 2 })
    fixture.upstream.script(model, ANSWERS[model])
    const before = spent()
    const first = await client.responses.create({ model, input: 'hi' })
    const cost = spent() - before
    fixture.upstream.script(model, { kind: 'status', status: 500 }, ANSWERS[model])
    await client.responses.create({ model, input: 'hi', previous_response_id: first.id })
    expect(fixture.upstream.received(model)).toHaveLength(2)
    expect(spent() - before).toBe(2 * cost)
  },
)

describe("an upstream's own error", () => {
  const OWN = 'No tool output found for function call c1.'

  test.each([
    ['an unknown role', { input: [{ role: 'critic', content: 'x' }] }],
    ['an unknown type', { input: [{ type: 'brand_new', x: 1 }] }],
    ['a malformed id', { input: [{ ...call, id: 5, call_id: 7 }] }],
    ['a call without its output', { input: [hi, call] }],
    ['an output without its call', { input: [hi, output] }],
    ['a single token of output', { max_output_tokens: 1 }],
  ])(
    "a responses upstream's own error for %s is passed on unchanged, and costs nothing",
    async (_, fields) => {
      const before = spent()
      fixture.upstream.script(NATIVE, {
        kind: 'status',
        status: 400,
        body: errorBody(OWN, 'invalid_request_error'),
      })
      const answer = await send({ model: NATIVE, input: 'hi', ...fields })
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({ type: 'invalid_request_error', message: OWN })
      expect(fixture.upstream.received(NATIVE)).toHaveLength(1)
      expect(spent()).toBe(before)
    },
  )
})

describe('requests that can be converted', () => {
  test.each(CONVERTED)(
    'input items of unknown types are left out of a request converted to %s, and listed as dropped',
    async (model) => {
      const answer = await post(model, { input: [hi, { type: 'brand_new', x: 1 }, { type: '' }] })
      expect(answer.status).toBe(200)
      expect(answer.headers['x-gateway-dropped']).toBe('input.unknown')
    },
  )

  test.each(CONVERTED)(
    'a max_output_tokens of 1 is accepted and converted, with a channel of %s',
    async (model) => {
      expect((await post(model, { max_output_tokens: 1 })).status).toBe(200)
      const sent = JSON.parse(fixture.upstream.only(model).text)
      const { max_tokens, max_completion_tokens, generationConfig } = sent
      expect(max_tokens ?? max_completion_tokens ?? generationConfig.maxOutputTokens).toBe(1)
    },
  )

  test.each(CONVERTED)(
    'ids of input items are accepted, whatever they look like, with a channel of %s',
    async (model) => {
      const input = [
        { ...hi, id: 5 },
        { ...call, id: 'not an id', call_id: 'weird id/é' },
        { ...output, call_id: 'weird id/é' },
      ]
      expect((await post(model, { input })).status).toBe(200)
    },
  )
})

describe('a large input', () => {
  /** By day, a channel to which nothing is converted, and one of the others. */
  const LARGE = byTier<readonly Model[]>([NATIVE, 'chat'], ALL)

  test.each(ALL)('an input of 5,000 items is answered, with a channel of %s', async (model) => {
    const input = Array.from({ length: 5_000 }, (_, at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content: `n${at}`,
    }))
    const answer = await post(model, { input })
    expect(answer.status).toBe(200)
    const { text } = fixture.upstream.only(model)
    expect(text).toContain('n0')
    expect(text).toContain('n4999')
  })

  test.each(LARGE)('an input with one item of 20 MB is answered, with a channel of %s', async (model) => {
    const content = 'word '.repeat(4_000_000)
    const answer = await post(model, { input: [{ role: 'user', content }] })
    expect(answer.status).toBe(200)
    expect(fixture.upstream.only(model).body.length).toBeGreaterThan(20_000_000)
  })

  test.each(LARGE)(
    'an input above the maximum body size is a 413, and not charged, with a channel of %s',
    async (model) => {
      const before = spent()
      fixture.upstream.script(model, ANSWERS[model])
      const answer = await send({ model, input: 'word '.repeat(7_000_000) })
      expect(answer.status).toBe(413)
      expect(answer.json().error.code).toBe('request_too_large')
      expect(spent()).toBe(before)
    },
  )
})
