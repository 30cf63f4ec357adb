import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import {
  type Behaviour,
  contentFrame,
  errorBody,
  finishFrame,
  roleFrame,
  usageText,
  usageFrame,
  DONE_FRAME,
} from '../fixtures/behaviour.ts'
import type { LiveResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { messageFrames, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { frames as responseFrames, upstreamNamed } from '../fixtures/responses-behaviour.ts'
import { byTier } from '../runner/tier.ts'
import { watchedFetch } from '../fixtures/watched-fetch.ts'

type Dialect = 'chat' | 'messages' | 'responses' | 'gemini'

const CHAT_FRAMES = [
  roleFrame(),
  contentFrame('Hel'),
  contentFrame('lo there.'),
  finishFrame(),
  usageFrame(usageText(10, 5)),
  DONE_FRAME,
]
/** The frames of a stream that says `Hello there.`, in each dialect of an upstream. */
const FRAMES: Readonly<Record<Dialect, readonly string[]>> = {
  chat: CHAT_FRAMES,
  messages: messageFrames([{ text: 'Hello there.' }]),
  responses: responseFrames({ text: 'Hello there.' }),
  gemini: geminiFrames({ text: 'Hello there.' }),
}
/** How many of them a silent upstream has sent when it falls silent: the last one has text. */
const BEFORE_SILENCE: Readonly<Record<Dialect, number>> = { chat: 2, messages: 4, responses: 5, gemini: 1 }

interface Client {
  readonly keepAlive: string
  /** The beginning of the keep-alives after the first event, where they are other ones. */
  readonly between?: string
  readonly path: (model: string) => string
  readonly body: (model: string) => object
  /** The dialect in which an upstream's stream is passed on unchanged; undefined if it is always converted. */
  readonly native?: Dialect
  readonly contentType: string
  /** The last event, as an object. */
  readonly last: (text: string) => Record<string, any> // eslint-disable-line
}

const MESSAGES = [{ role: 'user', content: 'hi' }]
const COMMENT = ': keep-alive\n\n'
const dataOfLast = (text: string): Record<string, unknown> =>
  JSON.parse(text.slice(text.lastIndexOf('data: ') + 'data: '.length))
const EVENTS = { contentType: 'text/event-stream', last: dataOfLast }
const CONTENTS = { contents: [{ parts: [{ text: 'hi' }] }] }

const CLIENTS: Readonly<Record<string, Client>> = {
  chat: {
    ...EVENTS,
    keepAlive: COMMENT,
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: MESSAGES, stream: true, stream_options: { include_usage: true } }),
    native: 'chat',
  },
  completions: {
    ...EVENTS,
    keepAlive: COMMENT,
    path: () => '/v1/completions',
    body: (model) => ({ model, prompt: 'hi', stream: true }),
  },
  messages: {
    ...EVENTS,
    keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
    path: () => '/v1/messages',
    body: (model) => ({ model, messages: MESSAGES, max_tokens: 100, stream: true }),
    native: 'messages',
  },
  responses: {
    ...EVENTS,
    keepAlive: COMMENT,
    // Other events of this type have a number before the response.
    between: 'event: response.in_progress\ndata: {"type":"response.in_progress","response":{"id":"',
    path: () => '/v1/responses',
    body: (model) => ({ model, input: 'hi', stream: true }),
    native: 'responses',
  },
  gemini: {
    ...EVENTS,
    keepAlive: ': keep-alive\r\n\r\n',
    path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: () => CONTENTS,
    native: 'gemini',
  },
  'gemini array': {
    keepAlive: ' ',
    contentType: 'application/json',
    last: (text) => (JSON.parse(text) as Record<string, unknown>[]).at(-1) ?? {},
    path: (model) => `/v1beta/models/${model}:streamGenerateContent`,
    body: () => CONTENTS,
  },
}
const NAMES = Object.keys(CLIENTS)
const DIALECTS = Object.keys(FRAMES) as Dialect[]
/** Each client with each dialect of an upstream that can serve it. */
const PAIRS = NAMES.flatMap((name) =>
  DIALECTS.filter((dialect) => name !== 'completions' || dialect !== 'chat').map(
    (dialect) => [name, dialect] as const,
  ),
)

