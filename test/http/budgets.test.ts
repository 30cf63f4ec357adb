import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'

/** Ten prompt and five output tokens. */
const COST = 30
const DAY_S = 86_400

/** The gateway's day began twelve hours before the tests, so that none of them crosses the end of a period. */
const NOON_S = DAY_S / 2 - (Math.floor(Date.now() / 1000) % DAY_S)

let fixture: Fixture
let clock: MovedClock
beforeAll(async () => {
  clock = dateClock(afterAll)
  clock.move(NOON_S)
  const configure = (upstream: Fixture['upstream']) => ({
    groups: { small: { budget: 1000, budget_period: 'week' } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { groups: ['default', 'small'] })],
    users: [
      ROOT,
      user(2, 'ann', [
        token('daily', { budget: 1000, budget_period: 'day' }),
        token('tight', { rate_limit: { requests: 2, window: '10m' } }),
        token('spender', { rate_limit: { tokens: 10, window: '10m' } }),
        ...['chat', 'messages', 'responses', 'gemini'].map((key) =>
          token(key, { budget: 400, budget_period: 'day' }),
        ),
        token('narrow', { rate_limit: { parallel: 2 } }),
        token('midnight', { budget: 1000, budget_period: 'day' }),
      ]),
      user(3, 'bob', [token('grouped')], { group: 'small' }),
      user(4, 'eve', [token('one'), token('two')], { budget: 1000, budget_period: 'month' }),
      user(5, 'joe', [token('joe1'), token('joe2')], { rate_limit: { requests: 3, window: '10m' } }),
      user(6, 'kim', [token('kim1', { rate_limit: { parallel: 2 } }), token('kim2')], {
        rate_limit: { parallel: 1 },
      }),
    ],
  })
  fixture = await startFixture(configure, { env: clock.env })
})
afterAll(() => fixture?.close())

describe('a call beyond the budget', () => {
  test.each([
    ['of its key', 'daily', 'the daily budget of this API key', 1],
    ['of its group', 'grouped', 'the weekly budget of the group small', 7],
    ['of its user, with either key', 'two', 'the monthly budget of its user', 31],
  ])('a call that exceeds the budget %s is refused until the period ends', async (_, key, name, days) => {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const first = await fixture.chat(key === 'two' ? 'one' : key, ask('m', { max_tokens: 5 }))
    expect(first.status, first.text).toBe(200)
    const refused = await fixture.chat(key, ask('m', { max_tokens: 500 }))
    expect(refused.status).toBe(403)
    const { error } = refused.json()
    expect(error).toMatchObject({ type: 'permission_error', code: 'budget_exceeded' })
    expect(error.message).toContain(`${name} is not enough for this request: ${1000 - COST} of 1000 remain`)
    expect(refused.headers['x-should-retry']).toBe('false')
    const resets = Date.parse(/it resets at (\S+Z)/.exec(error.message)?.[1] ?? '')
    const retryAfter = Number(refused.headers['retry-after'])
    expect(Math.abs(resets / 1000 - (Date.now() / 1000 + NOON_S) - retryAfter)).toBeLessThan(60)
    expect(retryAfter).toBeLessThanOrEqual(days * DAY_S)
    expect(resets % (DAY_S * 1000)).toBe(0)
  })

  test.each([
    [
      '/v1/messages',
      { model: 'm', max_tokens: 900, messages: [{ role: 'user', content: 'Hi' }] },
      'budget_exceeded',
    ],
    ['/v1/responses', { model: 'm', max_output_tokens: 900, input: 'Hi' }, 'budget_exceeded'],
  ])('a call at %s that exceeds a budget gets an error of that dialect', async (path, body, code) => {
    const refused = await fixture.chat('daily', body, { path })
    expect(refused.status).toBe(403)
    expect(refused.json().error.code).toBe(code)
    expect(refused.headers['x-should-retry']).toBe('false')
  })

  test("a call at a Gemini path that exceeds a budget gets PERMISSION_DENIED, with the gateway's error code as the reason", async () => {
    const body = { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 900 } }
    const refused = await fixture.chat('daily', body, { path: '/v1beta/models/m:generateContent' })
    expect(refused.status).toBe(403)
    expect(refused.json().error).toMatchObject({
      status: 'PERMISSION_DENIED',
      details: [{ reason: 'budget_exceeded' }, {}],
    })
  })
})

