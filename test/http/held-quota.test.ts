import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call, send } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOpen, untilOver } from '../fixtures/open-calls.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** At four units a token. */
const MAXIMUM = 100_000
const STEP = 1000
/** The prompt of a short request costs less. */
const PROMPT = 2000
/** One call with the maximum, and not a second one. */
const FOR_ONE = 4 * MAXIMUM + PROMPT
/** Ten tokens of the prompt, and five of the output. */
const COST = 30
const DIALECTS = ['chat', 'messages', 'responses', 'gemini'] as const
const MODELS = ['m', 'o3', 'deepseek-r1', 'gemini-2.5-pro'] as const

let waiting: Fixture
let atOnce: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  const start = (options: object): Promise<Fixture> =>
    startFixture((upstream) => ({
      options: { hold_tokens: STEP, ...options },
      models: priced([...MODELS, 'claude-sonnet-4-5']),
      channels: [
        channel('m', upstream.baseUrl('m'), { models: [...MODELS] }),
        channel('claude', upstream.baseUrl('claude'), {
          models: ['claude-sonnet-4-5'],
          protocol: 'messages',
        }),
      ],
      users: [
        ROOT,
        user(2, 'ann', [token('one', { remain_quota: FOR_ONE }), token('rich')], {
          access_token: ANN.accessToken,
        }),
        user(3, 'bob', [token('bob')], { budget: FOR_ONE, budget_period: 'month' }),
        user(
          4,
          'eve',
          DIALECTS.map((name) => token(name, { remain_quota: FOR_ONE })),
        ),
      ],
    }))
  ;[waiting, atOnce] = await Promise.all([start({ hold_wait: '20s' }), start({ hold_wait: 0 })])
  database = databaseOf(waiting.gateway.dataDir)
})
afterAll(() => Promise.all([waiting?.close(), atOnce?.close()]))
// Tests count calls that are under way: those of the test before must have ended.
beforeEach(() => untilOver(waiting.gateway.url, 0))

/** Begins a call that holds nearly all of a key's quota until `end` is called. */
async function holding(fixture: Fixture, key = 'one', usage = usageText(10, 5)) {
  const { upstream } = fixture
  const { promise: after, resolve: end } = Promise.withResolvers<void>()
  onTestFinished(() => end())
  upstream.script('m', { kind: 'whole', usage, after }, { kind: 'whole', usage: usageText(10, 5) })
  const first = fixture.chat(key, ask('m', { max_tokens: MAXIMUM }))
  await upstream.receivedAtLeast('m', 1)
  return { first, end }
}

