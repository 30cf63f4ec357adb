import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  backgroundConfiguration,
  begin,
  type Cases,
  CHARGE,
  charged,
  clientOf,
  holds,
  lanesOf,
  type Stage,
  stageOf,
  usage,
} from '../fixtures/background-stage.ts'
import { manage } from '../fixtures/account.ts'
import { call, open, send } from '../fixtures/client.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

const DAY_SECONDS = 24 * 3_600
const OPERATOR = { id: 1, accessToken: ROOT.access_token }

const CASES: Cases = {
  kill: {},
  stop: {},
  unpriced: {},
  left: {},
  drained: { channel: { on_client_gone: 'drain' } },
}
const PATCHED_CASES: Cases = {
  unstored: { twin: true },
  unstoredStream: { twin: true },
  late: {},
  asked: {},
  aged: {},
  jumped: {},
  large: {},
}
/** The store refuses the ids of one model and delays those of another; upstreams are polled often. */
const PATCHES: readonly Patch[] = [
  {
    file: 'src/features/stored-responses/response-store.ts',
    text: "await this.#rows.write('storeResponse', response)",
    by: `await (async () => {
      if (response.model.startsWith('unstored')) throw new StoreUnavailable('not ' + response.id)
      if (response.model === 'late') {
        console.log('storing ' + response.id + ';')
        await new Promise((resolve) => process.once('SIGUSR2', resolve))
      }
      return this.#rows.write('storeResponse', response)
    })()`,
  },
  {
    file: 'src/features/stored-responses/background-calls.ts',
    text: 'POLL_MS = 60_000',
    by: 'POLL_MS = 200',
  },
  // For one model, a moved clock counts as time that has passed.
  {
    file: 'src/features/stored-responses/background-calls.ts',
    text: 'performance.now() - admittedAt > MAX_AGE_MS',
    by: "(hold.facts.model === 'aged' ? Date.now() - hold.facts.started_ms : performance.now() - admittedAt) > MAX_AGE_MS",
  },
]

let shared: Fixture
let patched: Fixture
let clock: MovedClock
const atEnd: (() => Promise<void> | void)[] = []
beforeAll(async () => {
  shared = await startFixture((upstream) => backgroundConfiguration(upstream, CASES))
  const copy = await patchedProgram(PATCHES)
  atEnd.push(() => copy.discard())
  clock = dateClock((cleanUp) => atEnd.push(cleanUp))
  patched = await startFixture((upstream) => backgroundConfiguration(upstream, PATCHED_CASES), {
    root: copy.root,
    env: clock.env,
  })
})
beforeEach(async () => {
  if (!shared.gateway.isRunning) await shared.gateway.restart()
})
afterAll(async () => {
  await shared?.close()
  await patched?.close()
  for (const cleanUp of atEnd) await cleanUp()
})

const stage = (name: string): Stage =>
  name in CASES ? stageOf(shared, CASES, name) : stageOf(patched, PATCHED_CASES, name)

