import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse, type LiveResponse, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { isAlive, workerPids } from '../fixtures/worker-pids.ts'
import { requestsLeft } from '../fixtures/stating-provider.ts'
import { workersIn } from './fixture.ts'

/** The maximum output of a call; at four units each it far outweighs the prompt. */
const MAXIMUM = 100_000
/** Ten holds and a margin that is less than an eleventh. */
const FOR_TEN = 10 * (4 * MAXIMUM + 10_000)
/** One call with the maximum, and not one of 5,000 tokens beside it. */
const FOR_ONE = 4 * MAXIMUM + 10_000
/** Ten prompt and five output tokens. */
const COST = 30
const ADMIN = { id: 1, accessToken: ROOT.access_token }
const CLEO = { id: 4, accessToken: 'the-access-token-of-cleo' }
const SOON = { timeout: 60_000, interval: 50 }
const SHORTLY = { timeout: 3_000, interval: 50 }
const GRANTED = 1_000_000_000
const WORKERS = 2

let fixture: Fixture
let database: GatewayDatabase
let config: Configuration

beforeAll(async () => {
  fixture = await startFixture(
    (upstream) =>
      (config = {
        rate_limits: {},
        models: priced(['m', 'slow', 'stated']),
        channels: [
          channel('m', upstream.baseUrl('m')),
          channel('slow', upstream.baseUrl('slow')),
          channel('stated', upstream.baseUrl('stated'), { keys: ['spent', 'ample'] }),
        ],
        users: [
          {
            ...ROOT,
            tokens: [
              token('crowd', { remain_quota: FOR_TEN }),
              token('doomed'),
              token('set', { remain_quota: 1_000_000 }),
              token('shown', { remain_quota: FOR_ONE }),
            ],
          },
          user(2, 'ann', [token('ann', { remain_quota: GRANTED })], { quota: GRANTED }),
          user(3, 'bob', [
            token('five', { rate_limit: { parallel: 5 } }),
            token('thirty', { rate_limit: { requests: 30, window: '1h' } }),
          ]),
          user(4, 'cleo', [token('monthly', { budget: 1_000, budget_period: 'month' })], {
            access_token: CLEO.accessToken,
          }),
        ],
      }),
    { env: { WORKERS: String(WORKERS) } },
  )
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())
beforeEach(async () => {
  await untilAllServe()
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
})

/** Waits until each worker has answered, because connections are distributed randomly. */
async function untilAllServe(): Promise<void> {
  const before = fixture.gateway.logs().length
  await vi.waitFor(async () => {
    await Promise.all(Array.from({ length: 8 }, () => fixture.chat('nobody', ask('m'))))
    expect(workersIn(fixture.gateway.logs().slice(before)).size).toBe(WORKERS)
  }, SOON)
}

function gate(): { readonly opens: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opens: promise, open: resolve }
}

/** Streams in progress on all workers, each with some content. */
async function streams(count: number, after: Promise<unknown>): Promise<LiveResponse[]> {
  const frames = [
    `data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":${usageText(10, 5)}}\n\n`,
    'data: [DONE]\n\n',
  ]
  const word = 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}\n\n'
  fixture.upstream.script('slow', { kind: 'stream', frames: [word], rest: { after, frames } })
  const live = await Promise.all(
    Array.from({ length: count }, () => fixture.live('ann', askStream('slow', { max_tokens: 1000 }))),
  )
  await Promise.all(live.map((one) => one.until('hello')))
  return live
}

const idOf = (name: string): number => database.token(`token-${name}`).id

/** Compares the quota given to ann with the balance and with the charges in the log. */
function expectExact(): void {
  const ann = database.token('token-ann')
  const rows = database.usage().filter(({ token_id }) => token_id === ann.id)
  const charged = rows.reduce((sum, { quota }) => sum + quota, 0)
  expect(ann).toMatchObject({ used_quota: charged, remain_quota: GRANTED - charged })
  expect(database.user('ann')).toMatchObject({ used_quota: charged, quota: GRANTED - charged })
}

