import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { requestsLeft, startStatingProvider } from '../fixtures/stating-provider.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const LIMIT = 4_000

/** A provider whose keys have this much left, and its answers with 429. */
function startProvider(left: Record<string, number>, states = true) {
  return startStatingProvider((key) => {
    const isServed = (left[key] ?? 0) > 0
    if (isServed) left[key] = (left[key] ?? 0) - 1
    return { isServed, ...(states && { headers: requestsLeft(left[key] ?? 0, LIMIT) }) }
  })
}

async function startWith(channels: readonly Record<string, unknown>[]): Promise<Fixture> {
  const fixture = await startFixture(() => ({
    models: priced(['m']),
    channels,
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  onTestFinished(() => fixture.close())
  return fixture
}

/** Makes calls; resolves to the number of those that the client saw refused. */
async function callMany(fixture: Fixture, calls: number, atOnce: number): Promise<number> {
  let left = calls
  let refused = 0
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      if ((await fixture.chat('ann', ask('m'))).status !== 200) refused += 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return refused
}

const KEYS = ['full', 'low', 'none']
const sharesLeft = (): Record<string, number> => ({ full: LIMIT * 0.9, low: LIMIT * 0.1, none: 0 })

test('of 3,000 calls over keys with 90, 10 and 0 % of their limits left, less than 1 % get a 429 upstream', async () => {
  const stating = await startProvider(sharesLeft())
  expect(await callMany(await startWith([channel('m', stating.url, { keys: KEYS })]), 3_000, 16)).toBe(0)
  const silent = await startProvider(sharesLeft(), false)
  expect(await callMany(await startWith([channel('m', silent.url, { keys: KEYS })]), 3_000, 16)).toBe(0)
  console.info(`met a 429: ${stating.met.refused} with statements, ${silent.met.refused} without`)
  expect(stating.met).toMatchObject({ served: 3_000 })
  expect(stating.met.refused).toBeLessThan(30)
  // A key that answers 429 without a statement rests for a second, then for two.
  expect(silent.met).toMatchObject({ served: 3_000 })
  expect(silent.met.refused).toBeLessThan(30)
}, 120_000)

test('a channel whose keys are at their limits is skipped for one of equal priority, not for one of lower priority', async () => {
  const [spent, equal, lower] = await Promise.all([
    startProvider({ key: 1 }),
    startProvider({ key: 1_000 }),
    startProvider({ key: 1_000 }),
  ])
  const at = (name: string, url: string, priority: number): Record<string, unknown> =>
    channel(name, url, { keys: ['key'], models: ['m'], priority })
  const fixture = await startWith([
    at('spent', spent.url, 1),
    at('equal', equal.url, 1),
    at('lower', lower.url, 0),
  ])
  expect(await callMany(fixture, 60, 1)).toBe(0)
  expect(spent.met).toEqual({ served: 1, refused: 0 })
  expect(equal.met.served).toBe(59)
  expect(lower.met.served).toBe(0)
})

test('GET /api/channel/health and the metrics show the rate limits that a provider stated for each key of a channel', async () => {
  const provider = await startProvider({ one: 40, two: 0 })
  const fixture = await startWith([channel('m', provider.url, { keys: ['one', 'two'] })])
  await callMany(fixture, 3, 1)
  const { data } = await manage<{ items: { name: string; keys: { limits: object[] } }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/channel/health',
  )
  const limits = data.items.find(({ name }) => name === 'm')?.keys.limits
  const left = (remaining: number) => ({
    model: 'm',
    requests: { limit: LIMIT, remaining, resets_at: expect.any(Number) },
  })
  // The second key answered 429, so that it rests until the reset that its provider stated.
  expect(limits).toEqual([left(37), { ...left(0), rests_until: expect.any(Number) }])
  expect(JSON.stringify(data)).not.toContain('"one"')
  const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="m",key="1",model="m",kind="requests"\} 37$/m,
  )
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="m",key="2",model="m",kind="requests"\} 0$/m,
  )
})

/** What `GET /api/channel/health` shows of the keys of the channel `m`. */
async function shownLimits(fixture: Fixture): Promise<readonly Record<string, unknown>[]> {
  const { data } = await manage<{ items: { name: string; keys: { limits: Record<string, unknown>[] } }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/channel/health',
  )
  return data.items.find(({ name }) => name === 'm')?.keys.limits ?? []
}

test.each([
  ['429', false, { 'retry-after-ms': '90000' }, 90],
  ['429', false, { 'retry-after': '90' }, 90],
  ['429', false, { 'retry-after': '7', 'retry-after-ms': '90000' }, 90],
  ['429', false, { 'retry-after-ms': '999999999999' }, 300],
  ['429', false, { 'retry-after-ms': 'soon', 'retry-after': '90' }, 90],
  ['200', true, { 'retry-after-ms': '90000' }, 90],
])(
  'after a %s (served: %s) with %j the upstream key is not used for %d seconds',
  async (_, isServed, headers, seconds) => {
    const provider = await startStatingProvider((key) => (key === 'one' ? { isServed, headers } : {}))
    const fixture = await startWith([channel('m', provider.url, { keys: ['one', 'two'] })])
    const beganS = Date.now() / 1_000
    expect(await callMany(fixture, 6, 1)).toBe(0)
    // Only the first call was made with the key that rests.
    expect(provider.met).toEqual({ served: 6, refused: isServed ? 0 : 1 })
    const [one, two] = await shownLimits(fixture)
    const ends = Number(one?.rests_until) - beganS
    expect(ends).toBeGreaterThanOrEqual(seconds - 0.1)
    expect(ends).toBeLessThan(seconds + 10)
    expect(two).toEqual({})
  },
)

test('rate limits and retry-after values of a provider that are invalid are ignored', async () => {
  const provider = await startStatingProvider(() => ({
    headers: {
      'x-ratelimit-remaining-requests': 'none',
      'anthropic-ratelimit-tokens-remaining': '-1',
      'retry-after': 'later',
      'retry-after-ms': '1e9',
    },
  }))
  const fixture = await startWith([channel('m', provider.url, { keys: ['one', 'two'] })])
  expect(await callMany(fixture, 4, 1)).toBe(0)
  expect(await shownLimits(fixture)).toEqual([{}, {}])
})

test("the list of a channel's keys has the rate limits that the provider stated, and the least share left in each minute", async () => {
  const left = [900, 400, 650]
  const provider = await startStatingProvider((key) =>
    key === 'one' ? { headers: requestsLeft(left.shift() ?? 0) } : {},
  )
  const fixture = await startWith([channel('m', provider.url, { keys: ['one', 'two'] })])
  await callMany(fixture, 6, 1)
  interface Key {
    readonly limits: object
    readonly left_minutes: readonly (number | null)[]
  }
  const health = await manage<{ items: { id: number; name: string }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/channel/health',
  )
  const id = health.data.items.find(({ name }) => name === 'm')?.id
  const { data } = await manage<Key[]>(fixture.gateway.url, AS_ROOT, `GET /api/channel/${id}/keys`)
  const [one, two] = data
  expect(one?.limits).toEqual({
    model: 'm',
    requests: { limit: 1_000, remaining: 650, resets_at: expect.any(Number) },
  })
  expect(one?.left_minutes).toHaveLength(60)
  const noted = one?.left_minutes.filter((percent) => percent !== null) ?? []
  // The calls may have been made before and after the end of a minute.
  expect(Math.min(...noted)).toBe(40)
  expect(two?.limits).toEqual({})
  expect(two?.left_minutes).toEqual(Array.from({ length: 60 }, () => null))
})
