import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { channel, plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { randomFrom } from '../fixtures/random.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { ask, retryWhileOverloaded, startFixture } from '../fixtures/fixture.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
const LIMIT = 100
const WINDOW_MS = 6000
const WINDOWS = 5
/** The number of calls made for each call that may pass. */
const FACTOR = 10
/** Milliseconds between the creation of a call's id, on arrival, and the check of its limit. */
const MOMENT_MS = 100

/** When a call arrived, by its id: a UUID of version 7 begins with the Unix milliseconds. */
function arrivedMs(id: unknown): number {
  return Number.parseInt(String(id).replaceAll('-', '').slice(0, 12), 16)
}

test(`at ${FACTOR} times the calls of a rate limit, with bursts at window edges, every window admits nearly the limit, never more`, {
  timeout: 120_000,
}, async () => {
  const random = randomFrom(seed)
  const fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    rate_limits: { key: { requests: LIMIT, window: `${WINDOW_MS / 1000}s` } },
  }))
  onTestFinished(() => fixture.close())
  fixture.upstream.script('m', { kind: 'whole' })
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })
  onTestFinished(() => agent.destroy())
  const calls: Promise<void>[] = []
  const admitted: number[] = []
  const waits: { readonly at: number; readonly seconds: number }[] = []
  const one = async (): Promise<void> => {
    const answer = await retryWhileOverloaded(() => fixture.chat('ann', ask('m'), { agent }))
    const at = arrivedMs(answer.headers['x-request-id'] ?? /request id: ([\w-]+)/.exec(answer.text)?.[1])
    if (answer.status === 200) admitted.push(at)
    else waits.push({ at, seconds: Number(answer.headers['retry-after']) })
  }
  const begun = performance.now()
  const end = WINDOWS * WINDOW_MS
  // Half of the calls are made at any time, the other half in bursts immediately before and after window
  // edges.
  const dues = Array.from({ length: WINDOWS * LIMIT * FACTOR }, (_, index) => {
    if (index % 2 === 0) return random() * end
    return Math.ceil(random() * WINDOWS) * WINDOW_MS + (random() - 0.5) * 100
  }).toSorted((a, b) => a - b)
  for (const due of dues) {
    const early = due - (performance.now() - begun)
    if (early > 0) await sleep(early)
    calls.push(one())
  }
  await Promise.all(calls)
  admitted.sort((a, b) => a - b)
  const within = (at: number): number =>
    admitted.filter((other) => other > at - (WINDOW_MS - MOMENT_MS) && other <= at).length
  const most = Math.max(...admitted.map(within))
  const lasted = (admitted.at(-1) ?? 0) - (admitted[0] ?? 0)
  // The last call may be at the very end of a window, or the first of another.
  const share = admitted.length / (LIMIT * Math.round(lasted / WINDOW_MS))
  console.log(
    `${dues.length} offered, ${admitted.length} admitted; at most ${most} of ${LIMIT} in any window; ${(share * 100).toFixed(1)} % of what may pass`,
  )
  expect(most).toBeLessThanOrEqual(LIMIT)
  expect(share).toBeGreaterThanOrEqual(0.99)
  // A client that waits as long as it is told is admitted, and would hardly have been earlier.
  for (const { at, seconds } of waits.filter((_, index) => index % 50 === 0)) {
    const free = admitted.find((other) => other > at - WINDOW_MS && other <= at)
    if (free !== undefined) expect(Math.abs(at + seconds * 1000 - (free + WINDOW_MS))).toBeLessThan(1100)
  }
})

/** The number of unknown addresses; NIGHT_ADDRESSES sets more. */
const ADDRESSES = Number(process.env['NIGHT_ADDRESSES'] ?? 100_000)
/**
 * The maximum memory in MiB for all of them together: the same for a million as for the number that is
 * tracked.
 */
const MAX_MIB = 250

test(`calls from ${ADDRESSES} unknown addresses do not make the gateway forget a client's rate limit, and take bounded memory`, {
  timeout: 1_800_000,
}, async () => {
  const fixture = await startFixture((upstream) => ({
    options: { trusted_proxies: ['127.0.0.1/32'], max_calls: 9000 },
    rate_limits: { relay: { requests: 3, window: '24h' }, key: { requests: 3, window: '24h' } },
    models: plainConfiguration(upstream.baseUrl('m')).models,
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann'), token('bob')])],
  }))
  onTestFinished(() => fixture.close())
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  onTestFinished(() => agent.destroy())
  fixture.upstream.script('m', { kind: 'whole' })
  const from = (key: string, address: string) =>
    retryWhileOverloaded(() =>
      fixture.chat(key, ask('m'), { agent, headers: { 'x-forwarded-for': address } }),
    )
  const victim = '203.0.113.7'
  for (let index = 0; index < 3; index++) expect((await from('ann', victim)).status).toBe(200)
  expect((await from('ann', victim)).status).toBe(429)
  const before = residentBytes(fixture.gateway.pid)
  let next = 0
  const stranger = async (): Promise<void> => {
    for (let index = next++; index < ADDRESSES; index = next++) {
      const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
      await from(`nobody${index}`, address)
    }
  }
  await Promise.all(Array.from({ length: 64 }, stranger))
  const grown = residentBytes(fixture.gateway.pid) - before
  console.log(
    `${ADDRESSES} addresses: ${(grown / 2 ** 20).toFixed(0)} MiB, ${(grown / ADDRESSES).toFixed(0)} bytes each`,
  )
  expect((await from('bob', victim)).status).toBe(429)
  expect((await from('ann', '203.0.113.8')).status).toBe(429)
  expect(grown / 2 ** 20).toBeLessThan(MAX_MIB)
})
