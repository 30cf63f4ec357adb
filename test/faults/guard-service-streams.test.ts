import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { call, type FullResponse, streamedContent } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  plainConfiguration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini } from '../fixtures/gemini-behaviour.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

const CODE = 'code-4711-x'
const PATIENT = { timeout: 60_000, interval: 20 }
const MODELS = ['m', 'claude', 'native', 'gem'] as const

let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  const webhook = { webhook: { url: services.url } }
  const presidio = { presidio: { url: services.url } }
  const guards = [
    { name: 'mask', do: 'redact', where: ['output'], match: webhook, timeout: '60s' },
    { name: 'stop', do: 'block', where: ['output'], match: webhook, timeout: '60s' },
    { name: 'pass', do: 'redact', where: ['output'], match: webhook, timeout: '300ms', on_failure: 'pass' },
    { name: 'windowed', do: 'redact', where: ['output'], match: presidio, timeout: '60s', most_delay: 400 },
    { name: 'cut', do: 'block', where: ['output'], match: webhook, timeout: '60s', most_delay: 400 },
    { name: 'cached', do: 'redact', where: ['output'], match: webhook, timeout: '300ms', on_failure: 'pass' },
  ].map((guard) => ({ ...guard, tokens: [`token-${guard.name}`] }))
  fixture = await startFixture((upstream) => ({
    options: { keep_responses: '1h' },
    models: priced(MODELS),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
      channel('gem', upstream.baseUrl('gem'), { protocol: 'gemini' }),
    ],
    guards: [
      ...guards,
      // Two services one after the other, and a guard of texts before them.
      { name: 'first', do: 'redact', where: ['input'], match: { words: ['plum'] }, tokens: ['token-three'] },
      {
        name: 'second',
        do: 'replace',
        where: ['input'],
        match: presidio,
        timeout: '60s',
        tokens: ['token-three'],
      },
      {
        name: 'third',
        do: 'block',
        where: ['input'],
        match: webhook,
        timeout: '60s',
        tokens: ['token-three'],
      },
    ],
    users: [
      ROOT,
      user(2, 'ann', [...guards.map(({ name }) => token(name)), token('three'), token('free')], {
        access_token: 'the-access-token-of-ann',
      }),
      ADMIN_USER,
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})
beforeEach(() => {
  services.asked.splice(0)
  services.trouble = undefined
  services.after = undefined
})

async function rowOf({ headers }: Pick<FullResponse, 'headers'>): Promise<Record<string, unknown>> {
  const query = `GET /api/log/${String(headers['x-request-id'])}` as const
  return (await manage<Record<string, unknown>>(fixture.gateway.url, ADMIN, query)).data
}

const stream = (...frames: string[]) =>
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'no done' })

test("a guard's service checks each choice of a stream separately", async () => {
  const piece = (index: number, content: string): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta: { content }, finish_reason: null }] })}\n\n`
  const end = (index: number): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta: {}, finish_reason: 'stop' }] })}\n\n`
  stream(
    piece(0, 'a code-47'),
    piece(1, 'b code-1'),
    piece(0, '11-x!'),
    piece(1, 'y-x'),
    end(0),
    end(1),
    DONE_FRAME,
  )
  const { text } = await fixture.chat('mask', askStream('m', { n: 2 }))
  const said = ['', '']
  for (const line of text.split('\n').filter((one) => one.startsWith('data: {')))
    for (const { index, delta } of JSON.parse(line.slice(6)).choices) said[index] += delta.content ?? ''
  expect(said).toEqual(['a <code>!', 'b code-1y-x'])
  expect(services.asked.map(({ body }) => body.texts)).toEqual([['a code-4711-x!', 'b code-1y-x']])
})

test.each(['gem', 'm'])(
  "a guard's service checks a Gemini stream that is one JSON array (channel %s)",
  async (to) => {
    if (to === 'gem') fixture.upstream.script('gem', streamedGemini({ text: `It is ${CODE}, yes.` }))
    else
      stream(
        roleFrame(),
        contentFrame('It is code-'),
        contentFrame('4711-x, yes.'),
        finishFrame(),
        DONE_FRAME,
      )
    const answer = await call(
      fixture.gateway.url,
      JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }),
      { path: `/v1beta/models/${to}:streamGenerateContent`, headers: { 'x-goog-api-key': 'sk-mask' } },
    )
    const chunks = JSON.parse(answer.text) as {
      candidates: { content?: { parts?: { text?: string }[] } }[]
    }[]
    const text = chunks.flatMap(
      ({ candidates }) => candidates[0]?.content?.parts?.map((part) => part.text ?? '') ?? [],
    )
    expect(text.join('')).toBe('It is <code>, yes.')
  },
)

