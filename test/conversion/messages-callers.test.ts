import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, call } from '../equipment/client.ts'
import { streamedMessage, wholeMessage } from '../equipment/messages-behaviour.ts'
import { databaseOf } from '../equipment/database.ts'
import type { Stage } from '../equipment/stage.ts'
import { type Caller, callersOf, MODEL, sentTo, stageOfBoth } from './stage.ts'

let stage: Stage
let chat: Caller
let message: Caller
beforeAll(async () => {
  stage = await stageOfBoth()
  ;({ chat, message } = callersOf(stage))
})
afterAll(() => stage?.close())

const MESSAGES = { path: '/v1/messages' }
const messages = [{ role: 'user', content: 'hi' }]

describe('messages clients', () => {
  test('authenticate with x-api-key or a bearer token; x-api-key wins', async () => {
    stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const body = { model: MODEL.messages, max_tokens: 5, messages }
    const as = (headers: Record<string, string>): Promise<Answer> =>
      call(stage.gateway.url, body, { ...MESSAGES, headers })
    expect((await as({ 'x-api-key': 'sk-ann' })).status).toBe(200)
    expect((await as({ authorization: 'Bearer sk-ann' })).status).toBe(200)
    expect((await as({ 'x-api-key': 'sk-ann', authorization: 'Bearer sk-nobody' })).status).toBe(200)
    expect((await as({ 'x-api-key': 'sk-nobody', authorization: 'Bearer sk-ann' })).status).toBe(401)
    expect((await as({})).status).toBe(401)
    const chatOnly = await call(
      stage.gateway.url,
      { model: MODEL.chat, messages },
      { headers: { 'x-api-key': 'sk-ann' } },
    )
    expect(chatOnly.status).toBe(401)
  })

  test('have their version and beta headers forwarded, under both names', async () => {
    const sent = async (headers: Record<string, string>): Promise<unknown> => {
      stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
      await message({ model: MODEL.messages }, { headers })
      const {
        'anthropic-version': theirs,
        'vendor-version': ours,
        'anthropic-beta': beta,
      } = stage.upstream.only(MODEL.messages).headers
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

  test('reach the upstream with its own key, in the header of its dialect', async () => {
    stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    await chat()
    const { headers, path } = stage.upstream.only(MODEL.messages)
    expect(path).toBe('/v1/messages')
    expect(headers['x-api-key']).toBe(`upstream-key-of-${MODEL.messages}`)
    expect(headers['anthropic-version']).toBe('2023-06-01')
    expect(JSON.stringify(headers)).not.toContain('sk-ann')
  })

  test('get a whole answer and a stream byte for byte, pings too', async () => {
    const whole = wholeMessage([{ thinking: 'hm', signature: 'c2ln' }, { text: 'Hello.' }])
    stage.upstream.script(MODEL.messages, whole)
    expect((await message({ model: MODEL.messages })).text).toBe(whole.body)
    const stream = streamedMessage([{ thinking: 'hm', signature: 'c2ln' }, { text: 'Hello.' }])
    stage.upstream.script(MODEL.messages, stream)
    expect((await message({ model: MODEL.messages, stream: true })).text).toBe(stream.frames?.join(''))
  })

  test('have their request forwarded byte for byte, except for gated fields', async () => {
    stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const body = (gated: string): string =>
      `{ "model": "${MODEL.messages}", "x": 9007199254740993,${gated} "max_tokens": 7, "messages": [{"role":"user","content":[{"type":"text","text":"hi","cache_control": {"type":"ephemeral","ttl":"1h"}}]}] }`
    await stage.chat('ann', body(''), MESSAGES)
    expect(stage.upstream.only(MODEL.messages).text).toBe(body(''))
    stage.upstream.forget(MODEL.messages)
    await stage.chat('ann', body('"speed":"fast","inference_geo":"eu","service_tier":"auto",'), MESSAGES)
    expect(JSON.parse(stage.upstream.only(MODEL.messages).text)).toEqual(JSON.parse(body('')))
  })

  test('have sampling fields removed while the model thinks', async () => {
    stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    await message({
      model: MODEL.messages,
      max_tokens: 5000,
      thinking,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
    })
    const sent = sentTo(stage, MODEL.messages)
    expect(sent).toMatchObject({ thinking })
    expect(sent).not.toHaveProperty('temperature')
    expect(sent).not.toHaveProperty('top_p')
    expect(sent).not.toHaveProperty('top_k')
  })

  test('may count tokens: at an upstream that supports it, otherwise locally', async () => {
    const body = (model: string): object => ({
      model,
      messages: [{ role: 'user', content: 'How many tokens are these?' }],
    })
    const count = (model: string): Promise<Answer> =>
      stage.chat('ann', body(model), { path: '/v1/messages/count_tokens' })
    stage.upstream.script(MODEL.messages, { kind: 'whole', body: '{"input_tokens": 4711}' })
    const asked = await count(MODEL.messages)
    expect(asked.text).toBe('{"input_tokens": 4711}')
    expect(stage.upstream.only(MODEL.messages).path).toBe('/v1/messages/count_tokens')
    stage.upstream.forget(MODEL.chat)
    const counted = JSON.parse((await count(MODEL.chat)).text) as { input_tokens: number }
    expect(counted.input_tokens).toBeGreaterThan(5)
    expect(counted.input_tokens).toBeLessThan(60)
    expect(stage.upstream.received(MODEL.chat)).toEqual([])
  })

  test('leave no row and no request behind when they only count', async () => {
    const database = databaseOf(stage.gateway.dataDir)
    const seen = () => ({
      rows: database.usage().length,
      user: database.user('ann'),
    })
    const before = seen()
    const counting = { model: MODEL.messages, messages }
    const count = (): Promise<Answer> => stage.chat('ann', counting, { path: '/v1/messages/count_tokens' })
    stage.upstream.script(MODEL.messages, { kind: 'whole', body: '{"input_tokens":8}' })
    expect((await count()).status).toBe(200)
    stage.upstream.script(MODEL.messages, { kind: 'status', status: 400, body: '{}' })
    expect((await count()).status).toBe(400)
    stage.upstream.script(MODEL.messages, { kind: 'drop' })
    expect((await count()).status).toBe(500)
    stage.upstream.script(MODEL.messages, { kind: 'status', status: 404, body: '{}' })
    expect((await count()).status).toBe(200)
    // Writes of the earlier calls would be committed before the row of this call.
    stage.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    await message({ model: MODEL.messages })
    const after = seen()
    expect(after.rows - before.rows).toBe(1)
    expect(after.user.request_count - before.user.request_count).toBe(1)
    expect(database.openHolds()).toEqual([])
  })
})
