import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { paceMs } from '../fixtures/pace.ts'
import { byTier } from '../runner/tier.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const PACE_MS = 20
const POSTS = byTier(2, 3)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    options: { body_limit: '32MiB' },
  }))
})
afterAll(() => fixture?.close())

/** The number of gaps that make a meaningful sample. */
const ENOUGH = 10

/** The gaps between the pieces of a live stream while `disturb` runs, in milliseconds, the largest last. */
async function gapsWhile(disturb: () => Promise<unknown>): Promise<number[]> {
  fixture.upstream.decide('m', ({ text }) =>
    text.includes('"stream":true')
      ? { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: PACE_MS }
      : { kind: 'whole' },
  )
  const live = await fixture.live('ann', askStream('m', { max_tokens: 100_000 }))
  await live.until(' word1')
  const gaps: number[] = []
  const end = { isHere: false }
  const watch = async (): Promise<void> => {
    let seen = live.text().length
    let last = performance.now()
    while (!end.isHere) {
      await sleep(2)
      if (live.text().length === seen) continue
      const now = performance.now()
      gaps.push(now - last)
      seen = live.text().length
      last = now
    }
  }
  const watching = watch()
  await disturb()
  // On a busy machine there may be few gaps in that time.
  while (gaps.length <= ENOUGH) await sleep(50)
  end.isHere = true
  await watching
  live.abort()
  return gaps.toSorted((a, b) => a - b)
}

const at = (gaps: readonly number[], share: number): number => gaps[Math.floor(gaps.length * share)] ?? 0

/** Posts a body five times a second for a while; all requests must be refused. */
async function post(body: Buffer, headers: Record<string, string> = {}): Promise<void> {
  const answers: Promise<number>[] = []
  for (let i = 0; i < POSTS; i++) {
    answers.push(fixture.chat('ann', body, { headers }).then(({ status }) => status))
    await sleep(200)
  }
  // An overloaded gateway may answer 503.
  for (const status of await Promise.all(answers)) expect(status).toBeOneOf([400, 413, 503])
}

const inBody = (text: string): Buffer =>
  Buffer.from(JSON.stringify(ask('m')).replace('{', () => `{"x":${text},`))
const zip = (bytes: Buffer, times: number): Buffer => (times === 0 ? bytes : zip(gzipSync(bytes), times - 1))
/** More bodies than the memory for bodies allows, if each kept its 32 MiB of decoded bytes. */
const BODIES = byTier(6, 12)
const BOMB = zip(Buffer.alloc(200 << 20), 1)

describe('a live stream while hostile bodies arrive', () => {
  const hostile: Record<string, () => [Buffer, Record<string, string>?]> = {
    '25 MB of small arrays': () => [inBody(`[${'[1,2,3],'.repeat(3_200_000)}0]`)],
    '25 MB of brackets': () => [inBody('['.repeat(25 << 20))],
    '25 MB of quotes and backslashes': () => [inBody(`"${'\\"'.repeat(12 << 20)}`)],
    '25 MB in one number': () => [inBody(`${'9'.repeat(25 << 20)}x`)],
    '25 MB of white space': () => [Buffer.from(' '.repeat(25 << 20))],
    'a million keys': () => [
      inBody(`{${Array.from({ length: 1_000_000 }, (_, i) => `"${i.toString(36)}":1`).join(',')}}`),
    ],
    'a million keys at the top': () => [
      Buffer.from(`{${Array.from({ length: 1_000_000 }, (_, i) => `"${i.toString(36)}":1`).join(',')}}`),
    ],
    '25 MB that is not UTF-8 at its end': () => [
      Buffer.concat([Buffer.alloc(25 << 20, 32), Buffer.of(0xff)]),
    ],
    'a bomb': () => [BOMB, { 'content-encoding': 'gzip' }],
  }
  // The gaps without any disturbance.
  let quiet: number[] = []
  beforeAll(async () => {
    quiet = await gapsWhile(() => sleep(600))
  })
  test.each(Object.keys(hostile))(
    'a live stream keeps its pace while hostile bodies arrive five times a second: %s',
    { timeout: 300_000 },
    async (name) => {
      const [body, headers] = hostile[name]?.() ?? [Buffer.alloc(0)]
      /** The largest gap as a share of what it may be, or that of most gaps if that is more. */
      const share = async (): Promise<number> => {
        const paceBefore = paceMs()
        const gaps = await gapsWhile(() => post(body, headers))
        const pace = Math.max(paceBefore, paceMs())
        return Math.max(
          at(gaps, 0.8) / (10 * pace + 5 * at(quiet, 0.8)),
          (gaps.at(-1) ?? 0) / (30 * pace + 5 * (quiet.at(-1) ?? 0)),
        )
      }
      // Other programs may halt one of the attempts, and not each of them.
      await expect.poll(share, { timeout: 120_000 }).toBeLessThan(1)
    },
  )
})

describe('a compressed bomb', () => {
  const nested = zip(Buffer.alloc(100 << 20), 3)
  test.each([
    ['of 200 MB', BOMB, 'gzip', 413],
    ['within another within another', nested, 'gzip', 400],
    ['whose codings are named', nested, 'gzip, gzip, gzip', 415],
    ['that is cut off', BOMB.subarray(0, 20_000), 'gzip', 400],
  ])('a compression bomb %s is refused, and its memory is released', async (_, body, coding, status) => {
    const headers = { 'content-encoding': coding }
    for (let i = 0; i < BODIES; i++) {
      await expect.poll(async () => (await fixture.chat('ann', body, { headers })).status).toBe(status)
    }
  })

  test('a compressed body is decoded only up to the body limit, and invalid bytes beyond that limit are not read', async () => {
    const member = gzipSync(Buffer.alloc(10 << 20))
    const NO_BLOCK = Buffer.from([0xff, 0xff, 0xff])
    const damaged = (members: number): Buffer =>
      Buffer.concat([...Array<Buffer>(members).fill(member), member.subarray(0, 10), NO_BLOCK])
    const statusOf = async (body: Buffer): Promise<number> =>
      (await fixture.chat('ann', body, { headers: { 'content-encoding': 'gzip' } })).status
    await expect.poll(() => statusOf(damaged(3))).toBe(400)
    await expect.poll(() => statusOf(damaged(5))).toBe(413)
  })
})
