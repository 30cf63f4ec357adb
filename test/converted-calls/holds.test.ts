import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { eventFrame, PING_FRAME, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { MODEL, MODES } from '../conversion/fixture.ts'

const BOTH = 'speaks-both'
const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const
const OTHER = { chat: 'messages', messages: 'chat' } as const

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([MODEL.chat, MODEL.messages, BOTH]),
    channels: [
      channel(MODEL.chat, upstream.baseUrl(MODEL.chat), { models: [MODEL.chat, BOTH] }),
      channel(MODEL.messages, upstream.baseUrl(MODEL.messages), {
        protocol: 'messages',
        models: [MODEL.messages, BOTH],
      }),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [token('ann'), token('poor', { remain_quota: 1 }), token('ample', { remain_quota: 100_000 })],
        { quota: AMPLE },
      ),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const messages = [{ role: 'user', content: 'Hi' }]
const ask = (key: string, client: 'chat' | 'messages', fields: object): Promise<FullResponse> =>
  fixture.chat(key, { max_tokens: 5, messages, ...fields }, { path: PATHS[client] })

/** The hold of a call in units, read from the refusal of the call. */
async function held(client: 'chat' | 'messages', fields: object): Promise<number> {
  const answer = await ask('poor', client, fields)
  expect(answer.status, answer.text).toBe(403)
  return Number(/(\d+) are needed/.exec(answer.text)?.[1])
}

/** Answers with 8 prompt tokens, of one unit each, and 5 output tokens of four. Returns the charge. */
function answerHi(): number {
  fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello! How can I', usage: usageText(8, 5) }))
  fixture.upstream.script(
    MODEL.messages,
    wholeMessage([{ text: 'Hello! How can I' }], { counts: { input_tokens: 8, output_tokens: 5 } }),
  )
  return 8 * 1 + 5 * 4
}

describe.each(MODES)('%s', (mode) => {
  test.each(['chat', 'messages'] as const)(
    'the hold for a %s client\'s prompt "Hi" is at most 20 times the cost of the call',
    async (client) => {
      const model = MODEL[mode === 'native' ? client : OTHER[client]]
      const cost = answerHi()
      const answer = await ask('ann', client, { model })
      expect(database.usageOf(String(answer.headers['x-request-id']))?.quota).toBe(cost)
      const amount = await held(client, { model })
      expect(amount).toBeGreaterThanOrEqual(cost)
      expect(amount).toBeLessThanOrEqual(20 * cost)
    },
  )
})

describe('a hold and n', () => {
  const outputOf = async (model: string, n: number): Promise<number> =>
    (await held('chat', { model, n, max_tokens: 1000 })) -
    (await held('chat', { model, n: 1, max_tokens: 1000 }))

  test('a hold multiplies the maximum output by the requested n if the upstream gets n', async () => {
    expect(await outputOf(MODEL.chat, 5)).toBe(4 * 4 * 1000)
  })
  test('a hold multiplies the maximum output by the requested n if one of several channels may get n', async () => {
    expect(await outputOf(BOTH, 5)).toBe(4 * 4 * 1000)
  })
  test('a hold does not multiply the maximum output by the requested n if the conversion drops n', async () => {
    expect(await outputOf(MODEL.messages, 5)).toBe(0)
    answerHi()
    const answer = await ask('ann', 'chat', { model: MODEL.messages, n: 5 })
    expect(answer.headers['x-gateway-dropped']).toBe('n')
  })
})

describe('max_tokens: 0', () => {
  test('max_tokens: 0 of a Messages call is forwarded to a Messages upstream, and the input is held and charged', async () => {
    const counts = { input_tokens: 3, cache_creation_input_tokens: 1000, output_tokens: 0 }
    fixture.upstream.script(MODEL.messages, wholeMessage([], { counts }))
    const body = `{"model":"${MODEL.messages}", "max_tokens": 0,"messages":[{"role":"user","content":"Hi"}]}`
    const answer = await fixture.chat('ann', body, { path: PATHS.messages })
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only(MODEL.messages).text).toBe(body)
    // 3 tokens of input, and 1,000 written to a cache at 1¼ units each.
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      quota: 1253,
      reason: 'complete',
    })
    const nothing = await held('messages', { model: MODEL.messages, max_tokens: 0 })
    const some = await held('messages', { model: MODEL.messages, max_tokens: 9 })
    expect(some - nothing).toBe(9 * 4)
    expect(nothing).toBeGreaterThan(8)
  })

  test('a stream of a Messages call with max_tokens: 0 and without output is complete, and charged for its input', async () => {
    fixture.upstream.script(MODEL.messages, {
      kind: 'stream',
      ending: 'no done',
      frames: [
        'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":7,"output_tokens":0}}}\n\n',
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":0}}\n\n',
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ],
    })
    const answer = await ask('ann', 'messages', { model: MODEL.messages, max_tokens: 0, stream: true })
    expect(answer.text).toContain('message_stop')
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      quota: 7,
      reason: 'complete',
    })
  })

  test('the hold of a Messages call with max_tokens: 0 does not rise while its stream continues', async () => {
    const fields = { model: MODEL.messages, max_tokens: 0, stream: true }
    const needed = await held('messages', fields)
    const left = async (): Promise<number> => {
      // A stream would hold less than its maximum, and be let through.
      const whole = { ...fields, stream: false, max_tokens: 1_000_000 }
      const { status, text } = await ask('ample', 'messages', whole)
      expect(status, text).toBe(403)
      return Number(/(\d+) remain/.exec(text)?.[1])
    }
    const before = await left()
    const usage = { input_tokens: 7, output_tokens: 0 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage }
    fixture.upstream.script(MODEL.messages, {
      kind: 'stream',
      frames: [eventFrame('message_start', { message }), PING_FRAME],
      ending: 'stall',
    })
    const answer = await fixture.live('ample', { messages, ...fields }, { path: PATHS.messages })
    await answer.until('"ping"')
    expect(await left()).toBe(before - needed)
    answer.abort()
  })

  test.each([
    ['a converted messages call', 'messages', MODEL.chat],
    ['a chat call', 'chat', MODEL.chat],
    ['a converted chat call', 'chat', MODEL.messages],
  ] as const)('a call with max_tokens: 0 on %s is refused with 400', async (_, client, model) => {
    fixture.upstream.forget(model)
    const answer = await ask('ann', client, { model, max_tokens: 0 })
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain("'max_tokens'")
    expect(fixture.upstream.received(model)).toEqual([])
  })
})
