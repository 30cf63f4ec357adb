import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channelHealth, type KeyLimits } from '../fixtures/channel-health.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  requestsLeft,
  type Stated,
  type StatingProvider,
  startStatingProvider,
} from '../fixtures/stating-provider.ts'
import { byTier } from '../runner/tier.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const CALLS = byTier(600, 3_000)
/** How many of them are made at once. */
const AT_ONCE = 8
/** What the keys of a provider may do together is enough for the calls, and for a third more. */
const LIMIT = (CALLS * 4) / 3

const KEYS = ['full', 'low', 'none']
const sharesLeft = (): Record<string, number> => ({ full: LIMIT * 0.9, low: LIMIT * 0.1, none: 0 })
const TWO_KEYS = { keys: ['one', 'two'] }
/** The channels of each test, because what is known of a channel stays. Each has a provider. */
const CHANNELS: Readonly<Record<string, Record<string, unknown>>> = {
  stating: { keys: KEYS },
  silent: { keys: KEYS },
  spent: { keys: ['key'], models: ['shared'], priority: 1 },
  equal: { keys: ['key'], models: ['shared'], priority: 1 },
  lower: { keys: ['key'], models: ['shared'], priority: 0 },
  shown: TWO_KEYS,
  rests: TWO_KEYS,
  'rests-s': TWO_KEYS,
  'rests-ms': TWO_KEYS,
  'rests-long': TWO_KEYS,
  'rests-bad': TWO_KEYS,
  'rests-served': TWO_KEYS,
  invalid: TWO_KEYS,
  listed: TWO_KEYS,
}
const NAMES = Object.keys(CHANNELS)

