import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiUsage, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { converseReply } from '../generators/converse-answers.ts'
import { responsesUsage, wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Tokens that the upstream reports for the prompt of the first call: fewer than a quarter of its bytes. */
const REPORTED = 10_000
const LONG = 'The quick brown fox jumps over the lazy dog. '.repeat(1500)
const OUTPUT = 10

/** A turn of a conversation, as every dialect can express it. */
interface Said {
  readonly by: 'user' | 'model'
  readonly text: string
}

const MORE: readonly Said[] = [
  { by: 'model', text: 'hello there' },
  { by: 'user', text: 'and now?' },
]

/** How a client writes a conversation, by the member and the path of its dialect. */
interface Writing {
  readonly path: (model: string) => string
  readonly body: (model: string, said: readonly Said[], more?: object) => object
}

const role = (by: Said['by'], model: string): string => (by === 'user' ? 'user' : model)

const CLIENTS: Readonly<Record<'chat' | 'messages' | 'responses' | 'gemini', Writing>> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (model, said, more) => ({
      model,
      max_tokens: OUTPUT,
      messages: said.map(({ by, text }) => ({ role: role(by, 'assistant'), content: text })),
      ...more,
    }),
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, said, more) => ({
      model,
      max_tokens: OUTPUT,
      messages: said.map(({ by, text }) => ({ role: role(by, 'assistant'), content: text })),
      ...more,
    }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, said, more) => ({
      model,
      max_output_tokens: OUTPUT,
      input: said.map(({ by, text }) => ({
        type: 'message',
        role: role(by, 'assistant'),
        content: [{ type: by === 'user' ? 'input_text' : 'output_text', text }],
      })),
      ...more,
    }),
  },
  gemini: {
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: (_model, said, more) => ({
      generationConfig: { maxOutputTokens: OUTPUT },
      contents: said.map(({ by, text }) => ({ role: role(by, 'model'), parts: [{ text }] })),
      ...more,
    }),
  },
}

const UPSTREAMS = ['chat', 'messages', 'responses', 'gemini', 'converse'] as const
type Upstream = (typeof UPSTREAMS)[number]

function answerOf(protocol: Upstream, input: number): Behaviour {
  switch (protocol) {
    case 'chat':
      return { kind: 'whole', usage: usageText(input, 5) }
    case 'messages':
      return wholeMessage([{ text: 'hello there' }], { counts: { input_tokens: input, output_tokens: 5 } })
    case 'responses':
      return wholeResponse({ text: 'hello there', usage: responsesUsage(input, 5) })
    case 'gemini':
      return wholeGemini({ text: 'hello there', usage: geminiUsage(input, 5) })
    case 'converse':
      return {
        kind: 'whole',
        body: converseReply({
          segments: [{ kind: 'text', pieces: ['hello there'], cited: [], hasLogprobs: false }],
          stop: 'end',
          usage: { input, read: 0, written: 0, output: 5 },
          quirks: {
            lineEnd: '\n',
            noise: false,
            roleChunk: false,
            usageIn: 'nowhere',
            interleaves: false,
            hasDone: true,
          },
        }),
      }
  }
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { remember_prompts: '1h', hold_wait: 0, retries: 3 },
    models: priced([
      'm-chat',
      'm-messages',
      'm-responses',
      'm-gemini',
      'm-converse',
      'two',
      'three',
      'n',
      'free',
    ]),
    channels: [
      ...UPSTREAMS.map((protocol) =>
        channel(protocol, upstream.baseUrl(protocol), {
          protocol,
          models: [`m-${protocol}`],
          ...(protocol === 'converse' && {
            provider: 'bedrock',
            region: 'eu-central-1',
            base_url: upstream.baseUrl(protocol).replace(/\/v1$/, ''),
          }),
        }),
      ),
      channel('first', upstream.baseUrl('first'), { models: ['two'], priority: 2 }),
      channel('second', upstream.baseUrl('second'), { models: ['two'], priority: 1 }),
      channel('resting', upstream.baseUrl('resting'), { models: ['three'], priority: 2 }),
      channel('awake', upstream.baseUrl('awake'), { models: ['three'], priority: 1 }),
      channel('edited', upstream.baseUrl('edited'), { models: ['n'], system_prompt: 'S'.repeat(5000) }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('poor', { remain_quota: 1 }),
        token('careful', { remain_quota: 64 * 40_000 }),
      ]),
      user(3, 'bob', [token('bob'), token('bobpoor', { remain_quota: 1 })]),
      user(5, 'sibling', [token('sibling', { remain_quota: 100_000 })]),
      user(4, 'tight', [token('tight', { remain_quota: 75_000 })]),
    ],
  }))
})
afterAll(() => fixture?.close())