test("a guard's service checks the first event of a stream that begins with a byte order mark", async () => {
  stream(`\ufeff${contentFrame(`It is ${CODE}, yes.`)}`, finishFrame(), DONE_FRAME)
  const { text } = await fixture.chat('mask', askStream('m'))
  expect(streamedContent(text)).toBe('It is <code>, yes.')
  expect(text).not.toContain(CODE)
})

describe('stored responses under a guard with a service', () => {
  const respond = (key: string, body: object): Promise<FullResponse> =>
    call(fixture.gateway.url, JSON.stringify(body), { path: '/v1/responses', key })
  const read = (key: string, id: string): Promise<FullResponse> =>
    call(fixture.gateway.url, '', { path: `/v1/responses/${id}`, key, method: 'GET' })

  test.each([false, true])(
    "a response that the gateway stores has the text that the guard's service left (stream: %s)",
    async (isStream) => {
      if (isStream) fixture.upstream.script('m', { kind: 'stream', word: `${CODE} ` })
      else fixture.upstream.script('claude', wholeMessage([{ text: `it is ${CODE}` }]))
      const made = await respond('mask', { model: isStream ? 'm' : 'claude', input: 'hi', stream: isStream })
      expect(made.text).not.toContain(CODE)
      const id = /"id":"(resp_[^"]+)"/.exec(made.text)?.[1] ?? ''
      const kept = await read('free', id)
      expect(kept.text).toContain('<code>')
      expect(kept.text).not.toContain(CODE)
    },
  )

  test.each([false, true])(
    "a response that a guard's service blocks is not stored (stream: %s)",
    async (isStream) => {
      if (isStream) stream(roleFrame(), contentFrame(`it is ${CODE}`), finishFrame(), DONE_FRAME)
      else fixture.upstream.script('claude', wholeMessage([{ text: `it is ${CODE}` }]))
      const made = await respond('stop', { model: isStream ? 'm' : 'claude', input: 'hi', stream: isStream })
      expect(made.text).toContain('content_filter')
      const id = /"id":"(resp_[^"]+)"/.exec(made.text)?.[1] ?? ''
      expect((await read('free', id)).status).toBe(404)
    },
  )

  test('reading a stored response applies the guards of the key that reads it', async () => {
    fixture.upstream.script('claude', wholeMessage([{ text: `it is ${CODE}` }]))
    const { id } = JSON.parse((await respond('free', { model: 'claude', input: 'hi' })).text) as {
      id: string
    }
    expect((await read('free', id)).text).toContain(CODE)
    const masked = await read('mask', id)
    expect(masked.text).toContain('it is <code>')
    expect(masked.headers['x-gateway-guards']).toBe('mask=redacted;count=1')
    const stopped = await read('stop', id)
    expect(stopped.text).toContain('"status":"incomplete"')
    expect(stopped.text).not.toContain(CODE)
  })

  test('a response that its provider stores is checked when it is read, whole or as a stream', async () => {
    fixture.upstream.script('native', wholeResponse({ text: `it is ${CODE}` }))
    const { id } = JSON.parse((await respond('free', { model: 'native', input: 'hi' })).text) as {
      id: string
    }
    expect((await read('mask', id)).text).toContain('it is <code>')
    fixture.upstream.script('native', streamedResponse({ text: `it is ${CODE}` }))
    const again = await read('mask', `${id}?stream=true`)
    expect(again.text).toContain('it is <code>')
    expect(again.text).not.toContain(CODE)
  })
})

test("a cached answer is checked by the guard's service once, and is not cached if the service fails", async () => {
  const match = { webhook: { url: services.url } }
  const cached = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    options: { cache: { ttl: '10m', scope: 'token' } },
    guards: [{ name: 'mask', do: 'redact', where: ['output'], match, timeout: '60s', on_failure: 'pass' }],
  }))
  onTestFinished(() => cached.close())
  cached.upstream.script('m', { kind: 'whole', content: `it is ${CODE}` })
  const first = await cached.chat('ann', ask('m'))
  const second = await cached.chat('ann', ask('m'))
  expect([first, second].map(({ headers }) => headers['x-gateway-cache'])).toEqual(['miss', 'hit'])
  expect(second.text).toContain('it is <code>')
  expect(services.asked).toHaveLength(1)
  services.trouble = 'status 500'
  const other = ask('m', { messages: [{ role: 'user', content: 'another question' }] })
  expect((await cached.chat('ann', other)).text).toContain(CODE)
  services.trouble = undefined
  const later = await cached.chat('ann', other)
  expect([later.headers['x-gateway-cache'], later.text.includes(CODE)]).toEqual(['miss', false])
})

