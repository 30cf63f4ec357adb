import { type Simulator, startSimulator } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'

const MINUTE_S = 60
const INSTANT = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }
const MODELS = {
  messages: ['claude-sonnet-4-6', 'claude-sonnet-4-5'],
  chat: ['gpt-5.6', 'gpt-5.1'],
  responses: ['gpt-5.6-terra', 'gpt-5.6-sol'],
}
const NAMES = Object.values(MODELS).flat()

/** The time of the providers, in milliseconds. The gateway's is moved by `clock`. */
let time = Date.now()
let movedS = 0
let simulator: Simulator
let clock: MovedClock
let gateway: RunningGateway
const ends: (() => unknown)[] = []

/** How the channels are set up: another channel, or another key of the same one. */
interface Place {
  readonly name?: string
  readonly key?: string
  readonly asks?: boolean
}

const configured = ({ name = 'one', key = 'k1', asks = false }: Place = {}): Configuration => ({
  models: priced(NAMES),
  channels: (['chat', 'messages', 'responses'] as const).map((protocol) =>
    channel(`${protocol}-${name}`, simulator[`${protocol}Url`], {
      protocol,
      keys: [key],
      models: MODELS[protocol],
      cache_diagnostics: asks,
      allow: ['speed'],
    }),
  ),
  users: [ROOT, user(2, 'ann', [token('ann')]), user(4, 'bob', [token('bob')]), ADMIN_USER],
})

beforeAll(async () => {
  simulator = await startSimulator(INSTANT, { models: MODELS, now: () => time })
  ends.push(() => simulator.close())
  clock = dateClock((end) => ends.push(end))
  gateway = await startGateway({ config: configured(), env: clock.env })
  ends.push(() => gateway.discard())
})
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

/** Lets time pass for the providers, and for the gateway. */
function pass(seconds: number, gatewaySeconds = seconds): void {
  time += seconds * 1000
  movedS += gatewaySeconds
  clock.move(movedS)
}

/** A text of so many tokens. */
const long = (tokens: number, seed = 'a'): string => `${seed}bc `.repeat(tokens)
const EPHEMERAL = { type: 'ephemeral' }
const TOOL = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } }
const said = (text: string, cache_control: object = EPHEMERAL) => ({
  role: 'user',
  content: [{ type: 'text', text, cache_control }],
})
const ANSWER = { role: 'assistant', content: 'yes' }

/** A request of Claude Code: a billing line with a nonce, a marked system prompt, and a marked message. */
const claude = (session: string, more: object = {}): object => ({
  model: 'claude-sonnet-4-6',
  max_tokens: 16,
  tools: [TOOL],
  system: [{ type: 'text', text: `You are ${session}. ${long(1_500)}`, cache_control: EPHEMERAL }],
  messages: [said('hello')],
  ...more,
})

const responses = (session: string, more: object = {}): object => ({
  model: 'gpt-5.6-terra',
  max_output_tokens: 16,
  instructions: `You are ${session}.`,
  tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }],
  input: [{ role: 'user', content: long(1_500) }],
  ...more,
})

const chat = (session: string, more: object = {}): object => ({
  model: 'gpt-5.6',
  max_completion_tokens: 16,
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
  messages: [
    { role: 'system', content: `You are ${session}.` },
    { role: 'user', content: long(1_500) },
  ],
  ...more,
})

const PATHS = { claude: '/v1/messages', responses: '/v1/responses', chat: '/v1/chat/completions' }
const REQUESTS = { claude, responses, chat }
type Client = keyof typeof PATHS

interface Row {
  readonly request_id: string
  readonly session: string
  readonly cache_break: string
  readonly cached_tokens: number
  readonly cache_verdict: string
}

async function rowOf(id: string): Promise<Row | undefined> {
  const { data } = await manage<{ items: Row[] }>(gateway.url, ADMIN, `GET /api/log/?request_id=${id}`)
  return data.items[0]
}

