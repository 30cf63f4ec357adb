import { randomUUID } from 'node:crypto'
import process from 'node:process'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type CuttingProxy, startCuttingProxy } from '../fixtures/cutting-proxy.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const CALLS_OF_EACH = byTier(8, 200)
/** Share of the connections that are cut, at any byte of the answer. */
const CUT_SHARE = 0.6
const MAX_CUT_AT = 4_000
const MAX_ATTEMPTS = 30
const CLIENTS = ['chat', 'messages', 'gemini'] as const
const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `)

type Client = (typeof CLIENTS)[number]

let fixture: Fixture
let cutting: CuttingProxy
let url: string
const random = randomFrom(SEED)

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, quota_per_unit: 500_000 },
    rate_limits: {},
    models: Object.fromEntries(CLIENTS.map((name) => [name, { price: PLAIN_PRICE }])),
    channels: CLIENTS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  const isStream = ({ text, path }: Received): boolean =>
    path.includes('stream') || text.includes('"stream":true')
  const text = WORDS.join('')
  fixture.upstream.decide('chat', (request) =>
    isStream(request)
      ? { kind: 'stream', events: 40, paceMs: 2 }
      : { kind: 'whole', content: text, headers: { 'content-type': 'application/json' } },
  )
  fixture.upstream.decide('messages', (request) =>
    isStream(request) ? streamedMessage([{ text }]) : wholeMessage([{ text }]),
  )
  fixture.upstream.decide('gemini', (request) =>
    isStream(request) ? streamedGemini({ text }) : wholeGemini({ text }),
  )
  cutting = await startCuttingProxy(fixture.gateway.url, () =>
    random() < CUT_SHARE ? Math.floor(random() * MAX_CUT_AT) : Number.POSITIVE_INFINITY,
  )
  url = cutting.url
})
afterAll(async () => {
  cutting?.close()
  await fixture?.close()
})

/** The calls of the official clients, whole and streamed. Each returns what it received. */
const CALLS: Readonly<Record<Client, (call: string, stream: boolean, key: string) => Promise<string>>> = {
  async chat(call, stream, key) {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${url}/v1`, maxRetries: 0 })
    const body = { model: 'chat', messages: [{ role: 'user' as const, content: call }] }
    const options = { headers: { 'Idempotency-Key': key } }
    if (!stream) return JSON.stringify(await client.chat.completions.create(body, options))
    const chunks: unknown[] = []
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true }, options))
      chunks.push(chunk)
    return JSON.stringify(chunks)
  },
  async messages(call, stream, key) {
    const client = new Anthropic({ apiKey: 'sk-ann', baseURL: url, maxRetries: 0 })
    const body = { model: 'messages', max_tokens: 99, messages: [{ role: 'user' as const, content: call }] }
    const options = { headers: { 'Idempotency-Key': key } }
    if (!stream) return JSON.stringify(await client.messages.create(body, options))
    const events: unknown[] = []
    for await (const event of await client.messages.create({ ...body, stream: true }, options))
      events.push(event)
    return JSON.stringify(events)
  },
  async gemini(call, stream, key) {
    const headers = { 'Idempotency-Key': key }
    const client = new GoogleGenAI({ apiKey: 'sk-ann', httpOptions: { baseUrl: url, headers } })
    const body = { model: 'gemini', contents: call }
    if (!stream) return JSON.stringify((await client.models.generateContent(body)).candidates)
    const chunks: unknown[] = []
    for await (const chunk of await client.models.generateContentStream(body)) chunks.push(chunk.candidates)
    return JSON.stringify(chunks)
  },
}

/** What tells whether a client has received a whole stream; it does not always notice a cut itself. */
const ENDS: Readonly<Record<Client, string>> = {
  chat: '"finish_reason":"stop"',
  messages: '"stop_reason":"end_turn"',
  gemini: '"finishReason":"STOP"',
}

test('retries with the same idempotency key over cut connections get equal answers, for one upstream call and one charge', {
  timeout: 300_000,
}, async () => {
  console.info(`seed ${SEED} (SEED=${SEED} repeats the cuts, not their timing)`)
  let attempts = 0
  const persisting = async (client: Client, stream: boolean, call: string, key: string): Promise<string> => {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      attempts += 1
      const answer = await CALLS[client](call, stream, key).catch((error: unknown) => {
        const { status, message } = error as { status?: number; message: string }
        // Only a connection that was cut may fail, and a call for which a busy machine has no time. Clients state
        // the code of an error as a member, or in the message; "terminated" if its body was cut.
        const isOverloaded = /overloaded|terminated/.test(`${JSON.stringify(error)} ${message}`)
        if (status === 503 && isOverloaded) attempt -= 1
        else if (status !== undefined) throw error
        return ''
      })
      if (answer.includes(ENDS[client])) return answer
    }
    throw new Error(`${client} has not got its answer in ${MAX_ATTEMPTS} attempts`)
  }
  const calls = CLIENTS.flatMap((client) =>
    [false, true].flatMap((stream) =>
      Array.from({ length: CALLS_OF_EACH }, () => ({
        client,
        stream,
        call: randomUUID(),
        key: randomUUID(),
      })),
    ),
  )
  await Promise.all(
    calls.map(async ({ client, stream, call, key }) => {
      // Two clients persist with the same call, and a third asks when it is over.
      const both = await Promise.all([1, 2].map(() => persisting(client, stream, call, key)))
      const answers = [...both, await persisting(client, stream, call, key)]
      expect(new Set(answers).size).toBe(1)
      const received = fixture.upstream.received(client).filter(({ text }) => text.includes(call))
      expect(received, `${client} ${stream ? 'streamed' : 'whole'}`).toHaveLength(1)
    }),
  )
  const database = databaseOf(fixture.gateway.dataDir)
  await expect.poll(() => database.usage().length).toBe(calls.length)
  const usage = database.usage()
  const charged = usage.reduce((sum, { quota }) => sum + quota, 0)
  expect(database.token('token-ann').used_quota).toBe(charged)
  expect(new Set(usage.map(({ reason }) => reason))).toEqual(new Set(['complete']))
  expect(database.openHolds()).toEqual([])
  console.info(`${calls.length} calls, ${attempts} attempts, ${cutting.cuts} connections cut`)
  expect(cutting.cuts).toBeGreaterThan(calls.length / 2)
})