/** A conversation that no earlier test had. */
let conversations = 0
const fresh = (): readonly Said[] => [{ by: 'user', text: `${++conversations} ${LONG}` }]

async function send(
  client: keyof typeof CLIENTS,
  model: string,
  said: readonly Said[],
  key: string,
  more?: object,
): Promise<FullResponse> {
  const { path, body } = CLIENTS[client]
  return call(fixture.gateway.url, body(model, said, more), {
    key,
    path: path(model),
  })
}

/** The prompt tokens that a call would hold, by the refusal of a key that can pay nothing. */
async function held(
  client: keyof typeof CLIENTS,
  model: string,
  said: readonly Said[],
  key = 'poor',
  more?: object,
): Promise<number> {
  const answer = await send(client, model, said, key, more)
  expect(answer.status, answer.text).toBe(403)
  const [, needed] = /"needed":\s*"?(\d+)/.exec(answer.text) ?? []
  return Number(needed) - 4 * OUTPUT
}

async function had(
  client: keyof typeof CLIENTS,
  protocol: Upstream,
  said: readonly Said[],
  key = 'ann',
  more?: object,
): Promise<void> {
  fixture.upstream.script(protocol, answerOf(protocol, REPORTED))
  const answer = await send(client, `m-${protocol}`, said, key, more)
  expect(answer.status, answer.text).toBe(200)
}

const bytes = Buffer.byteLength(LONG)

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('a client of %s', (client) => {
  test.each(UPSTREAMS)(
    'a call that continues a conversation at %s holds the tokens reported for it and a bound for the appended text',
    async (protocol) => {
      const said = fresh()
      expect(await held(client, `m-${protocol}`, said)).toBeGreaterThan(bytes)
      await had(client, protocol, said)
      const more = await held(client, `m-${protocol}`, [...said, ...MORE])
      expect(more).toBeGreaterThan(REPORTED)
      expect(more).toBeLessThan(REPORTED + 800)
    },
  )
})

