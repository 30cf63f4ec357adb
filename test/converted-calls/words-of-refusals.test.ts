import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { eventFrame, STOP_FRAME } from '../fixtures/messages-behaviour.ts'

type Json = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- answers of all protocols
type Client = 'chat' | 'messages' | 'responses' | 'gemini'
const CLIENTS: readonly Client[] = ['chat', 'messages', 'responses', 'gemini']
const WORDS = 'This request was "declined":\nit asks for too much.'

/** Refusals with words of the provider, and without usage: of a message, of a prompt, and of a candidate. */
const DETAILS = { stop_details: { type: 'refusal', category: 'cyber', explanation: WORDS } }
const ENDED = { stop_reason: 'refusal', stop_sequence: null, ...DETAILS }
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
const BLOCKED = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT', blockReasonMessage: WORDS } }
const CANDIDATE = { index: 0, finishReason: 'SAFETY', finishMessage: WORDS }
const frame = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
const ANSWERS = {
  messages: {
    whole: { ...MESSAGE, content: [], ...ENDED },
    frames: [
      eventFrame('message_start', { message: { ...MESSAGE, content: [], stop_reason: null } }),
      eventFrame('message_delta', { delta: ENDED }),
      STOP_FRAME,
    ],
  },
  blocked: { whole: BLOCKED, frames: [frame(BLOCKED)] },
  filtered: { whole: { candidates: [CANDIDATE] }, frames: [frame({ candidates: [CANDIDATE] })] },
} as const
type Answer = keyof typeof ANSWERS

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: Object.fromEntries(Object.keys(ANSWERS).map((name) => [name, { price: PLAIN_PRICE }])),
    channels: Object.keys(ANSWERS).map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name === 'messages' ? 'messages' : 'gemini' }),
    ),
    guards: [
      {
        name: 'out',
        do: 'redact',
        where: ['output'],
        match: { words: ['declined'] },
        tokens: ['token-strict'],
      },
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('strict')])],
  }))
})
afterAll(() => fixture?.close())

function asked(client: Client, model: string, stream: boolean) {
  const messages = [{ role: 'user', content: 'hi' }]
  switch (client) {
    case 'chat':
      return { path: '/v1/chat/completions', body: { model, messages, stream } }
    case 'messages':
      return { path: '/v1/messages', body: { model, messages, max_tokens: 50, stream } }
    case 'responses':
      return { path: '/v1/responses', body: { model, input: 'hi', stream } }
    case 'gemini':
      return {
        path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
      }
  }
}

/** The words and the end in an object of an answer, or in one of its events. */
function saidIn(client: Client, one: Json): { words?: string; end?: string } {
  switch (client) {
    case 'chat': {
      const [choice] = one['choices'] ?? []
      return { words: (choice?.message ?? choice?.delta)?.refusal, end: choice?.finish_reason }
    }
    case 'messages': {
      const { stop_details, stop_reason } = one['delta'] ?? one
      return { words: stop_details?.explanation, end: stop_reason }
    }
    case 'responses': {
      const { output, incomplete_details } = one['response'] ?? one
      return { words: output?.at(-1)?.content[0].refusal, end: incomplete_details?.reason }
    }
    case 'gemini': {
      const { finishMessage, finishReason } = one['candidates']?.[0] ?? {}
      const { blockReasonMessage, blockReason } = one['promptFeedback'] ?? {}
      return { words: finishMessage ?? blockReasonMessage, end: finishReason ?? blockReason }
    }
  }
}

const ENDS: Readonly<Record<Client, string>> = {
  chat: 'content_filter',
  messages: 'refusal',
  responses: 'content_filter',
  gemini: 'SAFETY',
}

const CASES = (Object.keys(ANSWERS) as Answer[]).flatMap((answer) =>
  CLIENTS.flatMap((client) => [false, true].map((stream) => [answer, client, stream] as const)),
)

/** Sends a call that is answered like that. */
function refused([answer, client, stream]: (typeof CASES)[number], key: string): Promise<FullResponse> {
  const { whole, frames } = ANSWERS[answer]
  const behaviour: Behaviour = stream
    ? { kind: 'stream', frames, ending: 'no done' }
    : { kind: 'whole', body: JSON.stringify(whole) }
  fixture.upstream.script(answer, behaviour)
  const { path, body } = asked(client, answer, stream)
  return call(fixture.gateway.url, body, { key, path })
}

test.each(CASES)(
  "guards check the provider's words about a refusal (%s) to a client of %s, streamed: %s",
  async (...one) => {
    const { status, text } = await refused(one, 'strict')
    expect([status, text]).toEqual([200, expect.stringContaining('[REDACTED]')])
    expect(text).not.toContain('declined')
  },
)

test.each(CASES)(
  "the provider's words about a refusal (%s) reach a client of %s and are not counted, streamed: %s",
  async (answer, client, stream) => {
    const { status, text, headers } = await refused([answer, client, stream], 'ann')
    expect([status, text]).toEqual([200, expect.stringContaining('declined')])
    const parts = stream ? [...text.matchAll(/^data: (\{.*)/gm)].map(([, data]) => String(data)) : [text]
    const said = parts.map((part) => saidIn(client, JSON.parse(part)))
    expect(said.flatMap(({ words }) => words ?? []).join('')).toBe(WORDS)
    const isNative = client === 'gemini' && answer === 'blocked'
    expect(said.findLast(({ end }) => end)?.end).toBe(isNative ? 'PROHIBITED_CONTENT' : ENDS[client])
    if (client === 'responses' && stream) expect(text).toContain('"type":"response.refusal.delta"')
    const row = () => databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
    await expect.poll(row).toMatchObject({ reason: 'estimated', output_tokens: 0 })
  },
)

test('the words about a refusal follow what the model has said, and come with the other form of an answer', async () => {
  const said = { ...MESSAGE, content: [{ type: 'text', text: 'Well,' }], ...ENDED }
  fixture.upstream.script('messages', { kind: 'whole', body: JSON.stringify(said) })
  const stream = asked('messages', 'messages', true)
  const native = await call(fixture.gateway.url, stream.body, { key: 'ann', path: stream.path })
  expect(native.text).toMatch(/"type":"message_delta","delta":\{[^}]*"stop_details":\{[^}]*declined/)
  const { path, body } = asked('responses', 'messages', true)
  const { text } = await call(fixture.gateway.url, body, { key: 'ann', path })
  const last = JSON.parse(/^data: (\{.*"type":"response\.incomplete".*)$/m.exec(text)?.[1] ?? '{}')
  expect(last.response.output).toMatchObject([
    { status: 'completed', content: [{ type: 'output_text', text: 'Well,' }] },
    { status: 'incomplete', content: [{ type: 'refusal', refusal: WORDS }] },
  ])
})
