import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Behaviour, errorBody, usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

const KEYS = ['upstream-key-one', 'upstream-key-two', 'upstream-key-three']
const FOUR_KEYS = [...KEYS, 'upstream-key-four']
const LANES = ['left', 'leave-unreported', 'chain', 'spaced', 'options'] as const
const CACHED: Behaviour = { kind: 'whole', usage: usageText(5_000, 5, 4_000) }
/** Answers by which a channel or a key is left. */
const LEFT: Readonly<Record<string, Behaviour>> = {
  429: { kind: 'status', status: 429, body: errorBody('slow down') },
  500: { kind: 'status', status: 500, body: errorBody('broken') },
  503: { kind: 'status', status: 503, body: errorBody('down') },
  401: { kind: 'status', status: 401, body: errorBody('unknown key') },
  'no answer': { kind: 'drop' },
}

const modelOf = (answer: string): string => `two-${answer.replace(' ', '-')}`
const pairOf = (answer: string): string[] => [1, 2].map((number) => `${modelOf(answer)}-${number}`)

let fixture: Fixture
const configured = (upstream: Fixture['upstream'], affinity: object = {}): Configuration => ({
  options: { keep_responses: '1h', affinity },
  models: priced([...LANES, ...Object.keys(LEFT).map(modelOf), 'usable', 'lone']),
  channels: [
    ...LANES.map((lane) =>
      channel(lane, upstream.baseUrl(lane), { keys: KEYS, allow: ['prompt_cache_key'] }),
    ),
    ...Object.keys(LEFT)
      .flatMap(pairOf)
      .map((lane) =>
        channel(lane, upstream.baseUrl(lane), { models: [lane.replace(/-\d$/, '')], keys: KEYS }),
      ),
    channel('lone', upstream.baseUrl('lone')),
    channel('usable', upstream.baseUrl('usable'), { keys: FOUR_KEYS }),
  ],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})
beforeAll(async () => {
  fixture = await startFixture((upstream) => configured(upstream))
})
afterAll(() => fixture?.close())

function ask(model: string, session: string, more: object = {}): Promise<FullResponse> {
  const body = { model, messages: [{ role: 'user', content: 'hello' }], ...more }
  return call(fixture.gateway.url, body, { key: 'ann', headers: { 'x-session-id': session } })
}

const keyOf = ({ headers }: Received): string => (headers.authorization ?? '').replace('Bearer ', '')
const keysSeen = (lane: string): string[] => fixture.upstream.received(lane).map(keyOf)

describe.each(Object.keys(LEFT))('a channel that answers %s', (answer) => {
  test('a session leaves a channel that fails at once, and stays with the channel that answered instead', async () => {
    const { upstream } = fixture
    const model = modelOf(answer)
    const lanes = pairOf(answer)
    for (const lane of lanes) upstream.script(lane, CACHED)
    const count = (lane: string): number => upstream.received(lane).length
    await ask(model, 'a')
    await ask(model, 'a')
    const bound = lanes.find((lane) => count(lane) === 2) ?? ''
    const other = lanes.find((lane) => lane !== bound) ?? ''
    upstream.script(bound, LEFT[answer] as Behaviour)
    const moved = await ask(model, 'a')
    expect(moved.status, moved.text).toBe(200)
    expect(count(other)).toBe(1)
    upstream.script(bound, CACHED)
    const before = count(bound)
    for (let turn = 0; turn < 5; turn++) await ask(model, 'a')
    expect([count(bound) - before, count(other)]).toEqual([0, 6])
  })
})

describe('what binds a session', () => {
  test('a stream that its client left binds its session to the key if the provider had reported a cache', async () => {
    const frame = (usage: string): string =>
      `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":${usage}}\n\n`
    // Two minutes of them: however late the client leaves on a busy machine, the stream is under way.
    const frames = [frame(usageText(5_000, 1, 4_000)), ...Array<string>(24_000).fill(frame('null'))]
    fixture.upstream.script('left', { kind: 'stream', frames, paceMs: 5 }, CACHED)
    await leave('left', 'left')
    await ask('left', 'left')
    const [first, second] = keysSeen('left')
    expect(second).toBe(first)
  })

  test('a stream that its client left binds its session to the key if its prompt has 1,024 tokens', async () => {
    fixture.upstream.script('leave-unreported', { kind: 'stream', events: Infinity, paceMs: 5 }, CACHED)
    const content = 'cache '.repeat(3_000)
    await leave('leave-unreported', 'left', { messages: [{ role: 'user', content }] })
    await ask('leave-unreported', 'left')
    const [first, second] = keysSeen('leave-unreported')
    expect(second).toBe(first)
  })

  test('calls that continue a stored response one after the other all use the upstream key of the first', async () => {
    fixture.upstream.script('chain', CACHED)
    let previous: string | undefined
    for (let turn = 0; turn < 4; turn++) {
      const body = {
        model: 'chain',
        input: `turn ${turn} `.repeat(turn === 0 ? 600 : 1),
        ...(previous && { previous_response_id: previous }),
      }
      const answer = await call(fixture.gateway.url, body, { key: 'ann', path: '/v1/responses' })
      expect(answer.status, answer.text).toBe(200)
      previous = (JSON.parse(answer.text) as { id: string }).id
    }
    expect(new Set(keysSeen('chain')).size).toBe(1)
  })

  async function leave(model: string, session: string, more: object = {}): Promise<void> {
    const body = { model, stream: true, messages: [{ role: 'user', content: 'hello' }], ...more }
    const live = await open(fixture.gateway.url, body, { key: 'ann', headers: { 'x-session-id': session } })
    await live.until('data: ')
    live.abort()
    const gone = new RegExp(`"model":"${model}".*"reason":"client_gone"`)
    await vi.waitFor(() => expect(fixture.gateway.logs()).toMatch(gone), 60_000)
  }
})