/** A model for each client, whose first channel fails. */
const TWO = NAMES.map((_, index) => `two-${index}`)

/** The bytes at which an upstream cuts the event after the first text: by day those at both ends, and some between. */
const CUTS_OF = (dialect: Dialect): readonly number[] => {
  const { length } = FRAMES[dialect][BEFORE_SILENCE[dialect]] ?? ''
  return Array.from({ length }, (_, at) => at).filter(
    (at) => at < 8 || at > length - 4 || at % byTier(11, 1) === 0,
  )
}
/** A model for each of them. */
const CUT = DIALECTS.flatMap((dialect) => CUTS_OF(dialect).map((at) => `${dialect}-${at}`))
const dialectOfCut = (model: string): Dialect => model.split('-')[0] as Dialect

const EARLY = 'src/features/early-stream/early-stream.ts'
/** A gateway that looks at its streams every 20 ms, and regards one as silent after 60 ms. */
const copy = await patchedProgram([
  { file: EARLY, text: 'KEEP_ALIVE_MS = 15_000', by: 'KEEP_ALIVE_MS = 60' },
  ...[EARLY, 'src/call/attempts.ts'].map((file) => ({
    file,
    text: 'this.#tick(performance.now()), 1_000)',
    by: 'this.#tick(performance.now()), 20)',
  })),
])
let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  fixture = await startFixture(
    (upstream) => ({
      options: {
        early_stream: '60ms',
        retries: 1,
        cache: {},
        hold_wait: '0',
        drain_timeout: '200ms',
      },
      models: {
        ...priced([...DIALECTS, ...TWO, ...CUT, 'bad', 'dear', 'guarded']),
        dear: { price: { input: 1_000_000, output: 1_000_000 } },
      },
      channels: [
        ...DIALECTS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
        ...TWO.map((name) =>
          channel(`${name}-first`, upstream.baseUrl(`${name}-a`), { models: [name], priority: 1 }),
        ),
        channel('two-second', upstream.baseUrl('two-b'), { models: TWO }),
        ...CUT.map((name) => channel(name, upstream.baseUrl(name), { protocol: dialectOfCut(name) })),
        channel('bad', upstream.baseUrl('bad')),
        channel('dear', upstream.baseUrl('dear')),
        channel('guarded', upstream.baseUrl('guarded')),
      ],
      guards: [
        {
          name: 'asked',
          do: 'block',
          where: ['output'],
          models: ['guarded'],
          match: { webhook: { url: services.url } },
          timeout: '60s',
        },
      ],
      users: [
        ROOT,
        user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1, unlimited_quota: false })]),
        ADMIN_USER,
      ],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
  copy.discard()
})

function open(name: string, model: string, headers: Record<string, string> = {}): Promise<LiveResponse> {
  const { path, body } = CLIENTS[name] as Client
  return fixture.live('ann', body(model), { path: path(model), headers })
}

const twice = (name: string): string => (CLIENTS[name]?.keepAlive ?? '').repeat(2)
/** What a client gets during a silence after the first event. */
const between = (name: string): string => CLIENTS[name]?.between ?? twice(name)

/** A stream without the keep-alives at its beginning and after events. */
function withoutKeepAlives(name: string, text: string): string {
  // A space in a text of the array would remain in it.
  if (name === 'gemini array') return JSON.stringify(JSON.parse(text))
  const { keepAlive = '', between: begin } = CLIENTS[name] ?? {}
  const form =
    begin === undefined ? keepAlive : `${keepAlive}|${begin.replaceAll(/[.{]/g, '[$&]')}[^\\n]*\\n\\n`
  return text.replaceAll(new RegExp(`(^|\\n\\n|\\r\\n\\r\\n)(?:${form})+`, 'g'), '$1')
}