describe('a call whose quota other calls hold', () => {
  test('a call waits until another call that holds the quota it needs has ended, and is then served', async () => {
    const { first, end } = await holding(waiting)
    const second = waiting.chat('one', ask('m', { max_tokens: 1000 }))
    await untilOpen(waiting.gateway.url, 2)
    expect(waiting.upstream.received('m')).toHaveLength(1)
    end()
    expect([(await first).status, (await second).status]).toEqual([200, 200])
  })

  test('a call that waits for held quota is refused with 403 once the charge of another call leaves too little quota', async () => {
    const { first, end } = await holding(waiting, 'bob', usageText(10, 99_000))
    const second = waiting.chat('bob', ask('m', { max_tokens: 5000 }))
    await untilOpen(waiting.gateway.url, 2)
    end()
    expect((await first).status).toBe(200)
    const refused = await second
    expect(refused.status).toBe(403)
    expect(refused.json().error).toMatchObject({ code: 'budget_exceeded', spent: 396_010, held: 0 })
  })

  test('a call that waits for held quota is not sent upstream, and holds nothing, if its client leaves', async () => {
    const { first, end } = await holding(waiting)
    const leaving = send(waiting.gateway.url, ask('m', { max_tokens: 1000 }), { key: 'one' })
    leaving.on('error', () => {})
    await untilOpen(waiting.gateway.url, 2)
    leaving.destroy()
    await untilOver(waiting.gateway.url, 1)
    end()
    expect((await first).status).toBe(200)
    expect(waiting.upstream.received('m')).toHaveLength(1)
    expect(database.openHolds()).toEqual([])
  })

  test.each([
    ['/v1/chat/completions', ask('m', { max_tokens: 1000 }), 'rate_limit_error'],
    ['/v1/messages', ask('m', { max_tokens: 1000 }), 'gateway_error'],
    ['/v1/responses', { model: 'm', input: 'hi', max_output_tokens: 1000 }, 'rate_limit_error'],
  ])(
    'with hold_wait 0 a call at %s whose quota other calls hold is refused at once, with the sums',
    async (path, body, type) => {
      const { first, end } = await holding(atOnce)
      const refused = await atOnce.chat('one', body, { path })
      expect(refused.status, refused.text).toBe(429)
      expect(refused.headers['retry-after']).toBe('1')
      expect(refused.headers['x-should-retry']).toBeUndefined()
      const { error } = JSON.parse(refused.text)
      expect(error).toMatchObject({ type, code: 'quota_held' })
      const { spent, held, left, needed } = error
      expect(spent + held + left).toBe(FOR_ONE)
      expect(held).toBeGreaterThan(4 * MAXIMUM)
      expect(needed).toBeGreaterThan(left)
      for (const sum of [spent, held, left, needed]) expect(error.message).toContain(String(sum))
      expect(error.message).toContain('$')
      end()
      await first
    },
  )

  test('a Gemini call whose quota other calls hold is RESOURCE_EXHAUSTED, with left and held amounts as strings and a retry delay', async () => {
    const { first, end } = await holding(atOnce)
    const body = { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 1000 } }
    const refused = await atOnce.chat('one', body, { path: '/v1beta/models/m:generateContent' })
    expect(refused.status).toBe(429)
    const { error } = JSON.parse(refused.text)
    expect(error.status).toBe('RESOURCE_EXHAUSTED')
    expect(error.details).toMatchObject([
      { reason: 'quota_held', metadata: { left: expect.stringMatching(/^\d+$/), held: expect.any(String) } },
      { retryDelay: '1s' },
    ])
    end()
    await first
  })

  test('a call that costs more than the whole quota is a 403 with the spent, held and left amounts, even while other calls hold some', async () => {
    const { first, end } = await holding(atOnce)
    const refused = await atOnce.chat('one', ask('m', { max_tokens: 2 * MAXIMUM }))
    expect(refused.status).toBe(403)
    expect(refused.headers['x-should-retry']).toBe('false')
    const { error } = JSON.parse(refused.text)
    expect(error.code).toBe('insufficient_quota')
    expect(error.spent + error.held + error.left).toBe(FOR_ONE)
    end()
    await first
  })
})

describe('a stream that other calls keep from growing', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  const asked = { model: 'm', stream: true }
  test.each([
    ['chat', '/v1/chat/completions', { ...asked, messages, max_tokens: MAXIMUM }],
    ['messages', '/v1/messages', { ...asked, messages, max_tokens: MAXIMUM }],
    ['responses', '/v1/responses', { ...asked, input: 'hi', max_output_tokens: MAXIMUM }],
    [
      'gemini',
      '/v1beta/models/m:streamGenerateContent?alt=sse',
      { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: MAXIMUM } },
    ],
  ])('ends with quota_held in %s, and says what is spent, held, left and needed', async (key, path, body) => {
    const { promise: after, resolve: end } = Promise.withResolvers<void>()
    onTestFinished(() => end())
    const { upstream } = atOnce
    upstream.script(
      'm',
      { kind: 'whole', usage: usageText(10, 5), after },
      { kind: 'stream', events: 4 * STEP, word: 'word ', usage: null },
    )
    // Leaves quota for two steps.
    const first = atOnce.chat(key, ask('m', { max_tokens: MAXIMUM - 2 * STEP }))
    await upstream.receivedAtLeast('m', 1)
    const { status, text } = await atOnce.chat(key, body, { path })
    expect(status, text).toBe(200)
    const last =
      text
        .trimEnd()
        .split(/\r?\n\r?\n/)
        .at(-1) ?? ''
    const event = JSON.parse(last.slice(last.indexOf('{')))
    const error = event.response?.error ?? event.error
    expect(error.details?.[0].reason ?? error.code).toBe('quota_held')
    expect(error.message).toMatch(
      /used up.* \d+ remain, \d+ are needed \(\$.*\); \d+ are spent, \d+ are held by calls under way/,
    )
    end()
    expect((await first).status).toBe(200)
  })
})