describe('what workers share', () => {
  test('of fifty simultaneous calls to all workers with quota for ten, exactly ten are served', async () => {
    const { opens, open: release } = gate()
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after: opens })
    let refused = 0
    const calls: Promise<FullResponse>[] = []
    const answered = async (): Promise<FullResponse> => {
      const answer = await fixture.chat('crowd', ask('m', { max_tokens: MAXIMUM }))
      if (answer.status !== 200) refused += 1
      return answer
    }
    const held = async (): Promise<number> => {
      await expect.poll(() => refused + fixture.upstream.received('m').length, SOON).toBe(calls.length)
      return fixture.upstream.received('m').length
    }
    while (calls.length < 50) calls.push(answered())
    // On a busy machine a worker may return its unused lease too late for one call; the next call gets it.
    while ((await held()) < 10) calls.push(answered())
    release()
    const answers = await Promise.all(calls)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
    for (const answer of answers.filter(({ status }) => status !== 200))
      expect([answer.status, answer.json().error.code]).toEqual([429, 'quota_held'])
    expect(database.token('token-crowd')).toMatchObject({
      used_quota: 10 * COST,
      remain_quota: FOR_TEN - 10 * COST,
    })
  })

  test('a call waits for quota that a call of another worker holds, and every worker shows the held amount', async () => {
    const { opens, open: release } = gate()
    const usage = usageText(10, 5)
    fixture.upstream.script('m', { kind: 'whole', usage, after: opens }, { kind: 'whole', usage })
    // On new connections, which reach other workers.
    const held = async (): Promise<number[]> =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          const path = '/api/usage/token/'
          const answer = await fixture.chat('shown', undefined, { method: 'GET', path })
          return JSON.parse(answer.text).data.held_quota
        }),
      )
    const first = fixture.chat('shown', ask('m', { max_tokens: MAXIMUM }))
    await fixture.upstream.receivedAtLeast('m', 1)
    await expect.poll(async () => Math.min(...(await held())), SOON).toBeGreaterThan(4 * MAXIMUM)
    const others = Array.from({ length: 4 }, () => fixture.chat('shown', ask('m', { max_tokens: 5000 })))
    await delay(300)
    expect(fixture.upstream.received('m')).toHaveLength(1)
    release()
    for (const { status } of await Promise.all([first, ...others])) expect(status).toBe(200)
    await expect.poll(async () => Math.max(...(await held())), SOON).toBe(0)
  })

  test("workers share a key's limit of five calls in flight: of fifty simultaneous calls, five are admitted", async () => {
    const { opens, open: release } = gate()
    fixture.upstream.script('m', { kind: 'whole', after: opens })
    const statuses: number[] = []
    const calls = Array.from({ length: 50 }, async () => {
      statuses.push((await fixture.chat('five', ask('m'))).status)
    })
    await expect.poll(() => statuses.length + fixture.upstream.received('m').length, SOON).toBe(50)
    expect(statuses).toEqual(Array.from({ length: 45 }, () => 429))
    release()
    await Promise.all(calls)
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
  })

  test("workers share a key's limit of thirty requests: of sixty requests, thirty are admitted", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => fixture.chat('thirty', ask('m'))))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(30)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30)
  })

  test('a running call can be stopped through any worker, whichever worker runs it', async () => {
    const live = await streams(8, new Promise(() => {}))
    const ids = live.map(({ headers }) => String(headers['x-request-id']))
    interface Listed {
      readonly items: readonly { readonly id: string }[]
    }
    const { data } = await manage<Listed & { others: Listed[] }>(
      fixture.gateway.url,
      ADMIN,
      'GET /api/running?nodes=all',
    )
    const listed = [data, ...data.others].flatMap(({ items }) => items.map(({ id }) => id))
    expect(listed).toEqual(expect.arrayContaining(ids))
    // Each request reaches any worker.
    for (const id of ids)
      expect((await manage(fixture.gateway.url, ADMIN, `POST /api/running/${id}/stop`)).status).toBe(200)
    for (const one of live) expect((await one.end()).text).toContain('"code":"call_stopped"')
  })

  test('a simulated call is affordable on every worker while a real one would be, although a worker has borrowed nothing', async () => {
    const path = 'GET /api/token/?p=1'
    const { data } = await manage<{ items: { id: number }[] }>(fixture.gateway.url, CLEO, path)
    const simulated = async (prompt_tokens: number): Promise<{ code: string; message: string } | null> => {
      const body = { token_id: data.items[0]?.id, model: 'm', prompt_tokens, max_tokens: 0 }
      const answer = await manage<{ refusal: { code: string; message: string } | null }>(
        fixture.gateway.url,
        ADMIN,
        'POST /api/routing/simulate',
        body,
      )
      return answer.data.refusal
    }
    for (let n = 0; n < 8; n += 1) expect(await simulated(400)).toBeNull()
    for (let n = 0; n < 8; n += 1)
      expect(await simulated(1_001)).toMatchObject({
        code: 'budget_exceeded',
        message: expect.stringMatching(/ of 1000 remain, 1001 are needed/) as string,
      })
  })

  test('a key that is disabled or enabled through one worker is refused or served by all workers', async () => {
    const id = idOf('doomed')
    const all = async (status: number): Promise<void> => {
      await vi.waitFor(async () => {
        const answers = await Promise.all(Array.from({ length: 16 }, () => fixture.chat('doomed', ask('m'))))
        expect(new Set(answers.map((one) => one.status))).toEqual(new Set([status]))
      }, SOON)
    }
    await all(200)
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/token/?status_only=1', { id, status: 2 })
    await all(401)
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/token/?status_only=1', { id, status: 1 })
    await all(200)
  })

  test("a key's quota that is set through one worker applies to all: together they spend no more", async () => {
    const set = (remain_quota: number) =>
      manage(fixture.gateway.url, ADMIN, 'PUT /api/token/', {
        id: idOf('set'),
        name: 'token-set',
        remain_quota,
      })
    const statuses = async (): Promise<Set<number>> => {
      const answers = await Promise.all(
        Array.from({ length: 16 }, () => fixture.chat('set', ask('m', { max_tokens: 100 }))),
      )
      return new Set(answers.map(({ status }) => status))
    }
    await set(1_000_000)
    await expect.poll(statuses, SOON).toEqual(new Set([200]))
    await set(100)
    await expect.poll(statuses, SOON).toEqual(new Set([403]))
    expect(database.token('token-set').remain_quota).toBe(100)
  })

  test('once one worker has applied a changed configuration, every call of any worker uses it', async () => {
    const { upstream, gateway } = fixture
    upstream.script('new', { kind: 'whole', usage: usageText(10, 5) })
    const statuses = async (): Promise<number[]> =>
      Promise.all(Array.from({ length: 16 }, async () => (await fixture.chat('ann', ask('new'))).status))
    await gateway.apply({
      ...config,
      models: priced(['m', 'slow', 'new']),
      channels: [...(config.channels ?? []), channel('new', upstream.baseUrl('new'))],
    })
    expect(new Set(await statuses())).toEqual(new Set([200]))
    expect(gateway.logs().match(/"msg":"configuration applied"/g)).toHaveLength(1)
    await gateway.apply(config)
    expect(new Set(await statuses())).not.toContain(200)
  })

  test('an upstream key that according to one worker has no remaining requests is used by no worker', async () => {
    fixture.upstream.decide('stated', ({ headers: { authorization } }) => ({
      kind: 'whole',
      headers: requestsLeft(authorization === 'Bearer spent' ? 0 : 900),
    }))
    const keys = (): unknown[] =>
      fixture.upstream.received('stated').map(({ headers: { authorization } }) => authorization)
    while (!keys().includes('Bearer spent')) await fixture.chat('ann', ask('stated'))
    const isKnown = async (): Promise<boolean> => {
      const { data } = await manage<{ items: { name: string; keys: { limits: { requests?: object }[] } }[] }>(
        fixture.gateway.url,
        ADMIN,
        'GET /api/channel/health',
      )
      return data.items.find(({ name }) => name === 'stated')?.keys.limits[0]?.requests !== undefined
    }
    await vi.waitFor(async () => {
      const before = fixture.gateway.logs().length
      expect(await Promise.all(Array.from({ length: 6 }, isKnown))).not.toContain(false)
      expect(workersIn(fixture.gateway.logs().slice(before)).size).toBe(WORKERS)
    }, SOON)
    await Promise.all(Array.from({ length: 24 }, () => fixture.chat('ann', ask('stated'))))
    expect(keys().filter((key) => key === 'Bearer spent')).toHaveLength(1)
  })

  test('the live stream of calls at one worker shows the calls of all workers', async () => {
    const live = await open(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/log/stream',
      headers: { authorization: ROOT.access_token, 'gateway-user': '1' },
    })
    // The other workers follow once they are informed: calls that they settled before are not shown.
    await vi.waitFor(async () => {
      const before = fixture.gateway.logs().length
      const answers = await Promise.all(Array.from({ length: 16 }, () => fixture.chat('ann', ask('m'))))
      const ids = answers.map(({ headers }) => String(headers['x-request-id']))
      await vi.waitFor(() => {
        expect(ids.filter((id) => !live.text().includes(id))).toEqual([])
        expect(workersIn(fixture.gateway.logs().slice(before)).size).toBe(WORKERS)
      }, SHORTLY)
    }, SOON)
    live.abort()
    await live.end()
  })

  test('/metrics has the sums of all workers, and no counter falls when a worker is killed', async () => {
    const requests = async (): Promise<number> => {
      const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
      const line = /^sluice_requests_total\{path="\/v1\/chat\/completions",status="200"\} (\d+)$/m.exec(text)
      return Number(line?.[1])
    }
    const before = await requests()
    await Promise.all(Array.from({ length: 20 }, () => fixture.chat('ann', ask('m'))))
    await expect.poll(requests, SOON).toBe(before + 20)
    const [pid = 0] = workerPids(fixture.gateway.pid)
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => {
      expect(workerPids(fixture.gateway.pid)).toHaveLength(WORKERS)
      expect(workerPids(fixture.gateway.pid)).not.toContain(pid)
    }, SOON)
    await untilAllServe()
    expect(await requests()).toBe(before + 20)
  })
})

