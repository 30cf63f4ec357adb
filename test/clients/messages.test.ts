import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { databaseOf } from '../fixtures/database.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { type Client, clientsOf, MODEL, sentTo, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let chat: Client
let message: Client
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat, message } = clientsOf(fixture))
})
afterAll(() => fixture?.close())

const MESSAGES = { path: '/v1/messages' }
const messages = [{ role: 'user', content: 'hi' }]

describe('messages clients', () => {
  test('clients of the Messages API authenticate with x-api-key or a bearer token, and x-api-key has precedence', async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const body = { model: MODEL.messages, max_tokens: 5, messages }
    const as = (headers: Record<string, string>): Promise<FullResponse> =>
      call(fixture.gateway.url, body, { ...MESSAGES, headers })
    expect((await as({ 'x-api-key': 'sk-ann' })).status).toBe(200)
    expect((await as({ authorization: 'Bearer sk-ann' })).status).toBe(200)
    expect((await as({ 'x-api-key': 'sk-ann', authorization: 'Bearer sk-nobody' })).status).toBe(200)
    expect((await as({ 'x-api-key': 'sk-nobody', authorization: 'Bearer sk-ann' })).status).toBe(401)
    expect((await as({})).status).toBe(401)
    const chatOnly = await call(
      fixture.gateway.url,
      { model: MODEL.chat, messages },
      { headers: { 'x-api-key': 'sk-ann' } },
    )
    expect(chatOnly.status).toBe(401)
  })

  test('the anthropic-version and anthropic-beta headers of a Messages client are forwarded, the version also as vendor-version', async () => {
    const sent = async (headers: Record<string, string>): Promise<unknown> => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
      await message({ model: MODEL.messages }, { headers })
      const {
        'anthropic-version': theirs,
        'vendor-version': ours,
        'anthropic-beta': beta,
      } = fixture.upstream.only(MODEL.messages).headers
      return [theirs, ours, beta]
    }
    expect(await sent({})).toEqual(['2023-06-01', '2023-06-01', undefined])
    expect(await sent({ 'anthropic-version': '2024-01-01', 'anthropic-beta': 'a,b' })).toEqual([
      '2024-01-01',
      '2024-01-01',
      'a,b',
    ])
    expect(await sent({ 'vendor-version': '2025-01-01' })).toEqual(['2025-01-01', '2025-01-01', undefined])
  })

  test("a Messages client's call reaches the upstream with the upstream's own key, in the header of its protocol", async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    await chat()
    const { headers, path } = fixture.upstream.only(MODEL.messages)
    expect(path).toBe('/v1/messages')
    expect(headers['x-api-key']).toBe(`upstream-key-of-${MODEL.messages}`)
    expect(headers['anthropic-version']).toBe('2023-06-01')
    expect(JSON.stringify(headers)).not.toContain('sk-ann')
  })

  test('a Messages client gets the whole response or stream of a Messages upstream byte for byte, including pings', async () => {
    const whole = wholeMessage([{ thinking: 'hm', signature: 'c2ln' }, { text: 'Hello.' }])
    fixture.upstream.script(MODEL.messages, whole)
    expect((await message({ model: MODEL.messages })).text).toBe(whole.body)
    const stream = streamedMessage([{ thinking: 'hm', signature: 'c2ln' }, { text: 'Hello.' }])
    fixture.upstream.script(MODEL.messages, stream)
    expect((await message({ model: MODEL.messages, stream: true })).text).toBe(stream.frames?.join(''))
  })

  test("a Messages client's request is sent byte for byte to a Messages upstream, except for fields the channel does not allow", async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const body = (gated: string): string =>
      `{ "model": "${MODEL.messages}", "x": 9007199254740993,${gated} "max_tokens": 7, "messages": [{"role":"user","content":[{"type":"text","text":"hi","cache_control": {"type":"ephemeral","ttl":"1h"}}]}] }`
    await fixture.chat('ann', body(''), MESSAGES)
    expect(fixture.upstream.only(MODEL.messages).text).toBe(body(''))
    fixture.upstream.forget(MODEL.messages)
    await fixture.chat('ann', body('"speed":"fast","inference_geo":"eu","service_tier":"auto",'), MESSAGES)
    expect(JSON.parse(fixture.upstream.only(MODEL.messages).text)).toEqual(JSON.parse(body('')))
  })

  test("sampling fields of a Messages client's request are removed if thinking is requested", async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    await message({
      model: MODEL.messages,
      max_tokens: 5000,
      thinking,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
    })
    const sent = sentTo(fixture, MODEL.messages)
    expect(sent).toMatchObject({ thinking })
    expect(sent).not.toHaveProperty('temperature')
    expect(sent).not.toHaveProperty('top_p')
    expect(sent).not.toHaveProperty('top_k')
  })

  test('/v1/messages/count_tokens counts at an upstream that supports it, and otherwise locally', async () => {
    const body = (model: string): object => ({
      model,
      messages: [{ role: 'user', content: 'How many tokens are these?' }],
    })
    const count = (model: string): Promise<FullResponse> =>
      fixture.chat('ann', body(model), { path: '/v1/messages/count_tokens' })
    fixture.upstream.script(MODEL.messages, { kind: 'whole', body: '{"input_tokens": 4711}' })
    const asked = await count(MODEL.messages)
    expect(asked.text).toBe('{"input_tokens": 4711}')
    expect(fixture.upstream.only(MODEL.messages).path).toBe('/v1/messages/count_tokens')
    fixture.upstream.forget(MODEL.chat)
    const counted = JSON.parse((await count(MODEL.chat)).text) as { input_tokens: number }
    expect(counted.input_tokens).toBeGreaterThan(5)
    expect(counted.input_tokens).toBeLessThan(60)
    expect(fixture.upstream.received(MODEL.chat)).toEqual([])
  })

  test('/v1/messages/count_tokens leaves no usage row and does not count as a request', async () => {
    const database = databaseOf(fixture.gateway.dataDir)
    const seen = () => ({
      rows: database.usage().length,
      user: database.user('ann'),
    })
    const before = seen()
    const counting = { model: MODEL.messages, messages }
    const count = (): Promise<FullResponse> =>
      fixture.chat('ann', counting, { path: '/v1/messages/count_tokens' })
    fixture.upstream.script(MODEL.messages, { kind: 'whole', body: '{"input_tokens":8}' })
    expect((await count()).status).toBe(200)
    fixture.upstream.script(MODEL.messages, { kind: 'status', status: 400, body: '{}' })
    expect((await count()).status).toBe(400)
    fixture.upstream.script(MODEL.messages, { kind: 'drop' })
    expect((await count()).status).toBe(200)
    fixture.upstream.script(MODEL.messages, { kind: 'status', status: 404, body: '{}' })
    expect((await count()).status).toBe(200)
    // The writes of earlier calls are committed before the row of this call.
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    await message({ model: MODEL.messages })
    const after = seen()
    expect(after.rows - before.rows).toBe(1)
    expect(after.user.request_count - before.user.request_count).toBe(1)
    expect(database.openHolds()).toEqual([])
  })
})