/** Such a stream without what differs from call to call. */
function comparable(name: string, text: string): string {
  return upstreamNamed(withoutKeepAlives(name, text))
    .replace(/"(?:created|created_at|completed_at)":\d+/g, '"created":0')
    .replace(/[0-9a-f]{32,}/g, 'ID')
}

function scripted(dialect: Dialect, more: object = {}): Behaviour {
  return { kind: 'stream', frames: FRAMES[dialect], ending: 'no done', ...more }
}

const rowOf = async (headers: LiveResponse['headers']): Promise<UsageRow> => {
  const id = headers['x-request-id'] ?? headers['request-id']
  const [row] = await vi.waitFor(async () => {
    const rows = databaseOf(fixture.gateway.dataDir)
      .usage()
      .filter((one) => one.id === id)
    if (rows.length === 0) throw new Error('the call is not settled yet')
    return rows
  }, 60_000)
  return row as UsageRow
}

describe.each(PAIRS)('a client of %s, from a channel of %s', (name, dialect) => {
  test('a client gets a head and keep-alives while the upstream is silent, and then the same stream', async () => {
    const { contentType } = CLIENTS[name] as Client
    fixture.upstream.script(dialect, scripted(dialect))
    const plain = await (await open(name, dialect)).end()
    const { promise, resolve } = Promise.withResolvers<void>()
    fixture.upstream.script(dialect, scripted(dialect, { after: promise }))
    const live = await open(name, dialect)
    expect([live.status, live.headers['content-type']]).toEqual([200, contentType])
    await live.until(twice(name))
    resolve()
    const { text, headers } = await live.end()
    expect(comparable(name, text)).toBe(comparable(name, plain.text))
    const counted = ({ input_tokens, output_tokens, quota, reason }: UsageRow): unknown[] => [
      input_tokens,
      output_tokens,
      quota,
      reason,
    ]
    expect(counted(await rowOf(headers))).toEqual(counted(await rowOf(plain.headers)))
  })

  test('keep-alives stand between two events while the upstream is silent in the middle', async () => {
    fixture.upstream.script(dialect, scripted(dialect))
    const plain = await (await open(name, dialect)).end()
    const { promise, resolve } = Promise.withResolvers<void>()
    const [before, after] = [
      FRAMES[dialect].slice(0, BEFORE_SILENCE[dialect]),
      FRAMES[dialect].slice(BEFORE_SILENCE[dialect]),
    ]
    fixture.upstream.script(
      dialect,
      scripted(dialect, { frames: before, rest: { after: promise, frames: after } }),
    )
    const live = await open(name, dialect)
    await live.until('Hel')
    await live.until(between(name))
    resolve()
    expect(comparable(name, (await live.end()).text)).toBe(comparable(name, plain.text))
  })
})

test.each(DIALECTS)(
  'two keep-alives never stand inside an event, wherever an upstream of %s pauses in it',
  async (dialect) => {
    const [before, event = '', ...after] = FRAMES[dialect]
      .slice(BEFORE_SILENCE[dialect] - 1)
      .with(0, FRAMES[dialect].slice(0, BEFORE_SILENCE[dialect]).join(''))
    const clients = NAMES.filter(
      (name) => name === dialect || (dialect === 'gemini' && name === 'gemini array'),
    )
    for (const name of clients) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const streams = CUTS_OF(dialect).map(async (at) => {
        const model = `${dialect}-${at}`
        const frames = [before + event.slice(0, at)]
        const rest = { after: promise, frames: [event.slice(at), ...after] }
        fixture.upstream.script(model, { kind: 'stream', frames, rest, ending: 'no done' })
        return open(name, model)
      })
      const lives = await Promise.all(streams)
      await Promise.all(lives.map((live) => live.until(between(name))))
      resolve()
      const expected = comparable(
        name,
        name === dialect ? FRAMES[dialect].join('') : ((await lives[0]?.end())?.text ?? ''),
      )
      for (const live of lives) expect(comparable(name, (await live.end()).text)).toBe(expected)
    }
  },
)