describe('a response in the background', () => {
  test.each(['kill', 'stop'] as const)(
    'a background response is completed and charged after a restart of the gateway: %s',
    async (how) => {
      const on = stage(how)
      const { id } = await begin(on)
      await on.gateway[how]()
      await on.gateway.restart()
      expect(usage(on)).toHaveLength(0)
      expect(holds(on)).toHaveLength(1)
      on.provider.backgroundStatus = 'completed'
      expect((await clientOf(on.gateway, on.name).responses.retrieve(id)).status).toBe('completed')
      expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
      expect(databaseOf(on.gateway.dataDir).user(how).used_quota).toBe(CHARGE)
    },
  )

  test.each([false, true])(
    'a background response whose id cannot be stored is created once at its provider, and then cancelled; stream: %s',
    async (stream) => {
      const on = stage(stream ? 'unstoredStream' : 'unstored')
      for (const lane of lanesOf(on.name, PATCHED_CASES[on.name])) stallStreams(on, lane, 2)
      const body = { model: on.name, input: 'hi', background: true, stream }
      const refused = await call(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
      expect(refused.status).toBe(503)
      await vi.waitFor(() => expect(on.provider.made).toMatchObject([{ status: 'cancelled' }]), 60_000)
      await expect.poll(() => holds(on)).toHaveLength(0)
    },
  )

  test('a background response whose price is incomplete is charged after a restart, and its usage row is marked price_incomplete', async () => {
    const on = stage('unpriced')
    const tools = [{ type: 'new_thing' }] as never
    const { id } = await on.client.responses.create({
      model: on.name,
      input: 'hi',
      background: true,
      max_output_tokens: 100,
      tools,
    })
    await on.gateway.kill()
    await on.gateway.restart()
    on.provider.backgroundStatus = 'completed'
    await clientOf(on.gateway, on.name).responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE, price_incomplete: 1 })
  })

  test('a background response continues when the client of its stream leaves, and when the gateway is killed meanwhile', async () => {
    const on = stage('left')
    on.provider.backgroundStatus = 'completed'
    stallStreams(on, on.name, 4)
    const body = { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 100 }
    const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
    await live.until('output_text.delta')
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(live.text()) ?? []
    // Within 100 ms after a request, a client that closes its sending side may still be reading.
    await sleep(200)
    live.abort()
    await on.upstream.received(on.name).at(-1)?.ended
    await on.gateway.kill()
    await on.gateway.restart()
    expect(holds(on)).toHaveLength(1)
    expect((await clientOf(on.gateway, on.name).responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('a background response continues when the client of its stream leaves while its id is being stored', async () => {
    const on = stage('late')
    on.provider.backgroundStatus = 'completed'
    stallStreams(on, on.name, 4)
    const leaving = send(
      on.gateway.url,
      { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 100 },
      { key: on.name, path: '/v1/responses' },
    )
    const storing = /storing (resp_\w+);/
    await vi.waitFor(() => expect(on.gateway.logs()).toMatch(storing), 60_000)
    leaving.destroy()
    await on.upstream.only(on.name).ended
    // Counted after the prompt of the call, if that is counted: a charge would have been made by this time.
    await on.client.responses.inputTokens.count({ model: 'chat', input: 'hi' })
    process.kill(on.gateway.pid, 'SIGUSR2')
    const [, id = ''] = storing.exec(on.gateway.logs()) ?? []
    await vi.waitFor(async () => {
      expect((await on.client.responses.retrieve(id)).status).toBe('completed')
      expect(usage(on)).toHaveLength(1)
    }, 60_000)
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('a background response is polled by the gateway itself', async () => {
    const on = stage('asked')
    await begin(on)
    on.provider.backgroundStatus = 'completed'
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('a background response is settled at the held amount after a day', async () => {
    const on = stage('aged')
    on.provider.backgroundStatus = 'in_progress'
    await begin(on)
    const held = holds(on)[0]?.amount
    clock.move(DAY_SECONDS + 60)
    expect(await charged(on)).toMatchObject({ quota: held, reason: 'estimated' })
    clock.move(0)
  })

  test('a background response goes on although the clock is put forward by a day, and is charged what it used', async () => {
    const on = stage('jumped')
    on.provider.backgroundStatus = 'in_progress'
    await begin(on)
    clock.move(DAY_SECONDS + 60)
    const asked = on.upstream.received(on.name).length
    await vi.waitFor(() => expect(on.upstream.received(on.name).length).toBeGreaterThan(asked + 1), 60_000)
    expect(usage(on)).toEqual([])
    clock.move(0)
    on.provider.backgroundStatus = 'completed'
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('a background response with an answer of 5 MiB is charged after the answer was passed on', async () => {
    const on = stage('large')
    const { id } = await begin(on)
    on.upstream.decide(on.name, (request) => {
      const decided = on.provider.decision(request)
      if (decided.kind !== 'whole' || decided.body === undefined) return decided
      return { kind: 'whole', body: `${'\n'.repeat(5 * 1024 * 1024)}${String(decided.body)}` }
    })
    on.provider.backgroundStatus = 'completed'
    expect((await on.client.responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('a background response whose client leaves before the upstream answers continues, and that answer is still read', async () => {
    const on = stage('drained')
    const { promise: after, resolve: answer } = Promise.withResolvers<void>()
    on.upstream.decide(on.name, (request) => ({
      ...on.provider.decision(request),
      ...(request.method === 'POST' ? { after } : {}),
    }))
    const leaving = new AbortController()
    const begun = on.client.responses.create(
      { model: on.name, input: 'hi', background: true },
      { signal: leaving.signal },
    )
    await vi.waitFor(() => expect(on.upstream.received(on.name)).toHaveLength(1), 60_000)
    leaving.abort()
    await expect(begun).rejects.toThrow()
    await sleep(200)
    answer()
    await on.upstream.only(on.name).ended
    // A stop does not wait for a call without a client, so the gateway must have read the answer before.
    const running = async () =>
      (await manage<{ items: object[] }>(on.gateway.url, OPERATOR, 'GET /api/running')).data.items
    await expect.poll(running).toEqual([])
    await on.gateway.stop()
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
  })
})

/** Makes streams of a channel stop after this number of frames. */
function stallStreams({ upstream, provider }: Stage, lane: string, frames: number): void {
  upstream.decide(lane, (request) => {
    const decided = provider.decision(request)
    if (decided.kind !== 'stream') return decided
    return { ...decided, frames: (decided.frames ?? []).slice(0, frames), ending: 'stall' }
  })
}