/** Makes a call, and returns its row. */
async function ask(client: Client, session: string, more: object = {}, key = 'ann'): Promise<Row> {
  const answer = await call(gateway.url, REQUESTS[client](session, more), {
    key,
    path: PATHS[client],
    headers: { 'x-session-id': session },
  })
  expect(answer.status, answer.text).toBe(200)
  const row = await rowOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error('the call has no row')
  return row
}

let sessions = 0
const newSession = (): string => `session-${++sessions}`

describe('why a session missed its cache', () => {
  test.each<[Client, string, object]>([
    ['claude', 'model_changed', { model: 'claude-sonnet-4-5' }],
    ['claude', 'model_changed', { speed: 'fast' }],
    ['claude', 'tools_changed', { tools: [{ ...TOOL, description: 'Looks around' }] }],
    ['claude', 'tools_changed', { tools: [] }],
    ['claude', 'system_changed', { system: [{ type: 'text', text: `Be brief. ${long(1_500)}` }] }],
    ['claude', 'messages_changed', { messages: [said('good day')], system: undefined }],
    ['responses', 'model_changed', { model: 'gpt-5.6-sol' }],
    ['responses', 'tools_changed', { tools: [] }],
    ['responses', 'system_changed', { instructions: 'Be brief.' }],
    ['responses', 'messages_changed', { input: [{ role: 'user', content: long(1_500, 'x') }] }],
    ['chat', 'tools_changed', { tools: undefined }],
    [
      'chat',
      'system_changed',
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: long(1_500) },
        ],
      },
    ],
    [
      'chat',
      'messages_changed',
      {
        messages: [
          { role: 'system', content: 'You are session.' },
          { role: 'user', content: long(1_500, 'x') },
        ],
      },
    ],
  ])('a cache break of a changed %s request has the reason %s', async (client, reason, changed) => {
    const session = newSession()
    const base = baseOf(client, reason)
    expect(await ask(client, session, base)).toMatchObject({ cache_break: '', cached_tokens: 0 })
    // The cache works: the same again is read.
    const again = await ask(client, session, base)
    expect(again.cache_break).toBe('')
    expect(again.cached_tokens).toBeGreaterThan(1_000)
    expect(await ask(client, session, { ...base, ...changed })).toMatchObject({ cache_break: reason })
  })
})

/** What the first request has, so that only one part differs from it. */
function baseOf(client: Client, reason: string): object {
  if (reason !== 'messages_changed') return {}
  if (client === 'claude') return { messages: [said(long(1_500))], system: undefined }
  return client === 'chat'
    ? {
        messages: [
          { role: 'system', content: 'You are session.' },
          { role: 'user', content: long(1_500) },
        ],
      }
    : {}
}

describe('which messages are compared', () => {
  const turns = (text: string): object[] => [said(text), ANSWER, said('on')]

  test('added messages are not a reason for a cache break, but a removed system prompt is, even if messages changed as well', async () => {
    const session = newSession()
    const messages = turns(long(1_500))
    await ask('claude', session, { messages })
    pass(6 * MINUTE_S, MINUTE_S)
    expect(
      (await ask('claude', session, { messages: [...messages, ANSWER, said('more')] })).cache_break,
    ).toBe('provider')
    const [, ...others] = messages
    const other = [said(long(1_500, 'x')), ...others, ANSWER, said('more')]
    expect((await ask('claude', session, { messages: other, system: undefined })).cache_break).toBe(
      'system_changed',
    )
  })

  test('a cache break of a conversation that was shortened has the reason messages_changed', async () => {
    const session = newSession()
    const base = { system: undefined }
    await ask('claude', session, { ...base, messages: turns(long(1_500)) })
    expect((await ask('claude', session, { ...base, messages: [said('on')] })).cache_break).toBe(
      'messages_changed',
    )
  })

  test('changed messages are not a reason for a cache break where the provider may truncate the conversation', async () => {
    const session = newSession()
    const base = { truncation: 'auto' }
    await ask('responses', session, base)
    const input = [{ role: 'user', content: long(1_500, 'x') }]
    expect((await ask('responses', session, { ...base, input })).cache_break).toBe('provider')
  })
})