test('the quota that a running call holds is shown as held at its API key and at its budget', async () => {
  const { first, end } = await holding(atOnce)
  const bob = await holding(atOnce, 'bob')
  const usage = async (key: string): Promise<number> => {
    const answer = await call(atOnce.gateway.url, undefined, {
      key,
      method: 'GET',
      path: '/api/usage/token/',
    })
    return JSON.parse(answer.text).data.held_quota
  }
  await expect.poll(() => usage('one')).toBeGreaterThan(4 * MAXIMUM)
  const list = () =>
    manage<{ items: { id: number; name: string; held_quota: number }[] }>(
      atOnce.gateway.url,
      ANN,
      'GET /api/token/?p=1&size=10',
    )
  const { items } = (await list()).data
  const one = items.find(({ name }) => name === 'token-one')
  expect(one?.held_quota).toBeGreaterThan(4 * MAXIMUM)
  expect(items.find(({ name }) => name === 'token-rich')?.held_quota).toBe(0)
  const detail = await manage<{ held_quota: number }>(
    atOnce.gateway.url,
    ANN,
    `GET /api/token/${one?.id ?? 0}`,
  )
  expect(detail.data.held_quota).toBe(one?.held_quota)
  const as = { id: 1, accessToken: ROOT.access_token }
  const budgetHeld = async (): Promise<number> =>
    (await manage<{ budget_held: number }>(atOnce.gateway.url, as, 'GET /api/user/3')).data.budget_held
  await expect.poll(budgetHeld).toBeGreaterThan(4 * MAXIMUM)
  end()
  bob.end()
  await Promise.all([first, bob.first])
  expect(await usage('one')).toBe(0)
})

describe('what a stream holds', () => {
  test.each([
    ['a step, where it names a maximum', 'm', { max_tokens: MAXIMUM }, STEP],
    ['its maximum, where that is less than a step', 'm', { max_tokens: 10 }, 10],
    ['a step for each choice', 'm', { max_tokens: MAXIMUM, n: 3 }, 3 * STEP],
    ['its maximum, where its model thinks unseen', 'o3', { max_completion_tokens: MAXIMUM }, MAXIMUM],
    ['a step, where its provider streams all thoughts', 'deepseek-r1', { max_tokens: MAXIMUM }, STEP],
    ['a step, where it names no maximum', 'o3', {}, STEP],
    [
      'its budget of thinking and a step',
      'gemini-2.5-pro',
      { max_tokens: MAXIMUM, extra_body: { google: { thinking_config: { thinking_budget: 5000 } } } },
      MAXIMUM,
    ],
    [
      'its budget of reasoning and a step',
      'gemini-2.5-pro',
      { max_tokens: MAXIMUM, reasoning: { max_tokens: 5000 } },
      5000 + STEP,
    ],
  ])('a streamed call holds quota for %s', async (_, model, fields, tokens) => {
    const { promise: after, resolve: end } = Promise.withResolvers<void>()
    atOnce.upstream.script('m', { kind: 'stream', usage: usageText(10, 5), after })
    const answer = atOnce.chat('rich', askStream(model, fields))
    const file = databaseOf(atOnce.gateway.dataDir)
    await expect.poll(() => file.openHolds().length).toBe(1)
    const amount = file.openHolds()[0]?.amount ?? 0
    await atOnce.upstream.receivedAtLeast('m', 1)
    const sent = JSON.parse(atOnce.upstream.only('m').text)
    end()
    expect((await answer).status).toBe(200)
    expect(amount).toBeGreaterThan(4 * tokens)
    expect(amount).toBeLessThan(4 * tokens + PROMPT)
    for (const name of ['max_tokens', 'max_completion_tokens'] as const)
      expect(sent[name]).toBe((fields as Record<string, unknown>)[name])
  })
})

test('after calls that waited, the balance of the user is the granted quota less the charges', () => {
  for (const { gateway } of [waiting, atOnce]) {
    const ann = databaseOf(gateway.dataDir).user('ann')
    expect(ann.quota + ann.used_quota).toBe(AMPLE)
    expect(ann.used_quota % COST).toBe(0)
  }
})