type Answers = (key: string) => Stated
const answers = new Map<string, Answers>()
const providers = new Map<string, StatingProvider>()
const ends: (() => void)[] = []
let fixture: Fixture
beforeAll(async () => {
  for (const name of NAMES) {
    const answer = (key: string): Stated => answers.get(name)?.(key) ?? {}
    providers.set(name, await startStatingProvider(answer, (end) => ends.push(end)))
  }
  fixture = await startFixture(() => ({
    models: priced([...NAMES, 'shared']),
    channels: NAMES.map((name) => channel(name, providers.get(name)?.url ?? '', CHANNELS[name])),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(async () => {
  await fixture?.close()
  for (const end of ends) end()
})

/** What the provider of a channel answers from now on. */
function providerOf(name: string, answer: Answers): StatingProvider {
  answers.set(name, answer)
  return providers.get(name) as StatingProvider
}

/** The provider of a channel, whose keys have this much left, and its answers with 429. */
function providerWith(name: string, left: Record<string, number>, states = true): StatingProvider {
  return providerOf(name, (key) => {
    const isServed = (left[key] ?? 0) > 0
    if (isServed) left[key] = (left[key] ?? 0) - 1
    return { isServed, ...(states && { headers: requestsLeft(left[key] ?? 0, LIMIT) }) }
  })
}

/** Makes calls of a model; resolves to the number of those that the client saw refused. */
async function callMany(model: string, calls: number, atOnce: number): Promise<number> {
  let left = calls
  let refused = 0
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      if ((await fixture.chat('ann', ask(model))).status !== 200) refused += 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return refused
}

test('of many calls over keys with 90, 10 and 0 % of their limits left, less than 1 % get a 429 upstream', async () => {
  const stating = providerWith('stating', sharesLeft())
  const silent = providerWith('silent', sharesLeft(), false)
  expect(await callMany('stating', CALLS, AT_ONCE)).toBe(0)
  const startMs = performance.now()
  expect(await callMany('silent', CALLS, AT_ONCE)).toBe(0)
  const rests = 1 + Math.log2(1 + (performance.now() - startMs) / 1_000)
  expect(stating.met).toMatchObject({ served: CALLS })
  expect(stating.met.refused).toBeLessThan(CALLS / 100)
  // A key that answers 429 without a statement rests for a second, then for two: how often two keys are tried depends on the
  // time, and calls that are made at once may try one together.
  expect(silent.met).toMatchObject({ served: CALLS })
  expect(silent.met.refused).toBeLessThan(Math.max(30, 2 * AT_ONCE * rests))
})

test('a channel whose keys are at their limits is skipped for one of equal priority, not for one of lower priority', async () => {
  const spent = providerWith('spent', { key: 1 })
  const equal = providerWith('equal', { key: 1_000 })
  const lower = providerWith('lower', { key: 1_000 })
  expect(await callMany('shared', 60, 1)).toBe(0)
  expect(spent.met).toEqual({ served: 1, refused: 0 })
  expect(equal.met.served).toBe(59)
  expect(lower.met.served).toBe(0)
})

test('GET /api/channel/health and the metrics show the rate limits that a provider stated for each key of a channel', async () => {
  providerWith('shown', { one: 40, two: 0 })
  await callMany('shown', 3, 1)
  const limits = await shownLimits('shown')
  const left = (remaining: number) => ({
    model: 'shown',
    requests: { limit: LIMIT, remaining, resets_at: expect.any(Number) },
  })
  // The second key answered 429, so that it rests until the reset that its provider stated.
  expect(limits).toEqual([left(37), { ...left(0), rests_until: expect.any(Number) }])
  expect(JSON.stringify(limits)).not.toContain('"one"')
  const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="shown",key="1",model="shown",kind="requests"\} 37$/m,
  )
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="shown",key="2",model="shown",kind="requests"\} 0$/m,
  )
})

/** What `GET /api/channel/health` shows of the keys of a channel. */
async function shownLimits(channelName: string): Promise<readonly KeyLimits[]> {
  return (await channelHealth(fixture.gateway.url, channelName))?.keys.limits ?? []
}

test.each([
  ['a 429', 'rests', false, { 'retry-after-ms': '90000' }, 90],
  ['a 429', 'rests-s', false, { 'retry-after': '90' }, 90],
  ['a 429', 'rests-ms', false, { 'retry-after': '7', 'retry-after-ms': '90000' }, 90],
  ['a 429', 'rests-long', false, { 'retry-after-ms': '999999999999' }, 300],
  ['a 429', 'rests-bad', false, { 'retry-after-ms': 'soon', 'retry-after': '90' }, 90],
  ['an answer', 'rests-served', true, { 'retry-after-ms': '90000' }, 90],
])(
  'after %s of channel %s (served: %s) with %j the upstream key is not used for %d seconds',
  async (_, name, isServed, headers, seconds) => {
    const provider = providerOf(name, (key) => (key === 'one' ? { isServed, headers } : {}))
    const beganS = Date.now() / 1_000
    expect(await callMany(name, 6, 1)).toBe(0)
    const endedS = Date.now() / 1_000
    // Only the first call was made with the key that rests.
    expect(provider.met).toEqual({ served: 6, refused: isServed ? 0 : 1 })
    const [one, two] = await shownLimits(name)
    const ends = Number(one?.rests_until)
    expect(ends).toBeGreaterThanOrEqual(beganS + seconds - 0.1)
    expect(ends).toBeLessThan(endedS + seconds + 10)
    expect(two).toEqual({})
  },
)

test('rate limits and retry-after values of a provider that are invalid are ignored', async () => {
  providerOf('invalid', () => ({
    headers: {
      'x-ratelimit-remaining-requests': 'none',
      'anthropic-ratelimit-tokens-remaining': '-1',
      'retry-after': 'later',
      'retry-after-ms': '1e9',
    },
  }))
  expect(await callMany('invalid', 4, 1)).toBe(0)
  expect(await shownLimits('invalid')).toEqual([{}, {}])
})

test("the list of a channel's keys has the rate limits that the provider stated, and the least share left in each minute", async () => {
  const left = [900, 400, 650]
  providerOf('listed', (key) => (key === 'one' ? { headers: requestsLeft(left.shift() ?? 0) } : {}))
  await callMany('listed', 6, 1)
  interface Key {
    readonly limits: object
    readonly left_minutes: readonly (number | null)[]
  }
  const id = (await channelHealth(fixture.gateway.url, 'listed'))?.id
  const { data } = await manage<Key[]>(fixture.gateway.url, AS_ROOT, `GET /api/channel/${id}/keys`)
  const [one, two] = data
  expect(one?.limits).toEqual({
    model: 'listed',
    requests: { limit: 1_000, remaining: 650, resets_at: expect.any(Number) },
  })
  expect(one?.left_minutes).toHaveLength(60)
  const noted = one?.left_minutes.filter((percent) => percent !== null) ?? []
  // The calls may have been made before and after the end of a minute.
  expect(Math.min(...noted)).toBe(40)
  expect(two?.limits).toEqual({})
  expect(two?.left_minutes).toEqual(Array.from({ length: 60 }, () => null))
})
