import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, open } from '../fixtures/client.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import {
  messageFrames,
  messagesErrorText,
  streamedMessage,
  wholeMessage,
} from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { checkMessagesStream } from '../conversion/grammar.ts'
import { type Client, clientsOf, MODEL, fixtureOfBoth } from '../conversion/fixture.ts'

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

const messages = [{ role: 'user', content: 'hi' }]

describe('the charge by reported usage', () => {
  // One unit for each prompt token, four for each output token, a quarter for a cached one, one and a quarter
  // for a cache write.
  const counts = {
    input_tokens: 100,
    cache_read_input_tokens: 200,
    cache_creation_input_tokens: 80,
    output_tokens: 50,
  }
  const toMessages = 100 + 200 / 4 + (80 * 5) / 4 + 50 * 4
  const toChat = 100 + 200 / 4 + 50 * 4

  test.each([
    ['chat to messages, whole', MODEL.messages, toMessages],
    ['chat to messages, streamed', MODEL.messages, toMessages],
    ['messages to chat, whole', MODEL.chat, toChat],
    ['messages to chat, streamed', MODEL.chat, toChat],
  ])('a converted call costs what its upstream counted, to the unit: %s', async (name, model, quota) => {
    const stream = name.endsWith('streamed')
    const usage = usageText(300, 50, 200)
    if (model === MODEL.messages)
      fixture.upstream.script(
        model,
        stream
          ? streamedMessage([{ text: 'Hello.' }], { counts })
          : wholeMessage([{ text: 'Hello.' }], { counts }),
      )
    else
      fixture.upstream.script(
        model,
        stream ? streamedChat({ text: 'Hello.', usage }) : wholeChat({ text: 'Hello.', usage }),
      )
    const before = { token: database.token('token-ann'), user: database.user('ann') }
    const answer = model === MODEL.messages ? await chat({ stream }) : await message({ stream })
    expect(answer.status).toBe(200)
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row).toMatchObject({ quota, reason: 'complete', output_tokens: 50, cache_read_tokens: 200 })
    const after = { token: database.token('token-ann'), user: database.user('ann') }
    expect(before.token.remain_quota - after.token.remain_quota).toBe(quota)
    expect(after.token.used_quota - before.token.used_quota).toBe(quota)
    expect(before.user.quota - after.user.quota).toBe(quota)
  })

  test('a converted call costs nothing if the upstream refuses it or sends no response', async () => {
    const before = database.token('token-ann')
    fixture.upstream.script(MODEL.messages, {
      kind: 'status',
      status: 400,
      body: messagesErrorText('invalid_request_error', 'no'),
    })
    expect((await chat()).status).toBe(400)
    fixture.upstream.script(MODEL.chat, { kind: 'drop' })
    expect((await message()).status).toBe(500)
    await expect.poll(() => database.openHolds()).toHaveLength(0)
    expect(database.token('token-ann')).toMatchObject({
      remain_quota: before.remain_quota,
      used_quota: before.used_quota,
    })
  })

  test('a converted call is charged by locally counted tokens if its stream breaks off without reporting usage', async () => {
    fixture.upstream.script(MODEL.messages, {
      ...streamedMessage([]),
      frames: messageFrames([{ text: 'apple banana cherry'.repeat(20) }]).slice(0, 5),
      ending: 'reset',
    })
    const answer = await (
      await open(fixture.gateway.url, { model: MODEL.messages, messages, stream: true }, { key: 'ann' })
    ).end()
    const row = database.usageOf(String(answer.headers['x-request-id']))
    expect(row?.output_tokens).toBeGreaterThan(50)
    expect(answer.text).not.toContain('[DONE]')
  })
})

describe('the charge of a converted call', () => {
  const charged = (answer: FullResponse) => database.usageOf(String(answer.headers['x-request-id']))

  test('the charge of a converted call includes the web searches that the upstream reports', async () => {
    const counts = { input_tokens: 10, output_tokens: 5, server_tool_use: { web_search_requests: 2 } }
    for (const stream of [false, true]) {
      fixture.upstream.script(
        MODEL.messages,
        (stream ? streamedMessage : wholeMessage)([{ text: 'Hello.' }], { counts }),
      )
      const answer = await chat({ stream, web_search_options: {} })
      // A search costs a cent, 5,000 units.
      expect(charged(answer)).toMatchObject({ quota: 10 + 5 * 4 + 2 * 5000 })
    }
  })

  test('a converted call is charged by locally counted tokens if the upstream reports no usage', async () => {
    const words = ' banana'.repeat(200)
    fixture.upstream.script(MODEL.chat, {
      ...streamedChat({ text: words }),
      frames: (streamedChat({ text: words }).frames ?? []).filter((frame) => !frame.includes('"usage"')),
    })
    const answer = await message({ stream: true, max_tokens: 500 })
    checkMessagesStream(answer.text, true)
    const row = charged(answer)
    expect(row).toMatchObject({ reason: 'estimated' })
    expect(row?.output_tokens).toBeGreaterThanOrEqual(200)
    expect(row?.output_tokens).toBeLessThan(230)
  })

  test('a converted call whose client leaves is charged for the delivered part, and its upstream request is aborted', async () => {
    fixture.upstream.script(MODEL.chat, {
      kind: 'stream',
      events: Number.POSITIVE_INFINITY,
      paceMs: 5,
      word: ' banana',
    })
    const live = await open(
      fixture.gateway.url,
      { model: MODEL.chat, max_tokens: 1000, messages, stream: true },
      { key: 'ann', path: '/v1/messages' },
    )
    await live.until(' banana')
    live.abort()
    const received = fixture.upstream.only(MODEL.chat)
    // The stream goes on forever unless the gateway aborts it.
    await received.ended
    const id = String(live.headers['x-request-id'])
    await expect.poll(() => database.usageOf(id)?.reason).toBe('client_gone')
    expect(database.usageOf(id)?.output_tokens).toBeGreaterThan(0)
  })
})
