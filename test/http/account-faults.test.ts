import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** `docs/operations.md: Faults of accounts`. */
const fault = (status: number, message: string, code: string | null = null): Behaviour => ({
  kind: 'status',
  status,
  body: errorBody(message, 'invalid_request_error', code),
})
const CREDIT = 'Your credit balance is too low to access the Anthropic API.'

/** Answers that mean the account, and whether they mean it for the called model alone. */
const FAULTS: readonly [name: string, behaviour: Behaviour, isOfModel: boolean][] = [
  ['credit', fault(400, `${CREDIT} Please go to Plans & Billing to upgrade or purchase credits.`), false],
  ['limit', fault(400, 'Billing hard limit has been reached', 'billing_hard_limit_reached'), false],
  [
    'verified',
    fault(400, 'Your organization must be verified to use the model `gpt-5`. Please go to: https://x.'),
    true,
  ],
  ['arrearage', fault(400, 'Access denied, please make sure your account is in good standing.'), false],
  [
    'key',
    fault(400, 'Incorrect API key provided: xa***42. You can obtain an API key from https://x.'),
    false,
  ],
  ['location', fault(400, 'User location is not supported for the API use.'), true],
]

let fixture: Fixture
beforeAll(async () => {
  const names = FAULTS.map(([name]) => name)
  fixture = await startFixture((upstream) => ({
    models: priced([
      ...names,
      ...names.map((name) => `${name}-other`),
      ...names.map((name) => `${name}-alone`),
      'several',
    ]),
    channels: [
      ...['a', 'b', 'c'].map((name, index) =>
        channel(name, upstream.baseUrl(name), { models: ['several'], priority: -index }),
      ),
      ...names.flatMap((name) => [
        channel(name, upstream.baseUrl(name), { models: [name, `${name}-other`], priority: 1 }),
        channel(`${name}-spare`, upstream.baseUrl(`${name}-spare`), { models: [name, `${name}-other`] }),
        channel(`${name}-alone`, upstream.baseUrl(`${name}-alone`)),
      ]),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

describe.each(FAULTS)('an account at fault that says so with a 400: %s', (name, behaviour, isOfModel) => {
  beforeEach(() => {
    for (const lane of [name, `${name}-spare`]) fixture.upstream.forget(lane)
  })

  test('the call goes on with another account, and later calls do not ask this one', async () => {
    fixture.upstream.script(name, behaviour)
    fixture.upstream.script(`${name}-spare`, { kind: 'whole' })
    for (let calls = 0; calls < 5; calls += 1) expect((await fixture.chat('ann', ask(name))).status).toBe(200)
    expect(fixture.upstream.received(name)).toHaveLength(1)
    await fixture.chat('ann', ask(`${name}-other`))
    expect(fixture.upstream.received(name)).toHaveLength(isOfModel ? 2 : 1)
  })

  test('the client of a call without another account gets a 500 without the words', async () => {
    fixture.upstream.script(`${name}-alone`, behaviour)
    const answer = await fixture.chat('ann', ask(`${name}-alone`))
    expect(answer.status).toBe(500)
    expect(answer.headers['retry-after']).toBeUndefined()
    expect(answer.text).not.toMatch(/credit|Billing|organization|standing|xa\*\*\*42|location/)
  })
})

describe('a client whose request contains the words of a provider', () => {
  test.each([
    ['as they are', CREDIT],
    ['with escapes', JSON.stringify(CREDIT).slice(1, -1).replace('Your', '\\u0059our')],
    ['in a request of more than 1 MiB', `${CREDIT}${'x'.repeat(1_100_000)}`],
  ])('cannot set an account aside: %s', async (_, text) => {
    fixture.upstream.script('credit-alone', fault(400, `${CREDIT} Please`))
    const body = `{"model":"credit-alone","messages":[{"role":"user","content":"${text}"}]}`
    const answer = await fixture.chat('ann', body)
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(CREDIT)
  })

  test('an account is set aside by a code, whatever the request contains', async () => {
    fixture.upstream.script('limit-alone', fault(400, CREDIT, 'billing_hard_limit_reached'))
    const messages = [{ role: 'user', content: CREDIT }]
    expect((await fixture.chat('ann', ask('limit-alone', { messages }))).status).toBe(500)
  })
})

test('the client gets a 429 with the shortest rest while one of several accounts only rests', async () => {
  const limited = (seconds: string): Behaviour => ({
    kind: 'status',
    status: 429,
    body: errorBody('slow down'),
    headers: { 'retry-after': seconds },
  })
  fixture.upstream.script('a', limited('200'))
  fixture.upstream.script('b', limited('250'))
  fixture.upstream.script('c', fault(402, 'no money'))
  for (const _ of ['first', 'second']) {
    const answer = await fixture.chat('ann', ask('several'))
    expect(answer.status, answer.text).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(100)
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(200)
    expect(answer.text).not.toContain('no money')
  }
})
