import { randomUUID } from 'node:crypto'
import process from 'node:process'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type CuttingProxy, startCuttingProxy } from '../fixtures/cutting-proxy.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const CALLS_OF_EACH = byTier(6, 100)
/** Share of the connections that are cut before the head of an answer is complete, so that clients retry by themselves. */
const CUT_SHARE = 0.25
const MAX_CUT_AT = 60
/** Share of the upstream's answers that are errors which another attempt may cure. */
const ERROR_SHARE = 0.15
const RETRIES = 12
const CLIENTS = ['chat', 'messages', 'gemini'] as const
const TEXT = 'a text of several words'

type Client = (typeof CLIENTS)[number]

let fixture: Fixture
let cutting: CuttingProxy
const random = randomFrom(SEED)
/** Answers of the upstream to each call, without errors. */
const answered = new Map<string, number>()

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: {},
    models: Object.fromEntries(CLIENTS.map((name) => [name, { price: PLAIN_PRICE }])),
    channels: CLIENTS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  const isStream = ({ text, path }: Received): boolean =>
    path.includes('stream') || text.includes('"stream":true')
  const answers: Readonly<Record<Client, (stream: boolean) => Behaviour>> = {
    chat: (stream) => (stream ? { kind: 'stream', events: 9, paceMs: 2 } : { kind: 'whole', content: TEXT }),
    messages: (stream) => (stream ? streamedMessage([{ text: TEXT }]) : wholeMessage([{ text: TEXT }])),
    gemini: (stream) => (stream ? streamedGemini({ text: TEXT }) : wholeGemini({ text: TEXT })),
  }
  for (const name of CLIENTS)
    fixture.upstream.decide(name, (request) => {
      if (random() < ERROR_SHARE) return { kind: 'status', status: 500, body: '{}' }
      const call = /call-[\w-]{36}/.exec(request.text)?.[0] ?? ''
      answered.set(call, (answered.get(call) ?? 0) + 1)
      return answers[name](isStream(request))
    })
  cutting = await startCuttingProxy(fixture.gateway.url, () =>
    random() < CUT_SHARE ? Math.floor(random() * MAX_CUT_AT) : Number.POSITIVE_INFINITY,
  )
})
afterAll(async () => {
  cutting?.close()
  await fixture?.close()
})

async function listed<One>(
  events: AsyncIterable<One>,
  shown: (one: One) => unknown = (one) => one,
): Promise<string> {
  const all: unknown[] = []
  for await (const one of events) all.push(shown(one))
  return JSON.stringify(all)
}

/** Google's client repeats after errors of a server, and not after those of a connection. */
async function unlessCut<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
    }
  }
}

/** One call of an official client, which retries by itself. `key`: the idempotency key, where the client makes none. */
const CALLS: Readonly<Record<Client, (call: string, stream: boolean, key: string) => Promise<string>>> = {
  async chat(call, stream) {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${cutting.url}/v1`, maxRetries: RETRIES })
    // As it is told which header to use, it sends the same key with each of its attempts.
    Object.assign(client, { idempotencyHeader: 'Idempotency-Key' })
    const body = { model: 'chat', messages: [{ role: 'user' as const, content: call }] }
    if (!stream) return JSON.stringify(await client.chat.completions.create(body))
    return listed(await client.chat.completions.create({ ...body, stream: true }))
  },
  async messages(call, stream, key) {
    const client = new Anthropic({ apiKey: 'sk-ann', baseURL: cutting.url, maxRetries: RETRIES })
    const body = { model: 'messages', max_tokens: 99, messages: [{ role: 'user' as const, content: call }] }
    const options = { headers: { 'Idempotency-Key': key } }
    if (!stream) return JSON.stringify(await client.messages.create(body, options))
    return listed(await client.messages.create({ ...body, stream: true }, options))
  },
  async gemini(call, stream, key) {
    const client = new GoogleGenAI({
      apiKey: 'sk-ann',
      httpOptions: {
        baseUrl: cutting.url,
        headers: { 'Idempotency-Key': key },
        retryOptions: { attempts: RETRIES, initialDelay: 0.2 },
      },
    })
    const body = { model: 'gemini', contents: call }
    return unlessCut(async () =>
      stream
        ? listed(await client.models.generateContentStream(body), ({ candidates }) => candidates)
        : JSON.stringify((await client.models.generateContent(body)).candidates),
    )
  },
}

test('the automatic retries of official clients lead to one answer and one charge for each call', async () => {
  console.info(`seed ${SEED} (SEED=${SEED} repeats the cuts, not their timing)`)
  const calls = CLIENTS.flatMap((client) =>
    [false, true].flatMap((stream) =>
      Array.from({ length: CALLS_OF_EACH }, () => ({ client, stream, call: `call-${randomUUID()}` })),
    ),
  )
  await Promise.all(
    calls.map(async ({ client, stream, call }) => {
      const answer = await CALLS[client](call, stream, randomUUID())
      expect(answer, `${client} ${stream ? 'streamed' : 'whole'}`).toContain(
        client === 'chat' && stream ? 'word' : 'words',
      )
      expect(answered.get(call), `${client} ${stream ? 'streamed' : 'whole'}`).toBe(1)
    }),
  )
  const database = databaseOf(fixture.gateway.dataDir)
  const charged = (): number[] =>
    database
      .usage()
      .map(({ quota }) => quota)
      .filter((quota) => quota > 0)
  await expect.poll(() => charged().length).toBe(calls.length)
  expect(database.token('token-ann').used_quota).toBe(charged().reduce((sum, quota) => sum + quota, 0))
  expect(database.openHolds()).toEqual([])
  console.info(`${calls.length} calls, ${cutting.cuts} connections cut`)
  // How many of the few connections of a day are cut is chance.
  expect(cutting.cuts).toBeGreaterThan(byTier(0, calls.length / 10))
})
