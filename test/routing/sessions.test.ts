import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const KEYS = ['upstream-key-one', 'upstream-key-two', 'upstream-key-three']
const LANES = [
  'keys',
  'moves',
  'small',
  'users',
  'misses',
  'off',
  'cached',
  'named',
  'plain',
  'digest',
] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...LANES, 'two', 'ranks', 'native', 'allowed']),
    channels: [
      ...LANES.map((lane) => channel(lane, upstream.baseUrl(lane), { keys: KEYS })),
      ...['one', 'other'].map((name) =>
        channel(`two-${name}`, upstream.baseUrl(`two-${name}`), { models: ['two'], keys: KEYS }),
      ),
      channel('ranks-high', upstream.baseUrl('ranks-high'), { models: ['ranks'], priority: 5 }),
      channel('ranks-low', upstream.baseUrl('ranks-low'), { models: ['ranks'], priority: 0 }),
      channel('allowed', upstream.baseUrl('allowed'), { allow: ['session', 'prompt_cache_key'] }),
      channel('native', upstream.baseUrl('native'), { protocol: 'messages', keys: KEYS }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  for (const lane of [...LANES, 'two-one', 'two-other', 'ranks-high', 'ranks-low', 'allowed'])
    fixture.upstream.script(lane, { kind: 'whole', usage: usageText(5_000, 5, 4_000) })
})
afterAll(() => fixture?.close())

interface Asked {
  readonly session?: string | undefined
  readonly key?: string
  readonly more?: object
  readonly said?: string
}

function ask(
  model: string,
  { session, key = 'ann', more, said = 'hello' }: Asked = {},
): Promise<FullResponse> {
  const body = { model, messages: [{ role: 'user', content: said }], ...more }
  return call(fixture.gateway.url, body, {
    key,
    headers: session === undefined ? {} : { 'x-session-id': session },
  })
}

const keysSeen = (lane: string): string[] =>
  fixture.upstream.received(lane).map(({ headers }) => (headers.authorization ?? '').replace('Bearer ', ''))

describe('the account of a session', () => {
  test('calls of one session all use the same key, and several sessions use all keys', async () => {
    for (let turn = 0; turn < 4; turn++) for (const session of ['a', 'b', 'c']) await ask('keys', { session })
    const seen = keysSeen('keys')
    for (const at of [0, 1, 2]) {
      const own = seen.filter((_, index) => index % 3 === at)
      expect(new Set(own).size).toBe(1)
    }
    expect(new Set(seen).size).toBe(3)
  })

  test('calls of a session stay with one channel of equal weight', async () => {
    for (let turn = 0; turn < 12; turn++) await ask('two', { session: 'a' })
    const counts = ['two-one', 'two-other'].map((lane) => fixture.upstream.received(lane).length)
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 12])
  })

  test('calls that continue a conversation count as one session, and use one key, if no request names a session', async () => {
    const turns = [{ role: 'user', content: 'what is the weather? '.repeat(200) }]
    for (let turn = 0; turn < 5; turn++) {
      await ask('digest', { more: { messages: turns, temperature: turn / 10 } })
      turns.push({ role: 'assistant', content: `answer ${turn}` }, { role: 'user', content: `go on ${turn}` })
    }
    expect(new Set(keysSeen('digest')).size).toBe(1)
  })

  test('two users who send the same session id have separate sessions, each with its own key', async () => {
    for (let turn = 0; turn < 3; turn++) {
      await ask('users', { session: 'a' })
      await ask('users', { session: 'a', key: 'bob' })
    }
    const seen = keysSeen('users')
    expect(new Set(seen).size).toBe(2)
    expect(new Set(seen.filter((_, index) => index % 2 === 0)).size).toBe(1)
  })

  test('a session leaves a key that answers 429 at once, and stays with the key that answered instead', async () => {
    await ask('moves', { session: 'a' })
    const [first] = keysSeen('moves')
    fixture.upstream.decide('moves', ({ headers }) =>
      headers.authorization === `Bearer ${first}`
        ? { kind: 'status', status: 429, headers: { 'retry-after-ms': '1' }, body: errorBody('slow down') }
        : { kind: 'whole', usage: usageText(5_000, 5, 4_000) },
    )
    const answer = await ask('moves', { session: 'a' })
    expect(answer.status, answer.text).toBe(200)
    const second = keysSeen('moves').at(-1)
    fixture.upstream.script('moves', { kind: 'whole', usage: usageText(5_000, 5, 4_000) })
    for (let turn = 0; turn < 3; turn++) await ask('moves', { session: 'a' })
    expect(second).not.toBe(first)
    expect(keysSeen('moves').slice(-3)).toEqual([second, second, second])
  })

  test('a prompt below 1,024 tokens that is not cached does not bind its session to a key', async () => {
    fixture.upstream.script('small', { kind: 'whole', usage: usageText(1_023, 5) })
    for (let turn = 0; turn < 3; turn++) await ask('small', { session: 'a' })
    expect(new Set(keysSeen('small')).size).toBe(3)
    fixture.upstream.script('small', { kind: 'whole', usage: usageText(1_024, 5) })
    for (let turn = 0; turn < 3; turn++) await ask('small', { session: 'b' })
    expect(new Set(keysSeen('small')).size).toBe(1)
  })

  test('a session whose calls read no cached tokens sends at most twice an equal share of its calls to any upstream key', async () => {
    fixture.upstream.script('misses', { kind: 'whole', usage: usageText(5_000, 5) })
    for (let turn = 0; turn < 60; turn++) await ask('misses', { session: 'a' })
    const counts = KEYS.map((key) => keysSeen('misses').filter((one) => one === key).length)
    expect(Math.max(...counts)).toBeLessThanOrEqual(40)
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test('a session moves back to a channel of higher priority as soon as that channel works again', async () => {
    fixture.upstream.script('ranks-high', { kind: 'status', status: 503, body: errorBody('down') })
    await ask('ranks', { session: 'a' })
    expect(fixture.upstream.received('ranks-low')).toHaveLength(1)
    fixture.upstream.script('ranks-high', { kind: 'whole', usage: usageText(5_000, 5, 4_000) })
    await ask('ranks', { session: 'a' })
    expect(fixture.upstream.received('ranks-low')).toHaveLength(1)
  })

  test('a cache write that an Anthropic messages channel reports binds the session to its upstream key', async () => {
    fixture.upstream.script(
      'native',
      wholeMessage([{ text: 'hi' }], {
        counts: {
          input_tokens: 10,
          output_tokens: 5,
          cache_read_input_tokens: 10,
          cache_creation_input_tokens: 900,
        },
      }),
    )
    const { url } = fixture.gateway
    for (let turn = 0; turn < 4; turn++)
      await call(
        url,
        {
          model: 'native',
          max_tokens: 9,
          metadata: { user_id: 'user_1_account_2_session_3' },
          messages: [{ role: 'user', content: `turn ${turn}` }],
        },
        { key: 'ann', path: '/v1/messages' },
      )
    const seen = fixture.upstream.received('native').map(({ headers }) => headers['x-api-key'])
    expect(seen).toHaveLength(4)
    expect(new Set(seen).size).toBe(1)
  })

  test('a metric counts the calls of sessions that stayed with their key and those that moved', async () => {
    const text = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
    expect(text).toMatch(/^sluice_session_calls_total\{result="kept"\} \d+/m)
    expect(text).toMatch(/^sluice_session_calls_total\{result="moved"\} \d+/m)
  })
})

