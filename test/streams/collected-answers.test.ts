import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { contentFrame, roleFrame, type Whole } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call, CERTAINLY_GONE_MS } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { messageFrames, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { frames as responseFrames, wholeResponse } from '../fixtures/responses-behaviour.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** 2,000 tokens in any tokenizer. */
const WORDS = 'apple '.repeat(2_000)
/** More than the buffers of a connection hold, so that what comes before has arrived once this was written. */
const PADDING = 'x'.repeat(16 * 1024 * 1024)

type Dialect = 'chat' | 'messages' | 'responses' | 'gemini'
const DIALECTS: readonly Dialect[] = ['chat', 'messages', 'responses', 'gemini']

/** What each provider sends in the other form than was requested, without an end. */
const EVENTS: Readonly<Record<Dialect, readonly string[]>> = {
  chat: [roleFrame(), contentFrame(WORDS)],
  messages: messageFrames([{ text: WORDS }], { counts: { input_tokens: 0, output_tokens: 0 } }).slice(0, 5),
  responses: responseFrames({ text: WORDS }).slice(0, 6),
  gemini: geminiFrames({ text: WORDS, usage: '{}' }).slice(0, 2),
}
const WHOLE: Readonly<Record<Dialect, Whole>> = {
  chat: wholeChat({ text: WORDS }),
  messages: wholeMessage([{ text: WORDS }]),
  responses: wholeResponse({ text: WORDS }),
  gemini: wholeGemini({ text: WORDS }),
}

function begun(dialect: Dialect, asEvents: boolean): string {
  if (asEvents) return `${EVENTS[dialect].join('')}: ${PADDING}`
  const text = String(WHOLE[dialect].body)
  const end = text.indexOf(WORDS) + WORDS.length
  return `${text.slice(0, end)}","padding":"${PADDING}`
}

let provider: Server
let arrived: PromiseWithResolvers<void>
let answer: string
let fixture: Fixture
beforeAll(async () => {
  provider = createServer((request, reply) => {
    request.resume()
    reply.writeHead(200, {
      'content-type': answer.startsWith('{') ? 'application/json' : 'text/event-stream',
    })
    reply.write(answer, () => arrived.resolve())
  })
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  fixture = await startFixture(() => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: Object.fromEntries(DIALECTS.map((name) => [name, { price: PLAIN_PRICE }])),
    channels: DIALECTS.map((name) => channel(name, url, { protocol: name })),
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
  }))
})
afterAll(async () => {
  await fixture?.close()
  provider?.closeAllConnections()
  provider?.close()
})

function asked(client: Dialect, model: Dialect, stream: boolean) {
  const messages = [{ role: 'user', content: WORDS }]
  switch (client) {
    case 'chat':
      return { path: '/v1/chat/completions', body: { model, messages, stream } }
    case 'messages':
      return { path: '/v1/messages', body: { model, messages, max_tokens: 50, stream } }
    case 'responses':
      return { path: '/v1/responses', body: { model, input: WORDS, stream } }
    case 'gemini':
      return {
        path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: { contents: [{ role: 'user', parts: [{ text: WORDS }] }] },
      }
  }
}

/** The provider begins its answer in the form that was not requested. */
function script(upstream: Dialect, asEvents: boolean): void {
  arrived = Promise.withResolvers<void>()
  answer = begun(upstream, asEvents)
}

async function rowOf(id: string, reason: string): Promise<UsageRow> {
  const database = databaseOf(fixture.gateway.dataDir)
  await vi.waitFor(() => expect(database.usageOf(id)?.reason).toBe(reason), 60_000)
  return database.usageOf(id) as UsageRow
}

async function runningId(): Promise<string> {
  const { data } = await manage<{ items: { id: string }[] }>(
    fixture.gateway.url,
    ANN,
    'GET /api/running/self',
  )
  expect(data.items).toHaveLength(1)
  return data.items[0]?.id ?? ''
}

function expectAll(row: UsageRow): void {
  expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
  expect(row.output_tokens).toBeGreaterThanOrEqual(1_990)
  expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
}

const ROADS: readonly (readonly [Dialect, Dialect])[] = [
  ...DIALECTS.map((name) => [name, name] as const),
  ['chat', 'messages'],
  ['messages', 'responses'],
]

describe.each([true, false])('an answer that is collected, streamed: %s', (stream) => {
  test.each(ROADS)('and stopped is charged for what had arrived: %s to %s', async (client, upstream) => {
    script(upstream, !stream)
    const { path, body } = asked(client, upstream, stream)
    const stopped = call(fixture.gateway.url, body, { key: 'ann', path })
    await arrived.promise
    const id = await runningId()
    await manage(fixture.gateway.url, ANN, `POST /api/running/${id}/stop`)
    expect((await stopped).text).toContain('this call was stopped')
    expectAll(await rowOf(id, 'stopped'))
  })

  test('and left is charged for what had arrived', async () => {
    script('chat', !stream)
    const { path, body } = asked('chat', 'chat', stream)
    const left = new AbortController()
    const { url } = fixture.gateway
    const headers = { authorization: 'Bearer sk-ann', 'content-type': 'application/json' }
    const sent = fetch(url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: left.signal,
    }).catch(() => undefined)
    await arrived.promise
    const id = await runningId()
    // Directly after a request, a client that closes its sending side may still be reading.
    await sleep(CERTAINLY_GONE_MS)
    left.abort()
    await sent
    expectAll(await rowOf(id, 'client_gone'))
  })
})