describe('a worker that is killed', () => {
  test('a killed worker is replaced, its calls are charged for what they delivered, and calls of other workers continue', async () => {
    const { opens, open: release } = gate()
    const live = await streams(24, opens)
    await expect.poll(() => database.openHolds().length, SOON).toBe(24)
    const [pid = 0] = workerPids(fixture.gateway.pid)
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), SOON)
    await vi.waitFor(() => expect(workerPids(fixture.gateway.pid)).toHaveLength(WORKERS), SOON)
    release()
    const answers = await Promise.all(live.map((one) => one.end()))
    const broken = answers.filter((answer) => answer.broken)
    const whole = answers.filter((answer) => !answer.broken)
    expect([broken.length, whole.length].every((count) => count > 0)).toBe(true)
    await expect.poll(() => database.openHolds(), SOON).toEqual([])
    for (const { headers } of broken)
      expect(database.usageOf(String(headers['x-request-id']))).toMatchObject({ reason: 'crash' })
    for (const { headers, text } of whole) {
      expect(text).toContain('[DONE]')
      expect(database.usageOf(String(headers['x-request-id']))).toMatchObject({
        reason: 'complete',
        quota: COST,
      })
    }
    expectExact()
    await untilAllServe()
  })

  test('calls of killed workers release their holds, and their places in a limit of calls in flight, at once', async () => {
    const { opens, open: release } = gate()
    const live = await streams(8, opens)
    fixture.upstream.script('m', { kind: 'whole', after: opens })
    const held = Array.from({ length: 5 }, () => fixture.chat('five', ask('m')).catch(() => undefined))
    await expect.poll(() => fixture.upstream.received('m').length, SOON).toBe(5)
    for (const pid of workerPids(fixture.gateway.pid)) process.kill(pid, 'SIGKILL')
    await Promise.all([...held, ...live.map((one) => one.end())])
    await expect.poll(() => database.openHolds(), SOON).toEqual([])
    release()
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    await vi.waitFor(async () => expect((await fixture.chat('five', ask('m'))).status).toBe(200), SOON)
    expectExact()
  })

  test('a killed worker is restarted with the configuration in use, even if gateway.yaml has an error meanwhile', async () => {
    const refused = (): number => fixture.gateway.logs().match(/configuration refused/g)?.length ?? 0
    const before = refused()
    void fixture.gateway.apply('models: [').catch(() => {})
    await expect.poll(refused, SOON).toBe(before + 1)
    const [pid = 0] = workerPids(fixture.gateway.pid)
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), SOON)
    await vi.waitFor(() => expect(workerPids(fixture.gateway.pid)).toHaveLength(WORKERS), SOON)
    await untilAllServe()
    await fixture.gateway.apply(config)
  })
})

