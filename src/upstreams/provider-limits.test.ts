import { expect, test } from 'vitest'
import { ProviderLimits } from './provider-limits.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')
const CHANNEL = { name: 'main', keys: ['one', 'two'] }
const KEY = { value: 'one' }

/** Limits after a response that left this much of a key until a minute later. */
function stating(requests: number, tokens: number) {
  const clock = { ms: NOW }
  const limits = new ProviderLimits(() => clock.ms)
  const headers = {
    'x-ratelimit-remaining-requests': String(requests),
    'x-ratelimit-reset-requests': '1m0s',
    'x-ratelimit-remaining-tokens': String(tokens),
    'x-ratelimit-reset-tokens': '1m0s',
  }
  limits.begin(CHANNEL, KEY, 'm', { tokens: 1 })({ retryAfter: undefined, headers })
  return { clock, limits, canTake: (tokens: number) => limits.canTake(CHANNEL, KEY, 'm', { tokens }) }
}

test("an upstream key can take a call whose maximum tokens fit the provider's remaining limit, and any call after its reset", () => {
  const { clock, canTake } = stating(1, 100)
  expect(canTake(100)).toBe(true)
  expect(canTake(101)).toBe(false)
  clock.ms += 60_000
  expect(canTake(101)).toBe(true)
})

test('what a provider stated of a key says nothing once the clock was set to a time before it', () => {
  const { clock, limits, canTake } = stating(0, 0)
  const pause = { retryAfter: '60', headers: {} }
  limits.begin(CHANNEL, KEY, 'paused', { tokens: 1 })(pause)
  const isPaused = () => !limits.canTake(CHANNEL, KEY, 'paused', { tokens: 1 })
  expect([canTake(1), isPaused()]).toEqual([false, true])
  clock.ms -= 86_400_000
  expect([canTake(1), isPaused(), limits.ofChannel('main').size]).toEqual([true, false, 0])
  // News of another node are newer.
  const requests = { limit: 10, remaining: 0, resetsMs: clock.ms + 60_000 }
  limits.apply(CHANNEL, { key: 'one', model: 'm', stated: { requests }, statedMs: clock.ms })
  expect(canTake(1)).toBe(false)
})

test('an upstream key without remaining requests for a model can still be used for other models', () => {
  const { limits, canTake } = stating(0, 100)
  expect(canTake(1)).toBe(false)
  expect(limits.canTake(CHANNEL, KEY, 'other', { tokens: 1 })).toBe(true)
  expect(limits.canTake(CHANNEL, { value: 'two' }, 'm', { tokens: 1 })).toBe(true)
})

test('calls in flight count against the limits that a provider stated, until the provider answers them', () => {
  const { limits, canTake } = stating(2, 100)
  const answered = limits.begin(CHANNEL, KEY, 'm', { tokens: 60 })
  expect(canTake(41)).toBe(false)
  expect(canTake(40)).toBe(true)
  limits.begin(CHANNEL, KEY, 'm', { tokens: 0 })
  expect(canTake(0)).toBe(false)
  answered()
  answered()
  expect(canTake(100)).toBe(true)
})

test('calls that were under way when a provider first stated its limits count against these limits', () => {
  const limits = new ProviderLimits(() => NOW)
  const [first] = [1, 2, 3].map(() => limits.begin(CHANNEL, KEY, 'm', { tokens: 1 }))
  first?.({ retryAfter: undefined, headers: { 'x-ratelimit-remaining-requests': '2' } })
  expect(limits.canTake(CHANNEL, KEY, 'm', { tokens: 1 })).toBe(false)
})