test('no keep-alive stands inside a large event that is passed on while it arrives', async () => {
  const [large, small] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const event = contentFrame('x'.repeat(200_000))
  fixture.upstream.script(
    'chat-0',
    scripted('chat', {
      frames: [event.slice(0, 150_000)],
      rest: { after: large.promise, frames: [event.slice(150_000), ...CHAT_FRAMES.slice(3)] },
    }),
  )
  fixture.upstream.script('chat-1', scripted('chat', { after: small.promise }))
  const live = await open('chat', 'chat-0')
  await live.until('xxx')
  const clock = await open('chat', 'chat-1')
  await clock.until(twice('chat'))
  large.resolve()
  expect(withoutKeepAlives('chat', (await live.end()).text)).toBe(event + CHAT_FRAMES.slice(3).join(''))
  small.resolve()
  await clock.end()
})

test.each(NAMES)('another channel goes on behind the early head, for a client of %s', async (name) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const model = TWO[NAMES.indexOf(name)] as string
  fixture.upstream.script(`${model}-a`, {
    kind: 'status',
    status: 500,
    body: errorBody('broken'),
    after: promise,
  })
  fixture.upstream.script('two-b', scripted('chat'))
  const live = await open(name, model)
  await live.until(twice(name))
  resolve()
  const { text, headers } = await live.end()
  expect(text).toContain('Hel')
  expect(text).not.toContain('broken')
  expect(await rowOf(headers)).toMatchObject({ channel: 'two-second', reason: 'complete', output_tokens: 5 })
})

const WORDS = 'The picture is too large.'
/** The error in the last event of a stream, in each dialect of a client. */
const IN_LAST_EVENT: Readonly<Record<string, object>> = {
  chat: { error: { code: 'too_large', message: WORDS, type: 'invalid_request_error' } },
  completions: { error: { code: 'too_large', message: WORDS, type: 'invalid_request_error' } },
  messages: { type: 'error', error: { type: 'invalid_request_error', message: WORDS, code: 'too_large' } },
  responses: {
    type: 'response.failed',
    sequence_number: 2,
    response: { status: 'failed', error: { code: 'invalid_prompt', message: WORDS } },
  },
  gemini: { error: { code: 400, message: WORDS, status: 'INVALID_ARGUMENT' } },
  'gemini array': { error: { code: 400, message: WORDS, status: 'INVALID_ARGUMENT' } },
}

test.each(NAMES)(
  'an error behind the early head is an event with its code and words, for a client of %s',
  async (name) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const body = errorBody(WORDS, 'invalid_request_error', 'too_large')
    fixture.upstream.script('bad', { kind: 'status', status: 400, body, after: promise })
    const live = await open(name, 'bad')
    await live.until(twice(name))
    resolve()
    const { text, status, broken } = await live.end()
    expect([status, broken]).toEqual([200, false])
    expect(CLIENTS[name]?.last(text)).toMatchObject(IN_LAST_EVENT[name] ?? {})
    if (name !== 'gemini array') expect(text).toMatch(/(?:\n\n|\r\n\r\n)$/)
  },
)

test('an error of the upstream is written on one line behind the early head, whatever its spacing', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const body = `${JSON.stringify(error, null, 2)}\n`
  fixture.upstream.script('messages', { kind: 'status', status: 529, body, after: promise })
  const live = await open('messages', 'messages')
  await live.until(twice('messages'))
  resolve()
  expect(dataOfLast((await live.end()).text)).toEqual(error)
})

test('the row of such a call states the error, and the status 200 that the client got', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('bad', { kind: 'status', status: 400, body: errorBody(WORDS), after: promise })
  const live = await open('chat', 'bad')
  await live.until(COMMENT)
  resolve()
  const { headers } = await live.end()
  // A refusal does not wait for its row in the log.
  await rowOf(headers)
  const found = await manage<Record<string, unknown>>(
    fixture.gateway.url,
    ADMIN,
    `GET /api/log/${String(headers['x-request-id'])}`,
  )
  expect(found.data).toMatchObject({
    error_status: 200,
    cause: 'provider_refused',
    error: { message: WORDS },
  })
})

