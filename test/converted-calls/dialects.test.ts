import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPTIONS } from '../../src/domain/options.ts'
import { contentFrame, roleFrame } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { type CallOptions, type LiveResponse, open } from '../fixtures/client.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { messageFrames, STOP_FRAME, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { type Client, clientsOf, MODEL, sentTo, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let chat: Client
let message: Client
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat, message } = clientsOf(fixture))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const MESSAGES = { path: '/v1/messages' }
const messages = [{ role: 'user', content: 'hi' }]

describe('x-gateway-dropped', () => {
  test('the header x-gateway-dropped names the fields that a conversion dropped, and is absent if it dropped none', async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const { headers } = await chat({ seed: 7, logit_bias: { 1: 2 }, secret_thing: 'my secret' })
    expect(String(headers['x-gateway-dropped']).split(', ').sort()).toEqual(['logit_bias', 'seed', 'unknown'])
    expect((await chat()).headers['x-gateway-dropped']).toBeUndefined()
    fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello.' }))
    expect((await message({ top_k: 5 })).headers['x-gateway-dropped']).toBe('top_k')
    expect(
      (await fixture.chat('ann', { model: MODEL.chat, messages, seed: 7 })).headers['x-gateway-dropped'],
    ).toBeUndefined()
  })

  test.each([
    ['type', { type: 'forever' }],
    ['ttl', { type: 'ephemeral', ttl: '2h' }],
  ])(
    'an unknown %s of a cache_control is a 400 only where the conversion keeps cache_control',
    async (member, cache_control) => {
      const content = [{ type: 'text', text: 'hi', cache_control }]
      const refused = await chat({ messages: [{ role: 'user', content }] })
      expect(refused.status).toBe(400)
      expect(refused.json().error.message).toContain(
        `Invalid 'messages[0].content[0].cache_control.${member}'`,
      )
      fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello.' }))
      const kept = await message({ messages: [{ role: 'user', content }] })
      expect(kept.status, kept.text).toBe(200)
      expect(kept.headers['x-gateway-dropped']).toBe('cache_control')
    },
  )

  test('a streamed response has the header x-gateway-dropped, which names the fields that the conversion dropped', async () => {
    fixture.upstream.script(MODEL.messages, streamedMessage([{ text: 'Hello.' }]))
    expect((await chat({ stream: true, seed: 7 })).headers['x-gateway-dropped']).toBe('seed')
  })
})

describe('POST /v1/completions', () => {
  test('POST /v1/completions is served like chat completions, by chat channels and by converting Messages channels', async () => {
    fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello.' }))
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    for (const model of [MODEL.chat, MODEL.messages]) {
      const answer = await chat({ model }, { path: '/v1/completions' })
      expect(answer.status).toBe(200)
      expect(answer.json().choices[0]?.message.content).toBe('Hello.')
    }
    expect(fixture.upstream.only(MODEL.chat).path).toBe('/v1/chat/completions')
  })
})

describe('the -thinking suffix', () => {
  test('the -thinking suffix of a model name requests 80 percent of max_tokens as thinking budget from a Messages upstream', async () => {
    fixture.upstream.script(
      MODEL.messages,
      wholeMessage([{ thinking: 'hm', signature: 'c2ln' }, { text: 'Hello.' }]),
    )
    const answer = await chat({
      model: `${MODEL.messages}-thinking`,
      max_tokens: 10_000,
      temperature: 0.2,
      top_p: 0.5,
    })
    expect(answer.json().choices[0]?.message).toMatchObject({ content: 'Hello.', reasoning_content: 'hm\n' })
    const sent = sentTo(fixture, MODEL.messages)
    expect(sent).toMatchObject({
      model: MODEL.messages,
      max_tokens: 10_000,
      thinking: { type: 'enabled', budget_tokens: 8000 },
      temperature: 1,
    })
    expect(sent).not.toHaveProperty('top_p')
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row?.quota).toBe(10 + 5 * 4)
  })

  test('the -thinking suffix of an opus-4-7 model requests adaptive thinking, without a budget', async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    await chat({ model: 'a-opus-4-7-thinking', max_tokens: 500, temperature: 0.2, top_p: 0.5, top_k: 3 })
    const sent = sentTo(fixture, MODEL.messages)
    expect(sent).toMatchObject({
      model: 'a-opus-4-7',
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
    })
    for (const field of ['temperature', 'top_p', 'top_k']) expect(sent).not.toHaveProperty(field)
  })
})

describe('a body above the maximum', () => {
  test.each([
    [
      '/v1/chat/completions',
      { error: { type: 'request_too_large', code: expect.any(String), message: expect.any(String) } },
    ],
    [
      '/v1/messages',
      {
        type: 'error',
        error: { type: 'gateway_error', code: 'read_request_body_failed', message: expect.any(String) },
        request_id: expect.any(String),
      },
    ],
  ])('a request body above the maximum of %s is refused with 413', async (path, envelope) => {
    const answer = await fixture.chat('ann', Buffer.alloc(OPTIONS.body_limit.default + 1, 0x20), { path })
    expect(answer.status).toBe(413)
    expect(answer.json()).toEqual(envelope)
  })
})

describe('a converted stream is not delayed', () => {
  const live = (model: string, options: CallOptions): Promise<LiveResponse> =>
    open(fixture.gateway.url, { model, max_tokens: 100, messages, stream: true }, { key: 'ann', ...options })

  test.each([
    ['chat from messages', MODEL.messages, {}, '"content":"Hel"'],
    ['messages from chat', MODEL.chat, MESSAGES, '"text":"Hel"'],
    ['messages from messages', MODEL.messages, MESSAGES, '"text":"Hel"'],
  ] as const)(
    'the first delta of %s is forwarded while the upstream holds the following ones',
    async (_, model, options, delta) => {
      const all =
        model === MODEL.messages ? messageFrames([{ text: 'Hello.' }]) : [roleFrame(), contentFrame('Hel')]
      fixture.upstream.script(model, { kind: 'stream', frames: all.slice(0, 4), ending: 'stall' })
      const answer = await live(model, options)
      await answer.until(delta)
      const { completed, endedAt } = fixture.upstream.only(model)
      expect({ completed, endedAt }).toEqual({ completed: false, endedAt: undefined })
      // Directly after the request, closing may only mean the end of sending (`docs/api.md: Errors`).
      await sleep(150)
      answer.abort()
      await fixture.upstream.only(model).ended
    },
  )

  test('the final frame of a converted stream is sent only after the charge is written', async () => {
    fixture.upstream.script(MODEL.messages, streamedMessage([{ text: 'Hello.' }]))
    const answer = await live(MODEL.messages, MESSAGES)
    await answer.until(STOP_FRAME)
    expect(database.usageOf(String(answer.headers['x-request-id']))).toBeDefined()
    await answer.end()
  })
})