describe('where a session moved', () => {
  test('a cache break after a move to another channel or key has this move as its reason, whatever changed in the request', async () => {
    const changed = { model: 'claude-sonnet-4-5', tools: [] }
    for (const [place, reason] of [
      [{ name: 'two' }, 'channel_moved'],
      [{ name: 'two', key: 'k2' }, 'channel_moved'],
      [{ key: 'k2' }, 'key_moved'],
    ] as const) {
      const session = newSession()
      await gateway.apply(configured())
      await ask('claude', session)
      expect((await ask('claude', session)).cached_tokens).toBeGreaterThan(1_000)
      await gateway.apply(configured(place))
      expect((await ask('claude', session, changed)).cache_break).toBe(reason)
    }
    await gateway.apply(configured())
  })
})

describe('what time does to a cache', () => {
  test('a cache break has the reason lifetime_passed where most of the cached prompt has expired since the previous call', async () => {
    const session = newSession()
    const more = {
      system: [
        { type: 'text', text: `For an hour. ${long(1_100)}`, cache_control: { ...EPHEMERAL, ttl: '1h' } },
      ],
      messages: [said(long(4_000))],
    }
    await ask('claude', session, more)
    pass(6 * MINUTE_S)
    const row = await ask('claude', session, more)
    expect(row.cached_tokens).toBeGreaterThan(1_000)
    expect(row.cache_break).toBe('lifetime_passed')
  })

  test('tokens that a call reads from a prompt cache count as cached with the longest lifetime when a later cache break is explained', async () => {
    const session = newSession()
    const ttl = { ...EPHEMERAL, ttl: '1h' }
    const system = [{ type: 'text', text: `${session} ${long(1_500)}`, cache_control: ttl }]
    await ask('claude', session, { system, messages: [said(long(1_000))] })
    const later = { system, messages: [{ role: 'user', content: 'on' }] }
    expect((await ask('claude', session, later)).cache_break).toBe('')
    // The provider forgets it; what lives for five minutes was not read.
    pass(61 * MINUTE_S, 6 * MINUTE_S)
    expect((await ask('claude', session, later)).cache_break).toBe('provider')
  })

  test('a cache miss after the longest cache lifetime of its session is not a cache break', async () => {
    const session = newSession()
    await ask('claude', session)
    pass(5 * MINUTE_S + 1)
    expect(await ask('claude', session)).toMatchObject({ cache_break: '', cached_tokens: 0 })
  })

  test('each use of a prompt cache restarts its lifetime, so that a later miss is still a cache break', async () => {
    const session = newSession()
    for (let turn = 0; turn < 3; turn++) {
      expect((await ask('claude', session)).cache_break).toBe('')
      pass(4 * MINUTE_S)
    }
    expect((await ask('claude', session, { tools: [] })).cache_break).toBe('tools_changed')
  })

  test('a miss of a prompt that the provider retains for 24 hours is a cache break within that time', async () => {
    const retained = { model: 'gpt-5.1', prompt_cache_retention: '24h' }
    for (const [more, reason] of [
      [retained, 'provider'],
      [{ model: 'gpt-5.1' }, ''],
    ] as const) {
      const session = newSession()
      await ask('chat', session, more)
      expect((await ask('chat', session, more)).cached_tokens).toBeGreaterThan(1_000)
      pass(25 * 60 * MINUTE_S, 60 * MINUTE_S)
      expect((await ask('chat', session, more)).cache_break).toBe(reason)
    }
  })

  test('a cache break has the reason provider where nothing that the gateway sees has changed', async () => {
    const session = newSession()
    await ask('claude', session)
    pass(6 * MINUTE_S, MINUTE_S)
    expect(await ask('claude', session)).toMatchObject({ cache_break: 'provider', cached_tokens: 0 })
  })

  test('a changed x-anthropic-billing-header line is not a system_changed reason for a cache break', async () => {
    const session = newSession()
    const billed = (nonce: string) => ({
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cch=${nonce};` },
        { type: 'text', text: `You are ${session}. ${long(1_500)}`, cache_control: EPHEMERAL },
      ],
    })
    await ask('claude', session, billed('1'))
    pass(6 * MINUTE_S, MINUTE_S)
    expect((await ask('claude', session, billed('2'))).cache_break).toBe('provider')
  })

  test('a cache_control that is added or left out is not a tools_changed or system_changed reason for a cache break', async () => {
    const session = newSession()
    const block = { type: 'text', text: `You are ${session}. ${long(1_500)}` }
    await ask('claude', session, { system: [{ ...block, cache_control: EPHEMERAL }] })
    pass(6 * MINUTE_S, MINUTE_S)
    const moved = { tools: [{ ...TOOL, cache_control: EPHEMERAL }], system: [block] }
    expect((await ask('claude', session, moved)).cache_break).toBe('provider')
  })
})

describe('what is no break', () => {
  test('a conversation that continues, with its cache_control moved to the new end, is not a cache break', async () => {
    const session = newSession()
    const messages: object[] = [said('hello')]
    for (let turn = 0; turn < 4; turn++) {
      const row = await ask('claude', session, { messages })
      expect(row.cache_break).toBe('')
      expect(row.cached_tokens > 0).toBe(turn > 0)
      messages.splice(
        -1,
        1,
        { role: 'user', content: [{ type: 'text', text: `turn ${turn}` }] },
        ANSWER,
        said('on'),
      )
      messages.splice(-3, 1, { role: 'user', content: [{ type: 'text', text: turn === 0 ? 'hello' : 'on' }] })
    }
  })

  test('a call that reads at least half of the cached prompt is not a cache break', async () => {
    const session = newSession()
    const system = [{ type: 'text', text: long(1_500), cache_control: EPHEMERAL }]
    await ask('claude', session, { system, messages: [said(long(1_000))] })
    expect((await ask('claude', session, { system, messages: [said(long(1_000, 'x'))] })).cache_break).toBe(
      '',
    )
    await ask('claude', session, { system, messages: [said(long(2_000))] })
    expect((await ask('claude', session, { system, messages: [said(long(2_000, 'y'))] })).cache_break).toBe(
      'messages_changed',
    )
  })

  test('the first call of a user is not a cache break, though another user has a session of the same name', async () => {
    const session = newSession()
    const ann = await ask('claude', session)
    const bob = await ask('claude', session, { tools: [], model: 'claude-sonnet-4-5' }, 'bob')
    expect(bob.cache_break).toBe('')
    expect(bob.session).not.toBe(ann.session)
  })

  test('a changed prompt that is too short to be cached is not a cache break', async () => {
    const session = newSession()
    for (const text of ['hello', 'good day'])
      expect(
        (await ask('claude', session, { system: 'Be brief.', messages: [said(text)] })).cache_break,
      ).toBe('')
  })
})

describe('what the provider says', () => {
  const verdictOf = ({ cache_verdict: text }: Row): unknown => (text === '' ? null : JSON.parse(text))
  // The provider keeps prompts longer than a session: none is used twice.
  const unlike = (): string => `${newSession()} ${long(1_500)}`
  const LONG = () => ({ system: undefined, messages: [said(unlike())] })

  beforeAll(() => gateway.apply(configured({ asks: true })))
  afterAll(() => gateway.apply(configured()))

  test.each<[string, () => object, () => object]>([
    ['model_changed', () => ({}), () => ({ model: 'claude-sonnet-4-5' })],
    ['tools_changed', () => ({}), () => ({ tools: [] })],
    ['system_changed', () => ({}), () => ({ system: [{ type: 'text', text: unlike() }] })],
    ['messages_changed', LONG, LONG],
  ])(
    'the gateway and a messages provider give the same reason for a cache break, whole and streamed: %s',
    async (reason, base, changed) => {
      for (const stream of [false, true]) {
        const session = newSession()
        const before = { ...base(), stream }
        const first = await ask('claude', session, before)
        expect(first.cache_verdict).toBe('')
        const second = await ask('claude', session, { ...before, ...changed() })
        expect(second.cache_break).toBe(reason)
        expect(verdictOf(second)).toMatchObject({ cache_miss_reason: { type: reason } })
      }
    },
  )

  test.each<[string, object, string]>([
    ['model_changed', { model: 'gpt-5.6-sol' }, 'model_changed'],
    ['tools_changed', { tools: [] }, 'tools_changed'],
    ['messages_changed', { input: [{ role: 'user', content: long(1_500, 'x') }] }, 'input_changed'],
  ])(
    'the gateway and a responses provider give the same reason for a cache break: %s',
    async (reason, changed, said) => {
      for (const stream of [false, true]) {
        const session = newSession()
        await ask('responses', session, { stream })
        expect(verdictOf(await ask('responses', session, { stream }))).toEqual({ type: 'cache_hit' })
        const broken = await ask('responses', session, {
          ...changed,
          stream,
          prompt_cache_options: { ttl: '30m' },
        })
        expect(broken.cache_break).toBe(reason)
        expect(verdictOf(broken)).toMatchObject({ type: 'cache_miss', reason: said })
      }
    },
  )

  test("the usage row of a converted request has the reason of its cache break, and the provider's verdict on the cache miss", async () => {
    for (const stream of [false, true]) {
      const session = newSession()
      const text = { type: 'text', text: unlike(), cache_control: EPHEMERAL }
      const messages = [
        { role: 'system', content: [text] },
        { role: 'user', content: 'hello' },
      ]
      const base = { model: 'claude-sonnet-4-6', messages, stream }
      await ask('chat', session, base)
      const broken = await ask('chat', session, { ...base, tools: undefined })
      expect(broken.cache_break).toBe('tools_changed')
      expect(verdictOf(broken)).toMatchObject({ cache_miss_reason: { type: 'tools_changed' } })
    }
  })

  test('a conversation that continues without a cache miss has no verdict of its provider in its usage row', async () => {
    const session = newSession()
    await ask('claude', session)
    const row = await ask('claude', session, {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }, ANSWER, said('on')],
    })
    expect(row).toMatchObject({ cache_break: '', cache_verdict: '' })
  })
})

describe('what is kept of breaks', () => {
  test('cache breaks are shown in usage rows, sessions, usage sums and a metric, and the rows keep them over a restart', async () => {
    const session = newSession()
    await ask('claude', session)
    await ask('claude', session, { tools: [] })
    const broken = await ask('claude', session, { tools: [TOOL], model: 'claude-sonnet-4-5' })
    const { text } = await call(gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(text).toMatch(/^sluice_cache_breaks_total\{reason="tools_changed"\} \d+$/m)
    await gateway.stop()
    await gateway.restart(configured())
    expect((await rowOf(broken.request_id))?.cache_break).toBe('model_changed')
    const get = async <Data>(path: `/${string}`): Promise<Data> =>
      (await manage<Data>(gateway.url, ADMIN, `GET ${path}`)).data
    const { items } = await get<{ items: { breaks: object }[] }>(`/api/sessions?session=${broken.session}`)
    expect(items.map(({ breaks }) => breaks)).toEqual([{ tools_changed: 1, model_changed: 1 }])
    const { breaks } = await get<{ breaks: Record<string, number> }>('/api/usage')
    expect(breaks['tools_changed']).toBeGreaterThan(0)
    // What calls are compared with is in memory alone.
    expect((await ask('claude', session, { tools: [] })).cache_break).toBe('')
  })
})
