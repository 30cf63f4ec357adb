import { Agent } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { randomFrom } from '../fixtures/random.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { nightSeed } from './night-seed.ts'

const CALLS = 6_000
/**
 * Largest accepted ratio of the latencies. The look-up by HMAC prevents guessing a key letter by letter; this
 * test only detects a coarse regression.
 */
const MAX_APART = 1.25

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const KEY = 'Rk3vPq8sYw2nLd5tXz7bHc4mJf6gQa9e'

test('the latency of a refusal does not reveal how close a key is to a valid one', {
  timeout: 300_000,
}, async () => {
  const random = randomFrom(nightSeed())
  const letters = (count: number): string =>
    Array.from({ length: count }, () => LETTERS[Math.floor(random() * LETTERS.length)]).join('')
  const fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    users: [ROOT, user(2, 'ann', [token(KEY, { status: 2 })])],
  }))
  onTestFinished(() => fixture.close())
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  // Each key is requested once, because a cached result skips the look-up.
  const kinds: Record<string, () => string> = {
    unknown: () => letters(KEY.length),
    'with a known beginning': () => KEY.slice(0, 24) + letters(KEY.length - 24),
    'with a known end': () => letters(8) + KEY.slice(8),
  }
  const times = new Map(Object.keys(kinds).map((name) => [name, [] as number[]]))
  for (let i = 0; i < CALLS; i++) {
    for (const [name, key] of Object.entries(kinds)) {
      const began = performance.now()
      const { status } = await call(fixture.gateway.url, ask('m'), { key: key(), agent })
      if (status === 401) times.get(name)?.push(performance.now() - began)
    }
  }
  const medians = [...times].map(([name, all]) => {
    const median = all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN
    console.log(`${name}: ${all.length} refusals, median ${(median * 1000).toFixed(0)} µs`)
    expect(all.length).toBeGreaterThan(CALLS / 2)
    return median
  })
  expect(Math.max(...medians) / Math.min(...medians)).toBeLessThan(MAX_APART)
})
