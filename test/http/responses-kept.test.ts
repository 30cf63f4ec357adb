import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { usageText } from '../equipment/behaviour.ts'
import { streamedChat, wholeChat } from '../equipment/chat-behaviour.ts'
import type { FullResponse } from '../equipment/client.ts'
import { channel, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'
import { startGateway } from '../equipment/gateway.ts'
import { wholeMessage } from '../equipment/messages-behaviour.ts'

const CALLS = [{ id: 'call_1', name: 'weather', input: '{"city":"Bern"}' }]
const tools = [{ type: 'function' as const, name: 'weather', parameters: { type: 'object' }, strict: false }]

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { keep_responses: '1h' },
    models: priced(['chat', 'messages']),
    channels: [
      channel('chat', upstream.baseUrl('chat')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const said = (text: string): ReturnType<typeof wholeChat> => wholeChat({ text, usage: usageText(10, 5) })

function messagesSent(lane = 'chat'): unknown {
  return JSON.parse(fixture.upstream.received(lane).at(-1)?.text ?? '{}').messages
}

const post = (fields: object, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'chat', input: 'hi', ...fields }, { path: '/v1/responses' })

describe('a converted response that is kept', () => {
  test('is continued: the upstream gets the whole conversation, and the response names what it continues', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const first = await client.responses.create({ model: 'chat', input: 'hi', instructions: 'be short' })
    expect(first).toMatchObject({ store: true })
    fixture.upstream.script('chat', streamedChat({ calls: CALLS, usage: usageText(20, 5) }))
    const second = await client.responses
      .stream({ model: 'chat', input: 'weather?', previous_response_id: first.id, tools })
      .finalResponse()
    expect(second.previous_response_id).toBe(first.id)
    expect(messagesSent()).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'weather?' },
    ])
    fixture.upstream.script('chat', said('Rain.'))
    const third = await client.responses.create({
      model: 'chat',
      input: [{ type: 'function_call_output', call_id: 'call_1', output: 'rain' }],
      previous_response_id: second.id,
    })
    expect(third.output_text).toBe('Rain.')
    expect(messagesSent()).toMatchObject([
      { content: 'hi' },
      { content: 'Hello.' },
      { content: 'weather?' },
      { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
    ])
    const items = await client.responses.inputItems.list(third.id, { order: 'asc', limit: 3 })
    expect(items.data.map(({ type }) => type)).toEqual(['message', 'message', 'message'])
    expect(items.has_more).toBe(true)
    const all = []
    for await (const item of client.responses.inputItems.list(third.id, { limit: 2 })) all.push(item)
    expect(all.map(({ type }) => type)).toEqual([
      'function_call_output',
      'function_call',
      'message',
      'message',
      'message',
    ])
    expect(new Set(all.map(({ id }) => id)).size).toBe(5)
  })

  test('is the same when it is retrieved, and gone when it is deleted', async () => {
    fixture.upstream.script('messages', wholeMessage([{ text: 'Hello.' }], {}))
    const made = await client.responses.create({ model: 'messages', input: 'hi' })
    const { output_text: _, ...again } = await client.responses.retrieve(made.id)
    expect(made).toMatchObject(again)
    await expect(client.responses.cancel(made.id)).rejects.toMatchObject({ status: 400 })
    await client.responses.delete(made.id)
    await expect(client.responses.retrieve(made.id)).rejects.toMatchObject({ status: 404 })
    await expect(client.responses.inputItems.list(made.id)).rejects.toMatchObject({ status: 404 })
    const next = client.responses.create({ model: 'messages', input: 'go on', previous_response_id: made.id })
    await expect(next).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('whose beginning was deleted is not continued without it', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const first = await client.responses.create({ model: 'chat', input: 'hi' })
    const second = await client.responses.create({
      model: 'chat',
      input: 'and?',
      previous_response_id: first.id,
    })
    await client.responses.delete(first.id)
    const next = client.responses.create({ model: 'chat', input: 'go on', previous_response_id: second.id })
    await expect(next).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('belongs to its user', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const { id } = await client.responses.create({ model: 'chat', input: 'hi' })
    const answer = await post({ previous_response_id: id }, 'bob')
    expect(answer.status).toBe(400)
    const path = `/v1/responses/${id}`
    expect((await fixture.chat('bob', undefined, { path, method: 'GET' })).status).toBe(404)
  })

  test('is not kept with store: false', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const made = await client.responses.create({ model: 'chat', input: 'hi', store: false })
    const { id } = made
    expect(made).toMatchObject({ store: false })
    await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    const answer = await post({ previous_response_id: id })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('store: false')
  })

  test('is refused in the background', async () => {
    const answer = await post({ background: true })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`Invalid 'background'`)
  })

  test('is on the disk encrypted, and there after a kill', async () => {
    fixture.upstream.script('chat', said('A whale told me.'))
    const { id } = await client.responses.create({ model: 'chat', input: 'who told you' })
    await fixture.gateway.kill()
    const { readFileSync, readdirSync } = await import('node:fs')
    for (const file of readdirSync(fixture.gateway.dataDir).filter((name) => name.includes('.db'))) {
      const bytes = readFileSync(`${fixture.gateway.dataDir}/${file}`)
      expect(bytes.includes('whale')).toBe(false)
      expect(bytes.includes('who told you')).toBe(false)
    }
    await fixture.gateway.restart()
    const later = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    expect(await later.responses.retrieve(id)).toMatchObject({ id, output_text: 'A whale told me.' })
  })
})

describe('options.keep_responses', () => {
  test('ends what is kept when its time is over', async () => {
    const short = await startGateway({
      config: {
        options: { keep_responses: '2s' },
        models: priced(['chat']),
        channels: [channel('chat', fixture.upstream.baseUrl('chat'))],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      },
    })
    try {
      const brief = new OpenAI({ apiKey: 'sk-ann', baseURL: `${short.url}/v1`, maxRetries: 0 })
      fixture.upstream.script('chat', said('Hello.'))
      const { id } = await brief.responses.create({ model: 'chat', input: 'hi' })
      await vi.waitFor(() => expect(brief.responses.retrieve(id)).rejects.toMatchObject({ status: 404 }), {
        timeout: 20_000,
        interval: 500,
      })
    } finally {
      await short.discard()
    }
  })

  test('of 0 keeps nothing, and the refusal names it', async () => {
    const none = await startGateway({
      config: {
        models: priced(['chat']),
        channels: [channel('chat', fixture.upstream.baseUrl('chat'))],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      },
    })
    try {
      const forgetful = new OpenAI({ apiKey: 'sk-ann', baseURL: `${none.url}/v1`, maxRetries: 0 })
      fixture.upstream.script('chat', said('Hello.'))
      const { id } = await forgetful.responses.create({ model: 'chat', input: 'hi' })
      await expect(forgetful.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
      await expect(
        forgetful.responses.create({ model: 'chat', input: 'hi', previous_response_id: id }),
      ).rejects.toThrow(/options\.keep_responses/)
    } finally {
      await none.discard()
    }
  })
})