describe('the end of all processes', () => {
  test("when the gateway's main process is killed, all workers end, and the next start settles the calls in flight", async () => {
    const { opens, open: release } = gate()
    const live = await streams(16, opens)
    await expect.poll(() => database.openHolds().length, SOON).toBe(16)
    const pids = workerPids(fixture.gateway.pid)
    await fixture.gateway.kill()
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), SOON)
    expect((await Promise.all(live.map((one) => one.end()))).map(({ broken }) => broken)).not.toContain(false)
    release()
    await fixture.gateway.restart()
    expect(database.openHolds()).toEqual([])
    for (const { headers } of live)
      expect(database.usageOf(String(headers['x-request-id']))).toMatchObject({ reason: 'crash' })
    expectExact()
    // A gateway takes calls before its start has ended, and reports at the end.
    await expect
      .poll(() => fixture.gateway.logs(), SOON)
      .toContain('Settled 16 calls that an earlier run left open')
  })

  test('on SIGTERM the streams of all workers finish, and no process or hold remains', async () => {
    const { opens, open: release } = gate()
    const live = await streams(16, opens)
    const pids = workerPids(fixture.gateway.pid)
    const stopping = fixture.gateway.stop()
    // No worker listens any more.
    await vi.waitFor(() => expect(open(fixture.gateway.url, ask('m'))).rejects.toThrow(), SOON)
    release()
    const answers = await Promise.all(live.map((one) => one.end()))
    expect(answers.map(({ broken }) => broken)).not.toContain(true)
    expect(await stopping).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
    expect(database.openHolds()).toEqual([])
    for (const { headers } of live)
      expect(database.usageOf(String(headers['x-request-id']))).toMatchObject({ reason: 'complete' })
    expectExact()
    await fixture.gateway.restart()
  })
})