test('a client that leaves while it waits is charged as one that left without an early head', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('chat', scripted('chat', { after: promise }))
  const live = await open('chat', 'chat')
  await live.until(twice('chat'))
  live.abort()
  await vi.waitFor(() => expect(fixture.upstream.only('chat').endedAt).toBeDefined(), 60_000)
  resolve()
  const row = await rowOf(live.headers)
  expect(row).toMatchObject({ reason: 'client_gone', output_tokens: 0, first_byte_ms: null })
  expect(row.quota).toBeGreaterThan(0)
})

test.each([
  ['an unknown model', 'ann', 'unknown', 503],
  ['too little quota', 'poor', 'dear', 403],
] as const)(
  'a call that is refused before its dispatch keeps its status: %s',
  async (_, key, model, status) => {
    const answer = await fixture.chat(key, { model, messages: MESSAGES, stream: true })
    expect(answer.status).toBe(status)
  },
)

test('headers that are known only later are left out of the early head', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const body = { ...CLIENTS['chat']?.body('messages'), frequency_penalty: 1 }
  fixture.upstream.script('messages', wholeMessage([{ text: 'Hello there.' }]))
  const whole = await fixture.chat('ann', { ...body, stream: false, stream_options: undefined })
  expect(whole.headers).toHaveProperty('x-gateway-dropped')
  fixture.upstream.script('messages', scripted('messages', { after: promise }))
  const live = await fixture.live('ann', body)
  resolve()
  expect((await live.end()).headers).not.toHaveProperty('x-gateway-dropped')
  expect(live.headers).toMatchObject({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
})

test('a whole answer waits for its upstream without an early head', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('bad', { kind: 'status', status: 400, body: errorBody(WORDS), after: promise })
  fixture.upstream.script('chat', scripted('chat', { after: promise }))
  const whole = fixture.chat('ann', { model: 'bad', messages: MESSAGES })
  const clock = await open('chat', 'chat')
  await clock.until(twice('chat'))
  resolve()
  expect((await whole).status).toBe(400)
  await clock.end()
})

test('a client of HTTP/1.0 gets the early head and keep-alives until the connection is closed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('chat', scripted('chat', { after: promise }))
  const body = JSON.stringify(CLIENTS['chat']?.body('chat'))
  const head = `POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer sk-ann\r\ncontent-length: ${body.length}`
  const connection = rawConnection(Number(new URL(fixture.gateway.url).port), `${head}\r\n\r\n${body}`)
  await connection.until(twice('chat'))
  resolve()
  const [, received] = (await connection.closed()).split('\r\n\r\n')
  expect(received?.replaceAll(COMMENT, '')).toBe(FRAMES.chat.join(''))
})

const KEY = { 'idempotency-key': 'early' }

test('the answer that is kept for an idempotency key has no keep-alives', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('chat', scripted('chat', { after: promise }))
  const live = await open('chat', 'chat', KEY)
  await live.until(twice('chat'))
  const second = await open('chat', 'chat', KEY)
  await second.until(twice('chat'))
  resolve()
  for (const waiting of [live, second])
    expect((await waiting.end()).text.replaceAll(COMMENT, '')).toBe(FRAMES.chat.join(''))
  const replayed = await (await open('chat', 'chat', KEY)).end()
  expect(replayed.headers['idempotency-replayed']).toBe('true')
  expect(replayed.text).toBe(FRAMES.chat.join(''))
})

test('a refusal that is kept for an idempotency key is an event behind the early head, and later a status', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const headers = { 'idempotency-key': 'refused' }
  fixture.upstream.script('bad', { kind: 'status', status: 400, body: errorBody(WORDS), after: promise })
  const live = await open('chat', 'bad', headers)
  await live.until(COMMENT)
  resolve()
  expect(dataOfLast((await live.end()).text)).toMatchObject({ error: { message: WORDS } })
  const replayed = await (await open('chat', 'bad', headers)).end()
  expect([replayed.status, replayed.json().error.message]).toEqual([400, WORDS])
})