describe('what a channel is sent of a session', () => {
  const last = (lane: string) => {
    const received = fixture.upstream.received(lane).at(-1)
    if (!received) throw new Error(`nothing arrived at ${lane}`)
    return {
      headers: received.headers,
      body: JSON.parse(received.body.toString()) as Record<string, unknown>,
    }
  }

  test('calls of a named session get one and the same prompt_cache_key where the channel allows that field', async () => {
    await ask('allowed', { session: 'a' })
    const { body } = last('allowed')
    expect(body['prompt_cache_key']).toMatch(/^[0-9a-f]{32}$/)
    await ask('allowed', { session: 'a', said: 'other' })
    expect(last('allowed').body['prompt_cache_key']).toBe(body['prompt_cache_key'])
    await ask('allowed', { session: 'a', key: 'bob' })
    expect(last('allowed').body['prompt_cache_key']).not.toBe(body['prompt_cache_key'])
  })

  test('adding a prompt_cache_key to a request keeps all its other bytes', async () => {
    await ask('allowed', { session: 'bytes' })
    const sent = String(fixture.upstream.received('allowed').at(-1)?.body)
    expect(sent.replace(/,"prompt_cache_key":"[0-9a-f]{32}"\}$/, '}')).toBe(
      JSON.stringify({ model: 'allowed', messages: [{ role: 'user', content: 'hello' }] }),
    )
  })

  test("the client's own prompt_cache_key is forwarded unchanged", async () => {
    await ask('allowed', { session: 'a', more: { prompt_cache_key: 'mine' } })
    expect(last('allowed').body['prompt_cache_key']).toBe('mine')
  })

  test('no prompt_cache_key is added to a call without a named session, or to a channel that does not allow it', async () => {
    await ask('allowed')
    expect(last('allowed').body).not.toHaveProperty('prompt_cache_key')
    await ask('plain', { session: 'a' })
    expect(last('plain').body).not.toHaveProperty('prompt_cache_key')
  })

  test('headers that name a session reach only channels that allow them', async () => {
    await ask('allowed', { session: 'a' })
    expect(last('allowed').headers['x-session-id']).toBe('a')
    await ask('plain', { session: 'a' })
    expect(last('plain').headers).not.toHaveProperty('x-session-id')
  })
})
