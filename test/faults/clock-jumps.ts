import { expect } from 'vitest'
import { audit } from '../fixtures/auditor.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import type { MovedClock } from '../fixtures/moved-clock.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Seconds in a minute. */
export const MINUTE = 60
export const HOUR = 60 * MINUTE
export const MONTH = 30 * 24 * HOUR
const QUOTA = 1_000_000_000
/**
 * The number of events of the stream that is running when the clock is moved, and the milliseconds between
 * them.
 */
const [EVENTS, PACE_MS] = [40, 40]
const TIMEOUT_MS = 1000
/** Milliseconds by which a timeout may be early or late. */
const TOLERANCE_MS = 1000
const LIMIT = 5

/** The measurements after moving the clock. */
export interface JumpReport {
  readonly seconds: number
  /** The measured duration of a one-second timeout, in milliseconds. */
  readonly firstByteMs: number
  readonly totalMs: number
}

/**
 * Moves the time of day of a gateway repeatedly while calls run, by this number of seconds each time, and
 * back. Fails where anything other than expiry is affected.
 */
export async function jump(clock: MovedClock, offsets: readonly number[]): Promise<JumpReport[]> {
  const now = Math.floor(Date.now() / 1000)
  const quota = { remain_quota: QUOTA }
  const fixture = await startFixture(
    (upstream) => ({
      options: { retries: 0 },
      rate_limits: { key: { requests: LIMIT, window: '60s' } },
      models: priced(['m', 'slow', 'silent', 'endless']),
      channels: [
        channel('m', upstream.baseUrl('m')),
        channel('slow', upstream.baseUrl('slow')),
        channel('silent', upstream.baseUrl('silent'), { timeouts: { first_byte: '1s' } }),
        channel('endless', upstream.baseUrl('endless'), { timeouts: { total: '1s' } }),
      ],
      users: [
        ROOT,
        user(
          2,
          'ann',
          offsets.flatMap((seconds, index) => [
            token(`run${index}`, quota),
            token(`limited${index}`, quota),
            // Expires half way between the real time and the moved one.
            token(`half${index}`, { ...quota, expired_time: Math.floor(now + seconds / 2) }),
          ]),
          { quota: QUOTA },
        ),
      ],
    }),
    { env: clock.env },
  )
  try {
    fixture.upstream.script('slow', { kind: 'stream', events: EVENTS, paceMs: PACE_MS })
    fixture.upstream.script('silent', { kind: 'silence' })
    fixture.upstream.script('endless', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 })
    const reports: JumpReport[] = []
    for (const [index, seconds] of offsets.entries())
      reports.push(await oneJump(fixture, clock, index, seconds))
    const granted = {
      tokens: new Map(
        offsets.flatMap((_, index) => [
          [`token-run${index}`, QUOTA],
          [`token-limited${index}`, QUOTA],
        ]),
      ),
      users: new Map([['ann', QUOTA]]),
    }
    // A hold settled at zero may not be on the disk yet, because no client waits for it.
    await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
    return reports
  } finally {
    await fixture.close()
  }
}

async function oneJump(
  fixture: Fixture,
  clock: MovedClock,
  index: number,
  seconds: number,
): Promise<JumpReport> {
  const { gateway, upstream } = fixture
  const database = databaseOf(gateway.dataDir)
  const took = (work: Promise<unknown>, began = performance.now()): Promise<number> => {
    const measured = work.then(() => performance.now() - began)
    measured.catch(() => {})
    return measured
  }
  const key = `run${index}`
  const running = await fixture.live(key, askStream('slow'))
  await running.until('"content":" word2"')
  const silent = took(fixture.chat(key, ask('silent')))
  const begin = async () => ({ at: performance.now(), answer: await fixture.live(key, askStream('endless')) })
  let begun = await begin()
  // Repeated, because its whole time may be over before a busy gateway has sent it.
  while (begun.answer.status !== 200) begun = await begin()
  const endless = took(begun.answer.end(), begun.at)
  await upstream.receivedAtLeast('silent', index + 1)
  await useUp(fixture, `limited${index}`)
  // By the moved time, the key has expired if the clock moved forward, and has not if it moved back.
  expect((await fixture.chat(`half${index}`, ask('m'))).status).toBe(seconds > 0 ? 200 : 401)

  clock.move(seconds)
  const half = await fixture.chat(`half${index}`, ask('m'))
  expect(half.status, half.text).toBe(seconds > 0 ? 401 : 200)
  // No rate limit window opens early, and none stays closed.
  const limited = await fixture.chat(`limited${index}`, ask('m'))
  expect(limited.status).toBe(429)
  expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(60)

  const { text, headers } = await running.end()
  expect(text).toContain('data: [DONE]')
  const row = database.usageOf(String(headers['x-request-id'])) as UsageRow & { duration_ms: number }
  expect(row.reason).toBe('complete')
  expect(row.duration_ms).toBeGreaterThan(EVENTS * PACE_MS * 0.9)
  expect(row.duration_ms).toBeLessThan(60_000)
  const [firstByteMs, totalMs] = await Promise.all([silent, endless])
  for (const ms of [firstByteMs, totalMs]) {
    expect(ms).toBeGreaterThan(TIMEOUT_MS - TOLERANCE_MS / 10)
  }
  // A new call is recorded with the moved time of day.
  const later = await fixture.chat(key, ask('m'))
  const written = database.usageOf(String(later.headers['x-request-id'])) as UsageRow & { ended_ms: number }
  expect(Math.abs(written.ended_ms - (Date.now() + seconds * 1000))).toBeLessThan(120_000)
  expect(upstream.received('silent')).toHaveLength(index + 1)
  clock.move(0)
  return { seconds, firstByteMs: Math.round(firstByteMs), totalMs: Math.round(totalMs) }
}

async function useUp(fixture: Fixture, key: string): Promise<void> {
  const answers = await Promise.all(Array.from({ length: LIMIT + 2 }, () => fixture.chat(key, ask('m'))))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(LIMIT)
}