test('local guards run first, then services that change texts, then services that only judge them', async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'ok' })
  const content = `a plum and ${CODE}`
  const answer = await fixture.chat('three', ask('m', { messages: [{ role: 'user', content }] }))
  expect(answer.status).toBe(200)
  const texts = services.asked.map(({ path, body }) => [path, body.text ?? body.texts])
  expect(texts).toEqual([
    ['/analyze', `a [REDACTED] and ${CODE}`],
    [
      '/beta/litellm_basic_guardrail_api',
      [expect.stringMatching(/^a \[REDACTED\] and \[\[CODE_[0-9a-f]{8}\]\]$/)],
    ],
  ])
})

describe('a stream in windows', () => {
  const filler = (length: number): string =>
    Array.from({ length }, (_, index) => String.fromCharCode(97 + (index % 26))).join('')

  test('a stream that a guard checks in windows ends before the window that the guard blocks', async () => {
    const before = filler(600)
    const text = `${before}${CODE}${filler(600)}`
    const pieces = text.match(/.{1,20}/gs) ?? []
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [roleFrame(), ...pieces.map(contentFrame)],
      ending: 'stall',
    })
    const answer = await fixture.chat('cut', askStream('m'))
    const said = streamedContent(answer.text)
    expect(answer.text).toContain('"finish_reason":"content_filter"')
    expect(said.length).toBeGreaterThan(200)
    expect(before.startsWith(said)).toBe(true)
    const row = await rowOf(answer)
    expect(row).toMatchObject({ note: 'guard_blocked', guards: 'cut=blocked;count=1' })
    expect(row['quota']).toBeGreaterThan(0)
  })

  test('a stream that a guard checks in windows has the same redactions, into whatever pieces the upstream divides it', async () => {
    const text = Array.from({ length: 40 }, (_, n) => `${filler(n * 3)} ${CODE} `).join('')
    for (const size of [1, 7, 50, 5_000]) {
      const pieces = text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []
      stream(roleFrame(), ...pieces.map(contentFrame), finishFrame(), usageFrame(usageText(1, 1)), DONE_FRAME)
      const answer = await fixture.chat('windowed', askStream('m'))
      expect(streamedContent(answer.text), `pieces of ${size}`).toBe(text.replaceAll(CODE, '[REDACTED]'))
    }
  })
})

describe('a call that is stopped while a service is asked', () => {
  test.each([false, true])(
    "a user can stop a call whose answer waits for a guard's service; the answer is not sent, but charged (stream: %s)",
    async (isStream) => {
      services.trouble = 'silent'
      fixture.upstream.script(
        'm',
        isStream
          ? { kind: 'stream', usage: usageText(100, 50), usageIn: 'always' }
          : { kind: 'whole', content: 'fine', usage: usageText(100, 50) },
      )
      const asking = fixture.chat('stop', isStream ? askStream('m') : ask('m'))
      await vi.waitFor(() => expect(services.asked).toHaveLength(1), PATIENT)
      const ann = { id: 2, accessToken: 'the-access-token-of-ann' }
      const { data } = await manage<{ items: { id: string }[] }>(
        fixture.gateway.url,
        ann,
        'GET /api/running/self',
      )
      const id = data.items[0]?.id ?? ''
      expect((await manage(fixture.gateway.url, ann, `POST /api/running/${id}/stop`)).status).toBe(200)
      const answer = await asking
      await vi.waitFor(() => expect(services.open()).toBe(0), PATIENT)
      expect(answer.text).not.toContain('fine')
      // The refusal of a stopped call does not wait for its row in the log.
      const path = `GET /api/log/${id}` as const
      const quota = async () =>
        (await manage<{ quota: number } | undefined>(fixture.gateway.url, ADMIN, path)).data?.quota
      await expect.poll(quota).toBeGreaterThan(0)
    },
  )
})

test.each([
  ['stop', 'content_filter', 0],
  ['pass', 'stop', 66],
] as const)(
  "an answer too large to be held for a guard's service counts as a failure of the guard, whose on_failure decides: %s",
  async (key, finish, mib) => {
    const piece = 'x'.repeat(2 ** 20)
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [
        roleFrame(),
        ...Array.from({ length: 66 }, () => contentFrame(piece)),
        finishFrame(),
        DONE_FRAME,
      ],
      ending: 'no done',
    })
    const answer = await fixture.chat(key, askStream('m'))
    expect(answer.text).toContain(`"finish_reason":"${finish}"`)
    expect(Math.round(answer.text.length / 2 ** 20)).toBe(mib)
    expect((await rowOf(answer))['guards']).toMatch(
      new RegExp(`^${key}=failed_${key === 'stop' ? 'blocked' : 'passed'};`),
    )
  },
)
