import { afterEach, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { randomFrom } from '../fixtures/random.ts'
import { byTier, casesByTier } from '../runner/tier.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

/** `docs/operations.md: Channels that fail`: no call fails while an account can serve it. */
const CALLS = 600
const AT_ONCE = 20
/** Calls a second, only where nothing else keeps the machine from making them at that rate. */
const RATES = byTier([], [8, 20, 200])

const GOOD: Behaviour = { kind: 'whole' }
const USED_UP = errorBody('You exceeded your current quota', 'insufficient_quota', 'insufficient_quota')
const SLOW_DOWN = errorBody('Rate limit reached', 'requests', 'rate_limit_exceeded')

/** Accounts that answer every call with a 429. */
const DEAD: readonly [name: string, behaviour: Behaviour][] = [
  ['a used-up account', { kind: 'status', status: 429, body: USED_UP }],
  [
    'a used-up account with retry-after',
    { kind: 'status', status: 429, body: USED_UP, headers: { 'retry-after': '1' } },
  ],
  ['a limited account', { kind: 'status', status: 429, body: SLOW_DOWN }],
  [
    'a limited account with retry-after',
    { kind: 'status', status: 429, body: SLOW_DOWN, headers: { 'retry-after': '1' } },
  ],
]

const isOfDead = ({ headers }: Received): boolean => headers.authorization === 'Bearer dead'

/** Set-ups in which the first account that a call meets is dead, and another one could serve it. */
const SET_UPS: Readonly<Record<string, { readonly models: object; readonly channels: readonly object[] }>> = {
  'two channels': {
    models: {},
    channels: [
      { name: 'one', models: ['m'], keys: ['dead'], priority: 1 },
      { name: 'two', models: ['m'], keys: ['good'] },
    ],
  },
  'two keys of one channel': {
    models: {},
    channels: [{ name: 'one', models: ['m'], keys: ['dead', 'good'] }],
  },
  'a fallback model': {
    models: { m: { price: { input: 2, output: 8 }, fallback: ['n'] } },
    channels: [
      { name: 'one', models: ['m'], keys: ['dead'] },
      { name: 'two', models: ['n'], keys: ['good'] },
    ],
  },
}

let fixture: Fixture | undefined
afterEach(() => fixture?.close())

async function start(setUp: string, decide: (request: Received) => Behaviour): Promise<Fixture> {
  const { models = {}, channels = [] } = SET_UPS[setUp] ?? {}
  fixture = await startFixture((upstream) => ({
    models: { ...priced(['m', 'n']), ...models },
    channels: channels.map((one) =>
      channel((one as { name: string }).name, upstream.baseUrl('all'), one as Record<string, unknown>),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  fixture.upstream.decide('all', decide)
  return fixture
}

interface Ended {
  readonly status: number
  readonly beganMs: number
  readonly tookMs: number
}

interface Outcome {
  /** Seconds from the first call to the last answer. */
  readonly tookS: number
  readonly failed: number
  readonly asked: number
  readonly medianMs: number
}

/** The number of the clients' calls that failed, and of calls that the dead account got. */
async function outcomeOf({ upstream }: Fixture, calls: readonly Promise<Ended>[]): Promise<Outcome> {
  const ended = await Promise.all(calls)
  const tookS = (performance.now() - Math.min(...ended.map(({ beganMs }) => beganMs))) / 1000
  const asked = upstream.received('all').filter(isOfDead).length
  upstream.forget('all')
  const times = ended.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
  return {
    tookS,
    failed: ended.filter(({ status }) => status !== 200).length,
    asked,
    medianMs: times[times.length >> 1] ?? 0,
  }
}

async function callOnce(to: Fixture): Promise<Ended> {
  const beganMs = performance.now()
  const { status } = await to.chat('ann', ask('m'))
  return { status, beganMs, tookMs: performance.now() - beganMs }
}

/** Makes calls at a rate, whatever the state of earlier ones. */
async function paced(to: Fixture, perSecond: number, count: number): Promise<Outcome> {
  const calls: Promise<Ended>[] = []
  await new Promise<void>((resolve) => {
    const beganMs = performance.now()
    const timer = setInterval(() => {
      const due = Math.min(count, Math.floor(((performance.now() - beganMs) / 1000) * perSecond) + 1)
      while (calls.length < due) calls.push(callOnce(to))
      if (calls.length < count) return
      clearInterval(timer)
      resolve()
    }, 5)
  })
  return outcomeOf(to, calls)
}

/** Makes calls, a number of them at once. */
async function crowd(to: Fixture, count: number, atOnce: number): Promise<Outcome> {
  const calls: Promise<Ended>[] = []
  const one = async (): Promise<void> => {
    while (calls.length < count) {
      const call = callOnce(to)
      calls.push(call)
      await call
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return outcomeOf(to, calls)
}

/** Seconds of each rate; a rest of one second ends meanwhile. */
const SECONDS = 6
const PAIRS = Object.keys(SET_UPS).flatMap((setUp) => DEAD.map((dead) => [setUp, ...dead] as const))

// By day each set-up and each kind of account in some pair.
test.each(casesByTier(4, PAIRS))(
  'with %s, no call fails beside %s, which gets few of the calls',
  async (setUp, name, behaviour) => {
    const running = await start(setUp, (request) => (isOfDead(request) ? behaviour : GOOD))
    const burst = await crowd(running, CALLS, AT_ONCE)
    const table: Record<string, Outcome> = { '600 calls, 20 at once': burst }
    expect(burst.failed, '600 calls, 20 at once').toBe(0)
    // Calls that began before its first answer, and a single one after each rest, which lasts a second at least.
    expect(burst.asked).toBeLessThanOrEqual(2 * AT_ONCE + burst.tookS)
    for (const rate of RATES) {
      const outcome = await paced(running, rate, Math.min(1_000, rate * SECONDS))
      table[`${rate} a second`] = outcome
      expect(outcome.failed, `${rate} a second`).toBe(0)
      // One call a second finds out whether the account works; a few may do so at the same moment.
      expect(outcome.asked, `${rate} a second`).toBeLessThanOrEqual(2 + 3 * outcome.tookS)
    }
    console.info(setUp, name, table)
  },
)

/** Answers of a server that fails now and then. */
const FAILURES: readonly Behaviour[] = [
  { kind: 'status', status: 500, body: errorBody('no') },
  { kind: 'status', status: 503, body: errorBody('no') },
  { kind: 'status', status: 429, body: SLOW_DOWN },
  { kind: 'drop' },
]

describe('an account that fails at random', () => {
  test.each(byTier([60], [10, 20, 30, 40, 50, 60]))(
    'no call fails beside a channel that fails %d percent of its calls',
    async (percent) => {
      const random = randomFrom(percent)
      const running = await start('two channels', (request) =>
        isOfDead(request) && random() < percent / 100
          ? (FAILURES[Math.floor(random() * FAILURES.length)] ?? GOOD)
          : GOOD,
      )
      const burst = await crowd(running, CALLS, AT_ONCE)
      expect(burst.failed, '600 calls, 20 at once').toBe(0)
      for (const rate of RATES) {
        const outcome = await paced(running, rate, Math.min(400, rate * 2))
        expect(outcome.failed, `${rate} a second`).toBe(0)
      }
    },
  )
})
