import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    models: priced(['both', 'passed', 'mapped', 'gpt-5']),
    channels: [
      channel('by-chat', upstream.baseUrl('by-chat'), { models: ['both'] }),
      channel('by-messages', upstream.baseUrl('by-messages'), { models: ['both'], protocol: 'messages' }),
      channel('passed', upstream.baseUrl('passed'), { protocol: 'messages', pass_through: true }),
      channel('passed-chat', upstream.baseUrl('passed-chat'), { models: ['gpt-5'], pass_through: true }),
      channel('mapped', upstream.baseUrl('mapped'), {
        protocol: 'messages',
        model_mapping: { mapped: 'upstream-name' },
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 1_000_000_000 })])],
  }))
})
afterAll(() => fixture?.close())

const MESSAGES = { path: '/v1/messages' }
const messages = [{ role: 'user', content: 'hi' }]
const chat = (model: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { model, messages, ...fields })
const message = (model: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { model, max_tokens: 100, messages, ...fields }, MESSAGES)

function script(): void {
  fixture.upstream.script('by-chat', wholeChat({ text: 'from chat' }))
  fixture.upstream.script('by-messages', wholeMessage([{ text: 'from messages' }]))
}

describe('a model behind channels of both protocols', () => {
  test("a model with a chat channel and a Messages channel is served by the channel of the client's own protocol", async () => {
    for (let i = 0; i < 5; i++) {
      script()
      expect((await chat('both', { seed: 7 })).text).toContain('from chat')
      expect((await message('both')).text).toContain('from messages')
      expect(fixture.upstream.received('by-chat')).toHaveLength(1)
      expect(fixture.upstream.received('by-messages')).toHaveLength(1)
    }
  })

  test('a model falls back to a channel of another protocol, and x-gateway-dropped lists what the conversion dropped', async () => {
    script()
    fixture.upstream.script('by-chat', { kind: 'status', status: 500, body: '{}' })
    const fallen = await chat('both', { seed: 7 })
    expect(fallen.json().choices[0]?.message.content).toBe('from messages')
    expect(fallen.headers['x-gateway-dropped']).toBe('seed')
    script()
    fixture.upstream.script('by-messages', { kind: 'drop' })
    expect((await message('both', { top_k: 3 })).headers['x-gateway-dropped']).toBe('top_k')
  })

  test.each([
    ['reasoning_effort', { reasoning_effort: 'xhigh' }],
    [
      'tool_choice',
      {
        tools: [{ type: 'custom', custom: { name: 'f' } }],
        tool_choice: { type: 'custom', custom: { name: 'f' } },
      },
    ],
    [
      'a file by its id',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
    ],
  ])('a native channel accepts what cannot be converted: %s', async (_, fields) => {
    script()
    const answer = await chat('both', fields)
    expect(answer.text).toContain('from chat')
  })

  test("a call with five stop sequences, more than a conversion allows, goes to the channel of the client's own protocol", async () => {
    script()
    expect((await message('both', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] })).text).toContain(
      'from messages',
    )
  })
})

describe('pass-through mode', () => {
  test('a channel in pass-through mode converts requests of another protocol without fields that it does not allow', async () => {
    fixture.upstream.script('passed', wholeMessage([{ text: 'Hello.' }]))
    const answer = await chat('passed', { service_tier: 'flex', max_tokens: 9 })
    expect(answer.json().choices[0]?.message.content).toBe('Hello.')
    expect(JSON.parse(fixture.upstream.only('passed').text)).toEqual({
      model: 'passed',
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  })

  test('a channel in pass-through mode gets no field that it does not allow from a client of another protocol', async () => {
    fixture.upstream.script('passed-chat', wholeChat({ text: 'Hello.' }))
    const fields = { input: 'hi', service_tier: 'priority', safety_identifier: 'ann' }
    const answer = await fixture.chat('ann', { model: 'gpt-5', ...fields }, { path: '/v1/responses' })
    expect(answer.status, answer.text).toBe(200)
    expect(String(answer.headers['x-gateway-dropped']).split(', ').toSorted()).toEqual([
      'safety_identifier',
      'service_tier',
    ])
    expect(JSON.parse(fixture.upstream.only('passed-chat').text)).toEqual({
      model: 'gpt-5',
      messages: [{ role: 'user', content: 'hi' }],
    })
  })

  test('a channel in pass-through mode forwards a field such as speed, which it does not allow, in its own protocol', async () => {
    fixture.upstream.script('passed', wholeMessage([{ text: 'Hello.' }]))
    await message('passed', { speed: 'fast' })
    expect(JSON.parse(fixture.upstream.only('passed').text)).toMatchObject({ speed: 'fast' })
  })
})

test('a converted call sends the model name of model_mapping, and returns the model that the upstream states', async () => {
  fixture.upstream.script('mapped', wholeMessage([{ text: 'Hello.' }]))
  expect((await chat('mapped')).json().model).toBe('upstream-model')
  expect((await chat('mapped-thinking')).status).toBe(200)
  expect(fixture.upstream.received('mapped').map(({ text }) => JSON.parse(text).model)).toEqual([
    'upstream-name',
    'upstream-name',
  ])
})

test('a query string after /v1/messages does not change the endpoint', async () => {
  script()
  const answer = await fixture.chat(
    'ann',
    { model: 'both', max_tokens: 5, messages },
    { path: '/v1/messages?beta=true' },
  )
  expect(answer.status).toBe(200)
})

test('a client that stops reading a converted stream stops its upstream', async () => {
  fixture.upstream.script('by-messages', { kind: 'drop' })
  fixture.upstream.script('by-chat', {
    kind: 'stream',
    events: Number.POSITIVE_INFINITY,
    word: 'x'.repeat(8000),
    usage: usageText(1, 1),
  })
  const body = JSON.stringify({ model: 'both', max_tokens: 10_000_000, messages, stream: true })
  const socket = connect(fixture.gateway.port, '127.0.0.1')
  socket.pause()
  socket.write(
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: sk-ann\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await fixture.upstream.receivedAtLeast('by-chat', 1)
  const received = fixture.upstream.only('by-chat')
  await received.sentAtLeast(50)
  let before = -1
  await expect
    .poll(
      () => {
        const stands = received.eventsSent === before
        before = received.eventsSent
        return stands
      },
      { interval: 400, timeout: 60_000 },
    )
    .toBe(true)
  socket.destroy()
  await received.ended
})