describe('a conversation', () => {
  const next = async (
    change: (said: readonly Said[]) => readonly Said[],
    key = 'poor',
    more?: object,
  ): Promise<number> => {
    const said = fresh()
    await had('messages', 'messages', said, 'ann', { system: 'Be kind.' })
    return held('messages', 'm-messages', [...change(said), ...MORE], key, { system: 'Be kind.', ...more })
  }
  test('a call whose conversation has a changed beginning holds one prompt token for each byte', async () => {
    expect(await next(([first]) => [{ by: 'user', text: `${first?.text}.` }])).toBeGreaterThan(bytes)
  })
  test('a call whose conversation has another system prompt than before holds one prompt token for each byte', async () => {
    expect(await next((said) => said, 'poor', { system: 'Be cruel.' })).toBeGreaterThan(bytes)
  })
  test('a call that continues a conversation of another user holds one prompt token for each byte', async () => {
    expect(await next((said) => said, 'bobpoor')).toBeGreaterThan(bytes)
  })
  test('a call with another temperature and cache_control is recognised as continuing its conversation', async () => {
    const more = {
      temperature: 0.5,
      system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
    }
    // Each token may be written to the cache, at 1.25 times the price.
    expect(await next((said) => said, 'poor', more)).toBeLessThan(1.25 * (REPORTED + 800))
  })
  test('a conversation for which its provider reported impossibly few tokens holds one prompt token for each byte', async () => {
    const said = fresh()
    fixture.upstream.script('chat', answerOf('chat', 50))
    await send('chat', 'm-chat', said, 'ann')
    expect(await held('chat', 'm-chat', [...said, ...MORE])).toBeGreaterThan(bytes)
  })
  test('a conversation whose provider reported no usage holds one prompt token for each byte', async () => {
    const said = fresh()
    fixture.upstream.script('chat', { kind: 'whole', usage: null })
    await send('chat', 'm-chat', said, 'ann')
    expect(await held('chat', 'm-chat', [...said, ...MORE])).toBeGreaterThan(bytes)
  })
  test('a picture given by URL is added to the hold of each call that continues its conversation', async () => {
    const picture = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
    const first = { role: 'user', content: [{ type: 'text', text: LONG }, picture] }
    fixture.upstream.script('chat', answerOf('chat', REPORTED))
    await send('chat', 'm-chat', [], 'ann', { messages: [first] })
    const more = await held('chat', 'm-chat', [], 'poor', {
      messages: [first, { role: 'user', content: 'more' }],
    })
    expect(more).toBeGreaterThan(REPORTED + 10_000)
    expect(more).toBeLessThan(REPORTED + 10_800)
  })
  test('a continued conversation holds nothing more for instructions that a channel adds, as the reported tokens include them', async () => {
    const said = fresh()
    fixture.upstream.script('edited', answerOf('chat', REPORTED))
    expect(await held('chat', 'n', said)).toBeGreaterThan(bytes + 5000)
    await send('chat', 'n', said, 'ann')
    expect(await held('chat', 'n', [...said, ...MORE])).toBeLessThan(REPORTED + 800)
  })
})

test('a continued conversation is recognised among many of the same length', async () => {
  for (let i = conversations; i < 100; i++) fresh()
  const all = Array.from({ length: 20 }, fresh)
  for (const said of all) await had('chat', 'chat', said)
  for (const said of all)
    expect(await held('chat', 'm-chat', [...said, ...MORE])).toBeLessThan(REPORTED + 800)
})

test('a prompt of at most 64 KiB is looked up and remembered only for a call whose bound by bytes takes 1/64 of what is left', async () => {
  const said = (name: string): readonly Said[] => [{ by: 'user', text: `${name} ${LONG.slice(0, 40_000)}` }]
  const known = async (): Promise<string | undefined> => {
    const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
    return /sluice_known_prompts_total\{result="none"\} (\d+)/.exec(metrics)?.[1]
  }
  fixture.upstream.script('chat', answerOf('chat', REPORTED))
  const before = await known()
  await send('chat', 'm-chat', said('rich'), 'ann')
  expect(await known()).toBe(before)
  expect(await held('chat', 'm-chat', [...said('rich'), ...MORE])).toBeGreaterThan(40_000)
  // The bound is a token for each byte, each one quota unit: a little more than 40,000 of 64 times as much.
  await send('chat', 'm-chat', said('careful'), 'careful')
  expect(await held('chat', 'm-chat', [...said('careful'), ...MORE])).toBeLessThan(REPORTED + 800)
})

test('a provider that reports more tokens than were held is paid, and a metric counts the call', async () => {
  const said = fresh()
  await had('chat', 'chat', said)
  fixture.upstream.script('chat', answerOf('chat', 3 * REPORTED))
  const answer = await send('chat', 'm-chat', [...said, ...MORE], 'ann')
  expect(answer.status).toBe(200)
  const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
  expect(metrics).toContain('sluice_hold_exceeded_total{model="m-chat",channel="chat"} 1')
  expect(metrics).toMatch(/sluice_known_prompts_total\{result="found"\} \d+/)
  // The next call holds by the later report.
  const more: readonly Said[] = [...said, ...MORE, ...MORE]
  expect(await held('chat', 'm-chat', more)).toBeGreaterThan(3 * REPORTED)
})