test('equal calls that share an answer all get keep-alives, and a cached answer has none', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.upstream.script('chat', scripted('chat', { after: promise }))
  const cached = { 'cache-control': 'max-age=60' }
  const waiting = await Promise.all([open('chat', 'chat', cached), open('chat', 'chat', cached)])
  for (const live of waiting) await live.until(twice('chat'))
  expect(fixture.upstream.received('chat')).toHaveLength(1)
  resolve()
  for (const live of waiting)
    expect((await live.end()).text.replaceAll(COMMENT, '')).toBe(FRAMES.chat.join(''))
  const hit = await (await open('chat', 'chat', cached)).end()
  expect([hit.headers['x-gateway-cache'], hit.text]).toEqual(['hit', FRAMES.chat.join('')])
})

test('a client gets keep-alives while the service of a guard checks its stream', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  services.after = promise
  fixture.upstream.script('guarded', scripted('chat'))
  const live = await open('messages', 'guarded')
  await live.until(twice('messages'))
  expect(live.text()).not.toContain('Hel')
  resolve()
  expect((await live.end()).text).toContain('Hel')
})

/** What the official clients make of a stream: its text. */
const OFFICIAL: Readonly<Record<string, (fetching: typeof fetch, model: string) => Promise<string>>> = {
  async chat(fetching, model) {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, fetch: fetching })
    const stream = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'hi' }] })
    return (await stream.finalChatCompletion()).choices[0]?.message.content ?? ''
  },
  async responses(fetching, model) {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, fetch: fetching })
    const { output_text, error } = await client.responses.stream({ model, input: 'hi' }).finalResponse()
    if (error) throw new Error(error.message)
    return output_text
  },
  async messages(fetching, model) {
    const client = new Anthropic({ apiKey: 'sk-ann', baseURL: fixture.gateway.url, fetch: fetching })
    const stream = client.messages.stream({
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    })
    return stream.finalText()
  },
  async gemini(fetching, model) {
    const client = new GoogleGenAI({
      apiKey: 'sk-ann',
      httpOptions: { baseUrl: fixture.gateway.url, fetch: fetching },
    })
    let text = ''
    for await (const chunk of await client.models.generateContentStream({ model, contents: 'hi' }))
      text += chunk.text ?? ''
    return text
  },
}

describe.each(Object.keys(OFFICIAL))('the official client of %s', (name) => {
  test.each(DIALECTS)(
    'reads a stream with keep-alives before it and in its middle, from %s',
    async (dialect) => {
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const at = BEFORE_SILENCE[dialect]
      fixture.upstream.script(
        dialect,
        scripted(dialect, {
          after: begun.promise,
          frames: FRAMES[dialect].slice(0, at),
          rest: { after: ended.promise, frames: FRAMES[dialect].slice(at) },
        }),
      )
      const fetching = watchedFetch((read) => {
        if (read.includes(twice(name))) begun.resolve()
        if (read.slice(read.indexOf('Hel')).includes(between(name)) && read.includes('Hel')) ended.resolve()
      })
      expect(await OFFICIAL[name]?.(fetching, dialect)).toBe('Hello there.')
    },
  )

  test('reports an error behind the early head', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    fixture.upstream.script('bad', { kind: 'status', status: 400, body: errorBody(WORDS), after: promise })
    const fetching = watchedFetch((read) => read.includes(twice(name)) && resolve())
    await expect(OFFICIAL[name]?.(fetching, 'bad')).rejects.toThrow(WORDS)
  })
})

// The last test of this file, because it stops the gateway.
test('a gateway that stops ends a stream behind its early head with an error, and the call costs nothing', async () => {
  fixture.upstream.script('chat', { kind: 'silence' })
  const live = await fixture.live('ann', askStream('chat'))
  await live.until(': keep-alive')
  const stopped = fixture.gateway.stop()
  const { text, broken } = await live.end()
  expect(await stopped).toBe(0)
  expect(broken).toBe(false)
  expect(text).toMatch(/data: \{"error":\{.*"code":"/)
  expect(databaseOf(fixture.gateway.dataDir).usageOf(String(live.headers['x-request-id']))).toMatchObject({
    quota: 0,
  })
})