test.each([
  [{ retryAfter: undefined, headers: { 'retry-after-ms': '1500' } }, 1_500],
  [{ retryAfter: '7', headers: {} }, 7_000],
  [{ retryAfter: '7', headers: { 'retry-after-ms': '1500' } }, 1_500],
  [{ retryAfter: undefined, headers: { 'retry-after-ms': '999999999999' } }, 300_000],
])('an upstream key is not used for the model for the stated time after a response with %j', (head, ms) => {
  const clock = { ms: NOW }
  const limits = new ProviderLimits(() => clock.ms)
  limits.begin(CHANNEL, KEY, 'm', { tokens: 1 })(head)
  const canTake = () => limits.canTake(CHANNEL, KEY, 'm', { tokens: 1 })
  expect(limits.ofChannel('main').get('one')).toMatchObject({ model: 'm', restsUntilMs: NOW + ms })
  expect(limits.canTake(CHANNEL, KEY, 'other', { tokens: 1 })).toBe(true)
  clock.ms += ms - 1
  expect(canTake()).toBe(false)
  clock.ms += 1
  expect(canTake()).toBe(true)
  expect(limits.ofChannel('main').size).toBe(0)
})

test('the provider limit shown for an upstream key is that of the model with the least left', () => {
  const limits = new ProviderLimits(() => NOW)
  for (const [model, remaining] of [
    ['a', 50],
    ['b', 20],
    ['c', 90],
  ] as const)
    limits.begin(CHANNEL, KEY, model, { tokens: 1 })({
      retryAfter: undefined,
      headers: { 'x-ratelimit-limit-tokens': '100', 'x-ratelimit-remaining-tokens': String(remaining) },
    })
  expect([...limits.ofChannel('main').values()]).toEqual([
    { channel: 'main', key: 'one', model: 'b', tokens: { limit: 100, remaining: 20 } },
  ])
})

test('provider limits of at most 10,000 pairs of key and model are kept, and the oldest are forgotten first', () => {
  const limits = new ProviderLimits(() => NOW)
  const head = { retryAfter: undefined, headers: { 'x-ratelimit-remaining-requests': '5' } }
  for (let index = 0; index < 10_002; index += 1) limits.begin(CHANNEL, KEY, `m${index}`, { tokens: 1 })(head)
  const models = [...limits.noted()].map(({ model }) => model)
  expect(models).toHaveLength(10_000)
  expect(models[0]).toBe('m2')
})

test('the metrics of provider limits have the 1,000 pairs of key and model with the least left', () => {
  const limits = new ProviderLimits(() => NOW)
  for (let left = 1_500; left > 0; left -= 1)
    limits.begin(CHANNEL, KEY, `m${left}`, { tokens: 1 })({
      retryAfter: undefined,
      headers: { 'x-ratelimit-limit-requests': '2000', 'x-ratelimit-remaining-requests': String(left) },
    })
  const samples = limits.samples([CHANNEL])
  expect(samples).toHaveLength(1_000)
  expect(samples[0]).toEqual({
    labels: { channel: 'main', key: '1', model: 'm1', kind: 'requests' },
    value: 1,
  })
  expect(Math.max(...samples.map(({ value }) => value))).toBe(1_000)
  expect(limits.samples([{ ...CHANNEL, keys: ['two'] }])).toEqual([])
})

test('a provider limit that another node announces is applied for at most 31 days, and an announced pause for five minutes', () => {
  const clock = { ms: NOW }
  const limits = new ProviderLimits(() => clock.ms)
  const far = NOW + 400 * 86_400_000
  const requests = { limit: 10, remaining: 0, resetsMs: far }
  limits.apply(CHANNEL, { key: KEY.value, model: 'm', stated: { requests }, statedMs: NOW })
  limits.apply(CHANNEL, { key: KEY.value, model: 'paused', stated: { restsUntilMs: far }, statedMs: NOW })
  const canTake = (model: string) => limits.canTake(CHANNEL, KEY, model, { tokens: 1 })
  expect([canTake('m'), canTake('paused')]).toEqual([false, false])
  clock.ms += 301_000
  expect([canTake('m'), canTake('paused')]).toEqual([false, true])
  clock.ms = NOW + 32 * 86_400_000
  expect(canTake('m')).toBe(true)
})