describe('a stream that is cut off by a budget', () => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const asked = { model: 'm', stream: true }
  const GEMINI = '/v1beta/models/m:streamGenerateContent?alt=sse'
  test.each([
    ['chat', '/v1/chat/completions', { ...asked, messages, max_tokens: 5 }],
    ['messages', '/v1/messages', { ...asked, messages, max_tokens: 5 }],
    ['responses', '/v1/responses', { ...asked, input: 'Hi', max_output_tokens: 5 }],
    ['gemini', GEMINI, { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 5 } }],
  ])('a stream that is cut off by a budget ends with budget_exceeded in %s', async (key, path, body) => {
    fixture.upstream.script('m', { kind: 'stream', events: 400, word: 'word ', usage: null })
    const { status, text } = await fixture.chat(key, body, { path })
    expect(status, text).toBe(200)
    const last =
      text
        .trimEnd()
        .split(/\r?\n\r?\n/)
        .at(-1) ?? ''
    const event = JSON.parse(last.slice(last.indexOf('{')))
    const error = event.response?.error ?? event.error
    expect(error.details?.[0].reason ?? error.code).toBe('budget_exceeded')
    expect(error.message).toMatch(/the daily budget of this API key is used up; it resets at \S+Z/)
  })
})

describe('rate limits of keys and users', () => {
  const statuses = async (keys: readonly string[]): Promise<number[]> => {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const found: number[] = []
    for (const key of keys) found.push((await fixture.chat(key, ask('m'))).status)
    return found
  }

  test('the rate limit of a key counts the calls of that key only', async () => {
    expect(await statuses(['tight', 'tight', 'tight'])).toEqual([200, 200, 429])
  })

  test('the token rate limit of a key counts prompt and output tokens', async () => {
    expect(await statuses(['spender', 'spender'])).toEqual([200, 429])
  })

  test("the rate limit of a user counts the calls of all the user's keys, but not refused calls", async () => {
    expect(await statuses(['joe1', 'joe2', 'joe1', 'joe2'])).toEqual([200, 200, 200, 429])
  })

  test('a call above the limit of calls in flight of its key is refused with 429, until one of these calls has ended', async () => {
    let release: (value?: unknown) => void = () => {}
    const after = new Promise((resolve) => (release = resolve))
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after })
    const two = [fixture.chat('narrow', ask('m')), fixture.chat('narrow', ask('m'))]
    await expect.poll(() => fixture.upstream.received('m').length).toBe(2)
    const third = await fixture.chat('narrow', ask('m'))
    expect([third.status, third.json().error.code]).toEqual([429, 'rate_limited'])
    expect(third.headers['retry-after']).toBe('1')
    release()
    for (const answer of await Promise.all(two)) expect(answer.status).toBe(200)
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    await expect.poll(async () => (await fixture.chat('narrow', ask('m'))).status).toBe(200)
  })

  test('calls that have failed do not count as calls in flight', async () => {
    fixture.upstream.script('m', { kind: 'status', status: 400 })
    for (const key of ['kim1', 'kim1', 'kim1']) expect((await fixture.chat(key, ask('m'))).status).toBe(400)
  })

  test('calls that are refused for the calls in flight of their user do not count for their key', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after: gate.promise })
    const running = fixture.chat('kim2', ask('m'))
    await expect.poll(() => fixture.upstream.received('m').length).toBe(1)
    for (const key of ['kim1', 'kim1']) expect((await fixture.chat(key, ask('m'))).status).toBe(429)
    gate.resolve()
    expect((await running).status).toBe(200)
    const ends = async (): Promise<number> => (await fixture.chat('kim1', ask('m'))).status
    await expect.poll(ends, { interval: 200, timeout: 60_000 }).toBe(200)
  })
})

// The last test of this file, because it moves the time of the gateway.
test('a call is charged to the budget period in which it began, and the next period begins with nothing spent', async () => {
  const { upstream, gateway } = fixture
  const body = ask('m', { max_tokens: 150 })
  const chat = () => fixture.chat('midnight', body)
  const gate = Promise.withResolvers<void>()
  upstream.script('m', { kind: 'whole', usage: usageText(10, 150), after: gate.promise })
  const overMidnight = chat()
  await expect.poll(() => upstream.received('m').length).toBe(1)
  clock.move(NOON_S + DAY_S)
  gate.resolve()
  expect((await overMidnight).status).toBe(200)
  expect((await chat()).status).toBe(200)
  expect((await chat()).json().error.code).toBe('budget_exceeded')
  const database = databaseOf(gateway.dataDir)
  const { id } = database.token('token-midnight')
  const spent = () =>
    database.budgets().flatMap(({ account, used }) => (account.endsWith(`:t:${id}`) ? [used] : []))
  expect(spent()).toEqual([610, 610])
  // A clock that is set back leads back to the previous period, and to the amount that was spent in it.
  clock.move(NOON_S)
  expect((await chat()).json().error.code).toBe('budget_exceeded')
  expect(spent()).toEqual([610, 610])
})