describe('a call that goes to another channel', () => {
  const failing: Behaviour = { kind: 'status', status: 500, body: '{}' }
  test('before a continued conversation moves to another channel, its hold is raised to one prompt token for each byte', async () => {
    const said = fresh()
    fixture.upstream.script('first', answerOf('chat', REPORTED))
    await send('chat', 'two', said, 'ann')
    fixture.upstream.script('first', failing)
    fixture.upstream.script('second', answerOf('chat', 4 * REPORTED))
    const answer = await send('chat', 'two', [...said, ...MORE], 'ann')
    expect(answer.status, answer.text).toBe(200)
    const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
    expect(metrics).not.toMatch(/sluice_hold_exceeded_total\{model="two"/)
    // What the second channel reported says nothing about the first.
    expect(await held('chat', 'two', [...said, ...MORE, ...MORE])).toBeLessThan(REPORTED + 800)
  })
  test('a continued conversation does not move to another channel if its quota is too small for one token for each byte', async () => {
    const said = fresh()
    fixture.upstream.script('first', answerOf('chat', REPORTED))
    expect((await send('chat', 'two', said, 'tight')).status).toBe(200)
    fixture.upstream.script('first', failing)
    const before = fixture.upstream.received('second').length
    // What is left is more than the bound at the first channel, and less than the bytes.
    const answer = await send('chat', 'two', [...said, ...MORE], 'tight')
    expect(answer.status).toBe(500)
    expect(fixture.upstream.received('second')).toHaveLength(before)
  })
  test('a call is refused with quota_held if only the hold of another call prevents its larger hold at the next channel', async () => {
    const said = fresh()
    const { upstream } = fixture
    upstream.script('resting', answerOf('chat', REPORTED), {
      kind: 'status',
      status: 429,
      body: '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}',
      headers: { 'retry-after': '60' },
    })
    upstream.script('awake', answerOf('chat', 10), answerOf('chat', 4 * REPORTED))
    expect((await send('chat', 'three', said, 'sibling')).status).toBe(200)
    expect((await send('chat', 'three', fresh(), 'ann')).status).toBe(200)
    const { promise: after, resolve: end } = Promise.withResolvers<void>()
    onTestFinished(() => end())
    upstream.script('chat', { kind: 'whole', usage: usageText(10, 5), after })
    const before = upstream.received('chat').length
    const other = send('chat', 'm-chat', [{ by: 'user', text: 'hi' }], 'sibling', { max_tokens: 15_000 })
    await expect.poll(() => upstream.received('chat').length).toBe(before + 1)
    const refused = await send('chat', 'three', [...said, ...MORE], 'sibling')
    expect(refused.status, refused.text).toBe(429)
    expect(refused.headers).toMatchObject({ 'retry-after': '1' })
    expect(refused.headers['x-should-retry']).toBeUndefined()
    const { error } = JSON.parse(refused.text)
    expect(error).toMatchObject({ code: 'quota_held', spent: REPORTED + 20 })
    expect(error.needed).toBeGreaterThan(error.left)
    expect(upstream.received('awake')).toHaveLength(1)
    end()
    expect((await other).status).toBe(200)
    expect((await send('chat', 'three', [...said, ...MORE], 'sibling')).status).toBe(200)
  })
})

test('with remember_prompts: 0, a continued conversation holds one prompt token for each byte, and is not counted', async () => {
  const own = await startFixture((upstream) => ({
    options: { remember_prompts: 0, hold_wait: 0 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
  }))
  onTestFinished(() => own.close())
  const said = fresh()
  own.upstream.script('m', answerOf('chat', REPORTED))
  expect((await own.chat('ann', CLIENTS.chat.body('m', said))).status).toBe(200)
  const answer = await own.chat('poor', CLIENTS.chat.body('m', [...said, ...MORE]))
  const [, needed] = /"needed":(\d+)/.exec(answer.text) ?? []
  expect(Number(needed)).toBeGreaterThan(bytes)
  const metrics = await (await fetch(`${own.gateway.url}/metrics`)).text()
  expect(metrics).not.toMatch(/^sluice_known_prompts_total\{.*\} [1-9]/m)
})