test('calls of a session are not counted in the session metrics if only one upstream key can serve the model', async () => {
  const counted = async (): Promise<string[]> => {
    const text = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
    return text.match(/^sluice_session_calls_total.*$/gm) ?? []
  }
  const before = await counted()
  fixture.upstream.script('lone', CACHED)
  for (let turn = 0; turn < 3; turn++) expect((await ask('lone', 'a')).status).toBe(200)
  expect(await counted()).toEqual(before)
})

test("a session uses one key for all its calls where only two of a channel's four keys are not refused", async () => {
  fixture.upstream.decide('usable', (request) =>
    FOUR_KEYS.indexOf(keyOf(request)) < 2
      ? { kind: 'status', status: 401, body: errorBody('unknown key') }
      : { kind: 'whole', usage: usageText(5_000, 5) },
  )
  for (let turn = 0; turn < 4; turn++) await ask('usable', `first ${turn}`)
  fixture.upstream.forget('usable')
  for (let turn = 0; turn < 24; turn++) await ask('usable', 'a')
  // Of two keys each may have all calls.
  expect(new Set(keysSeen('usable')).size).toBe(1)
})

test('adding a prompt_cache_key to a request keeps the white space inside and after the JSON object', async () => {
  const text = '{"model":"spaced","messages":[{"role":"user","content":"hi"}] }\r\n \n'
  await call(fixture.gateway.url, Buffer.from(text), { key: 'ann', headers: { 'x-session-id': 'a' } })
  const sent = fixture.upstream.only('spaced').text
  expect(sent).toMatch(/ ,"prompt_cache_key":"[0-9a-f]{32}"\}\r\n \n$/)
  expect(sent.replace(/,"prompt_cache_key":"[0-9a-f]{32}"/, '')).toBe(text)
})

describe('options of affinity', () => {
  const OFF = { enabled: false }
  test.each([
    ['enabled: false', OFF, { keys: 3, hasCacheKey: false }],
    ['cache_key: false', { cache_key: false }, { keys: 1, hasCacheKey: false }],
    ['the default', {}, { keys: 1, hasCacheKey: true }],
  ])(
    'the affinity options decide how many keys a session uses and whether it sends a cache key: %s',
    async (_, affinity, expected) => {
      const { gateway, upstream } = fixture
      await gateway.apply(configured(upstream, affinity))
      upstream.script('options', CACHED)
      for (let turn = 0; turn < 3; turn++) await ask('options', JSON.stringify(affinity))
      const received = upstream.received('options')
      expect({
        keys: new Set(received.map(keyOf)).size,
        hasCacheKey: received.every(({ text }) => text.includes('"prompt_cache_key"')),
      }).toEqual(expected)
    },
  )

  test('beyond options.affinity.most sessions, the least recently used one is forgotten', async () => {
    const { gateway, upstream } = fixture
    await gateway.apply(configured(upstream, { most: 2 }))
    upstream.script('options', CACHED)
    const metrics = async (): Promise<[made: number, kept: number]> => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      const [made = 0, kept = 0] = ['new', 'kept'].map((result) =>
        Number(new RegExp(`session_calls_total\\{result="${result}"\\} (\\d+)`).exec(text)?.[1] ?? 0),
      )
      return [made, kept]
    }
    const before = await metrics()
    const counted = async (): Promise<[made: number, kept: number]> => {
      const now = await metrics()
      return [now[0] - before[0], now[1] - before[1]]
    }
    // Its cache lasts a day, and it is the oldest all the same.
    expect((await ask('options', 'oldest', { prompt_cache_retention: '24h' })).status).toBe(200)
    await ask('options', 'second')
    await ask('options', 'third')
    expect(await counted()).toEqual([3, 0])
    await ask('options', 'second')
    expect(await counted()).toEqual([3, 1])
    await ask('options', 'oldest')
    expect(await counted()).toEqual([4, 1])
  })
})
