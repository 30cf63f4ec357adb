import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Body, call, CERTAINLY_GONE_MS, type FullResponse, open } from '../fixtures/client.ts'
import { channel, type Configuration, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'

const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })

async function started(options: object, env: Readonly<Record<string, string>> = {}): Promise<Fixture> {
  const configure = (upstream: ScriptedUpstream): Configuration => ({
    options: { retries: 0, ...options },
    rate_limits: {},
    models: { m: { price: PLAIN_PRICE } },
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('single', { rate_limit: { parallel: 1 } })]),
      user(3, 'bob', [token('bob')]),
    ],
  })
  const fixture = await startFixture(configure, { env })
  onTestFinished(() => fixture.close())
  return fixture
}

const codeOf = (answer: FullResponse): string => `${answer.status} ${String(answer.json().error.code)}`

/** Starts a stream with an idempotency key, and leaves in the middle of it. */
async function left({ gateway }: Fixture, key: string, idempotencyKey: string): Promise<void> {
  const live = await open(gateway.url, askStream('m'), { key, ...withKey(idempotencyKey) })
  await live.until('word')
  await sleep(CERTAINLY_GONE_MS)
  live.abort()
  await sleep(100)
}

test('with idempotency.keep: 0 the header idempotency-key is ignored, whatever it contains', async () => {
  const fixture = await started({ idempotency: { keep: 0 } })
  for (const key of ['a', 'a', '', 'x'.repeat(256)]) {
    const answer = await fixture.chat('ann', ask('m'), withKey(key))
    expect(answer.status).toBe(200)
    expect(answer.headers['idempotency-replayed']).toBeUndefined()
  }
  expect(fixture.upstream.received('m')).toHaveLength(4)
})

test('an answer is replayed for its idempotency key until idempotency.keep is over; the key can then be used again', async () => {
  const clock = dateClock()
  const fixture = await started({ idempotency: { keep: '60s' } }, clock.env)
  const attempt = (body: Body): Promise<FullResponse> => fixture.chat('ann', body, withKey('a'))
  await attempt(ask('m'))
  expect((await attempt(ask('m'))).headers['idempotency-replayed']).toBe('true')
  clock.move(61)
  // The call before may not have ended yet.
  const other = await vi.waitFor(
    async () => {
      const answer = await attempt(ask('m', { temperature: 1 }))
      expect(answer.status).toBe(200)
      return answer
    },
    { timeout: 60_000, interval: 50 },
  )
  expect(other.headers['idempotency-replayed']).toBeUndefined()
})

test('a repeated call whose stored answer was displaced by newer ones is a 409, and never a second upstream call', async () => {
  const fixture = await started({ keep_bytes: '1MiB' })
  fixture.upstream.script('m', { kind: 'whole', content: 'x'.repeat(400_000) })
  const keys = ['a', 'b', 'c', 'd'] as const
  const attempt = (key: string, as = 'ann'): Promise<FullResponse> => fixture.chat(as, ask('m'), withKey(key))
  await attempt('a', 'bob')
  for (const key of keys) await attempt(key)
  await expect.poll(async () => (await attempt('b')).status).toBe(409)
  expect(codeOf(await attempt('a'))).toBe('409 idempotency_not_kept')
  for (const [key, as] of [['d', 'ann'] as const, ['a', 'bob'] as const])
    expect((await attempt(key, as)).headers['idempotency-replayed']).toBe('true')
  expect(fixture.upstream.received('m')).toHaveLength(5)
})

test('a call with an idempotency key counts as a call in flight until it ends, also after its client left', async () => {
  const fixture = await started({})
  const go = Promise.withResolvers<void>()
  fixture.upstream.script('m', { kind: 'stream', events: 3, endsAfter: go.promise }, { kind: 'whole' })
  await left(fixture, 'single', 'a')
  expect(codeOf(await fixture.chat('single', ask('m')))).toBe('429 rate_limited')
  go.resolve()
  await expect.poll(async () => (await fixture.chat('single', ask('m'))).status).toBe(200)
})

test('a gateway that stops waits for calls that their clients have left, and keeps their answers', async () => {
  const fixture = await started({})
  const go = Promise.withResolvers<void>()
  fixture.upstream.script('m', { kind: 'stream', events: 3, endsAfter: go.promise })
  await left(fixture, 'ann', 'a')
  const stopped = fixture.gateway.stop()
  await sleep(500)
  go.resolve()
  expect(await stopped).toBe(0)
  expect(databaseOf(fixture.gateway.dataDir).usage()).toMatchObject([{ reason: 'complete' }])
  await fixture.gateway.restart()
  const replayed = await call(fixture.gateway.url, askStream('m'), { key: 'ann', ...withKey('a') })
  expect(replayed.headers['idempotency-replayed']).toBe('true')
  expect(replayed.text).toContain('[DONE]')
  expect(fixture.upstream.received('m')).toHaveLength(1)
})

test('a repeated call whose idempotency key a killed gateway was serving is sent again once after its restart', async () => {
  const fixture = await started({})
  const { gateway, upstream } = fixture
  upstream.script('m', { kind: 'stream', events: 3, ending: 'stall' }, { kind: 'stream', events: 3 })
  const live = await open(gateway.url, askStream('m'), { key: 'ann', ...withKey('a') })
  await live.until('word')
  await gateway.kill()
  await gateway.restart()
  const again = await fixture.chat('ann', askStream('m'), withKey('a'))
  expect(again.status, again.text).toBe(200)
  const repeated = await fixture.chat('ann', askStream('m'), withKey('a'))
  expect(repeated.headers['idempotency-replayed']).toBe('true')
  expect(upstream.received('m')).toHaveLength(2)
})

test('no text of a stored answer or of its idempotency key is readable in the data folder', async () => {
  const fixture = await started({})
  fixture.upstream.script('m', { kind: 'whole', content: 'the canary of the answer' })
  const key = `canary-${randomUUID()}`
  await fixture.chat('ann', ask('m'), withKey(key))
  await expect
    .poll(async () => (await fixture.chat('ann', ask('m'), withKey(key))).headers['idempotency-replayed'])
    .toBe('true')
  const { dataDir } = fixture.gateway
  const files = readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dataDir, name))
    .filter((path) => statSync(path).isFile() && !path.includes('gateway.yaml'))
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) {
    const content = readFileSync(file, 'latin1')
    expect(content.includes('canary'), file).toBe(false)
  }
})
