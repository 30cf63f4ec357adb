import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type FullResponse, call, open, send } from '../equipment/client.ts'
import {
  type Configuration,
  channel,
  PLAIN_PRICE,
  priced,
  ROOT,
  token,
  user,
} from '../equipment/configuration.ts'
import { databaseOf, type UsageRow } from '../equipment/database.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'
import type { RunningGateway } from '../equipment/gateway.ts'
import { dateClock, type MovedClock } from '../equipment/moved-clock.ts'
import type { Patch } from '../equipment/patch.ts'
import { patchedProgram } from '../equipment/patched-copy.ts'
import type { ScriptedUpstream } from '../equipment/scripted-upstream.ts'
import { type StoringUpstream, storingUpstream } from '../equipment/stored-responses.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

/** 100 tokens of the prompt at one quota unit, 50 of the output at four. */
const CHARGE = 300
const DAY_SECONDS = 24 * 3_600

/** Settings of a case beside the usual ones. */
interface Case {
  readonly channel?: object
  readonly model?: object
  /** Whether a second channel serves the same model. */
  readonly twin?: boolean
}

/** Cases by their names, which are those of their models, channels, users and keys. */
type Cases = Readonly<Record<string, Case>>

/** A case on the gateway that it shares with others. */
interface Stage {
  readonly name: string
  readonly gateway: RunningGateway
  readonly upstream: ScriptedUpstream
  readonly provider: StoringUpstream
  readonly client: OpenAI
}

/** Limits that one call uses up, and one that two calls use up. */
const ONE_CALL = { tokens: 100, window: '1h' }
const TWO_CALLS = { tokens: 200, window: '1h' }
/** Each makes one call with its key, but the case of the key's limit. */
const CASES: Cases = {
  held: {},
  cancelled: {},
  deleted: {},
  kill: {},
  stop: {},
  key: {},
  model: { model: { rate_limit: ONE_CALL } },
  channel: { channel: { rate_limit: ONE_CALL } },
  uncounted: { model: { price: { ...PLAIN_PRICE, request: 0.002 } } },
  failed: {},
  left: {},
  streamed: {},
  drained: { channel: { on_client_gone: 'drain' } },
}
const PATCHED_CASES: Cases = {
  unstored: { twin: true },
  unstoredStream: { twin: true },
  late: {},
  asked: {},
}
/** The store refuses the ids of one model and waits with those of another; upstreams are asked often. */
const PATCHES: readonly Patch[] = [
  {
    file: 'src/relay/state/response-store.ts',
    text: "await this.#rows.write('storeResponse', response)",
    by: `{
      if (response.model.startsWith('unstored')) throw new StoreUnavailable('not ' + response.id)
      if (response.model === 'late') {
        console.log('storing ' + response.id + ';')
        await new Promise((resolve) => process.once('SIGUSR2', resolve))
      }
      await this.#rows.write('storeResponse', response)
    }`,
  },
  { file: 'src/relay/state/background-calls.ts', text: 'POLL_MS = 60_000', by: 'POLL_MS = 200' },
]

const configuration = (upstream: ScriptedUpstream, cases: Cases): Configuration => ({
  options: { keep_responses: '1h' },
  models: {
    ...priced(['chat']),
    ...Object.fromEntries(
      Object.entries(cases).map(([name, { model }]) => [
        name,
        { vendor: 'acme', price: PLAIN_PRICE, ...model },
      ]),
    ),
  },
  channels: [
    ...Object.entries(cases).flatMap(([name, { channel: fields, twin }]) =>
      lanesOf(name, twin).map((lane) =>
        channel(lane, upstream.baseUrl(lane), { protocol: 'responses', models: [name], ...fields }),
      ),
    ),
    channel('chat', upstream.baseUrl('chat')),
  ],
  users: [ROOT, ...['ann', ...Object.keys(cases)].map((name, n) => user(2 + n, name, [token(name)]))],
})

function lanesOf(name: string, twin = false): readonly string[] {
  return twin ? [name, `${name}-twin`] : [name]
}

const clientOf = ({ url }: RunningGateway, key: string): OpenAI =>
  new OpenAI({ apiKey: `sk-${key}`, baseURL: `${url}/v1`, maxRetries: 0 })

let shared: Fixture
let patched: Fixture
let clock: MovedClock
const atEnd: (() => Promise<void> | void)[] = []
beforeAll(async () => {
  shared = await startFixture((upstream) => ({
    ...configuration(upstream, CASES),
    rate_limits: { key: TWO_CALLS },
  }))
  const copy = await patchedProgram(PATCHES)
  atEnd.push(() => copy.discard())
  clock = dateClock((cleanUp) => atEnd.push(cleanUp))
  patched = await startFixture((upstream) => configuration(upstream, PATCHED_CASES), {
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

function stage(name: string): Stage {
  const cases = name in CASES ? CASES : PATCHED_CASES
  const { gateway, upstream } = cases === CASES ? shared : patched
  const provider = storingUpstream(name)
  for (const lane of lanesOf(name, cases[name]?.twin))
    upstream.decide(lane, (request) => provider.decision(request))
  return { name, gateway, upstream, provider, client: clientOf(gateway, name) }
}

function usage({ gateway, name }: Stage): UsageRow[] {
  return databaseOf(gateway.dataDir)
    .usage()
    .filter(({ model }) => model === name)
}

function holds({ gateway, name }: Stage): { readonly amount: number }[] {
  const database = databaseOf(gateway.dataDir)
  const { id } = database.token(`token-${name}`)
  return database.openHolds().filter(({ token_id: of }) => of === id)
}

/** The only usage row, once it is there. */
function charged(on: Stage): Promise<UsageRow> {
  return vi.waitFor(() => {
    const rows = usage(on)
    expect(rows).toHaveLength(1)
    expect(holds(on)).toHaveLength(0)
    return rows[0] as UsageRow
  }, 60_000)
}

const begin = ({ client, name: model }: Stage): Promise<OpenAI.Responses.Response> =>
  client.responses.create({ model, input: 'hi', background: true, max_output_tokens: 100 })

/** A client with no connection from before a restart. */
const again = ({ gateway, name }: Stage): OpenAI => clientOf(gateway, name)

describe('a response in the background', () => {
  test('is held until a GET sees that it is done, and charged once by its usage', async () => {
    const on = stage('held')
    const { id, status } = await begin(on)
    expect(status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
    expect((await on.client.responses.retrieve(id)).status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    on.provider.backgroundStatus = 'completed'
    expect((await on.client.responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    await Promise.all(Array.from({ length: 5 }, () => on.client.responses.retrieve(id)))
    expect(usage(on)).toHaveLength(1)
    await on.client.responses.delete(id)
    await expect(on.client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('is cancelled, and charged for its prompt where the upstream tells no usage', async () => {
    const on = stage('cancelled')
    const { id } = await begin(on)
    expect(await on.client.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    const row = await charged(on)
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThan(0)
    expect(row.quota).toBeLessThan(100)
    expect(row.input_tokens).toBe(row.quota)
  })

  test('is not deleted while it is made, and charged before it is', async () => {
    const on = stage('deleted')
    const { id } = await begin(on)
    await expect(on.client.responses.delete(id)).rejects.toMatchObject({ status: 400 })
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.delete(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
    expect(on.provider.made).toHaveLength(0)
  })

  test.each(['kill', 'stop'] as const)('outlives the gateway: %s', async (how) => {
    const on = stage(how)
    const { id } = await begin(on)
    await on.gateway[how]()
    await on.gateway.restart()
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
    on.provider.backgroundStatus = 'completed'
    expect((await again(on).responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    expect(databaseOf(on.gateway.dataDir).user(how).used_quota).toBe(CHARGE)
  })

  test.each([
    ['its key', 'key', 2, 'key'],
    ['its model', 'model', 1, 'ann'],
    ['its channel', 'channel', 1, 'ann'],
  ])('counts on the token limit of %s once it is settled', async (_, name, calls, nextKey) => {
    const on = stage(name)
    for (let made = 1; made <= calls; made += 1) {
      on.provider.backgroundStatus = 'in_progress'
      const { id } = await begin(on)
      on.provider.backgroundStatus = 'completed'
      await on.client.responses.retrieve(id)
      await vi.waitFor(() => expect(usage(on)).toHaveLength(made), 60_000)
    }
    expect(usage(on)[0]).toMatchObject({ quota: CHARGE })
    const next = { ...on, client: clientOf(on.gateway, nextKey) }
    await expect(begin(next)).rejects.toMatchObject({ status: 429 })
  })

  test.each([false, true])(
    'whose id cannot be stored is begun once, and cancelled; stream: %s',
    async (stream) => {
      const on = stage(stream ? 'unstoredStream' : 'unstored')
      for (const lane of lanesOf(on.name, true))
        on.upstream.decide(lane, (request) => {
          const decided = on.provider.decision(request)
          if (decided.kind !== 'stream') return decided
          return { ...decided, frames: (decided.frames ?? []).slice(0, 2), ending: 'stall' }
        })
      const body = { model: on.name, input: 'hi', background: true, stream }
      const refused = await call(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
      expect(refused.status).toBe(503)
      await vi.waitFor(() => expect(on.provider.made).toMatchObject([{ status: 'cancelled' }]), 60_000)
      expect(holds(on)).toHaveLength(0)
    },
  )

  test('without usage is charged by a count, and the price of a request once', async () => {
    const on = stage('uncounted')
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'completed'
    on.upstream.decide(on.name, (request) => {
      const decided = on.provider.decision(request)
      if (decided.kind !== 'whole') return decided
      return {
        ...decided,
        body: String(decided.body).replace(/"usage":\{.*?\}\s*,"x_big/, '"usage":null,"x_big'),
      }
    })
    await on.client.responses.retrieve(id)
    const row = await charged(on)
    expect(row.reason).toBe('estimated')
    expect(row.output_tokens).toBeGreaterThan(0)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens + 1_000)
  })

  test('that failed costs nothing', async () => {
    const on = stage('failed')
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'failed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: 0, reason: 'failed' })
  })

  test('goes on when the client of its stream leaves, and when the gateway is killed meanwhile', async () => {
    const on = stage('left')
    const frames = await streamOf(on)
    on.upstream.decide(on.name, (request) =>
      request.method === 'POST'
        ? { ...frames, frames: frames.frames.slice(0, 4), ending: 'stall' }
        : on.provider.decision(request),
    )
    const body = { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 100 }
    const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
    await live.until('output_text.delta')
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(live.text()) ?? []
    // Within 100 ms of a request, the end of sending does not mean yet that the client has left.
    await sleep(200)
    live.abort()
    await on.upstream.received(on.name).at(-1)?.ended
    await on.gateway.kill()
    await on.gateway.restart()
    expect(holds(on)).toHaveLength(1)
    expect((await again(on).responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('goes on when the client of its stream leaves while its id is being stored', async () => {
    const on = stage('late')
    const frames = await streamOf(on)
    on.upstream.decide(on.name, (request) =>
      request.method === 'POST'
        ? { ...frames, frames: frames.frames.slice(0, 4), ending: 'stall' }
        : on.provider.decision(request),
    )
    const leaving = send(
      on.gateway.url,
      { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 100 },
      { key: on.name, path: '/v1/responses' },
    )
    const storing = /storing (resp_\w+);/
    await vi.waitFor(() => expect(on.gateway.logs()).toMatch(storing), 60_000)
    leaving.destroy()
    await on.upstream.only(on.name).ended
    // Counted after the prompt of the call, if that is counted: a charge would have been made by now.
    await on.client.responses.inputTokens.count({ model: 'chat', input: 'hi' })
    process.kill(on.gateway.pid, 'SIGUSR2')
    const [, id = ''] = storing.exec(on.gateway.logs()) ?? []
    await vi.waitFor(async () => {
      expect((await on.client.responses.retrieve(id)).status).toBe('completed')
      expect(usage(on)).toHaveLength(1)
    }, 60_000)
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('whose stream ends is charged once, by its end', async () => {
    const on = stage('streamed')
    const events = await on.client.responses.create({
      model: on.name,
      input: 'hi',
      background: true,
      stream: true,
    })
    let id = ''
    for await (const event of events) if (event.type === 'response.completed') ({ id } = event.response)
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
  })

  test('is asked for by the gateway itself, and after a day settled at the held amount', async () => {
    const on = stage('asked')
    await begin(on)
    on.provider.backgroundStatus = 'completed'
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    on.provider.backgroundStatus = 'in_progress'
    await begin(on)
    const held = holds(on)[0]?.amount
    clock.move(DAY_SECONDS + 60)
    const row = await vi.waitFor(() => {
      expect(usage(on)).toHaveLength(2)
      return usage(on).at(-1)
    }, 60_000)
    expect(row).toMatchObject({ quota: held, reason: 'estimated' })
  })

  test('goes on when its client leaves before the first answer, which is still read', async () => {
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
    await delay(200)
    answer()
    await on.upstream.only(on.name).ended
    await on.gateway.stop()
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
  })
})

/** The stream of a background response that the provider goes on to finish. */
async function streamOf({ provider, name }: Stage): Promise<{ kind: 'stream'; frames: readonly string[] }> {
  const made = provider.decision({
    method: 'POST',
    path: '/v1/responses',
    headers: { authorization: `Bearer upstream-key-of-${name}` },
    text: '{"background":true,"stream":true}',
  } as never)
  provider.backgroundStatus = 'completed'
  return Promise.resolve(made as { kind: 'stream'; frames: readonly string[] })
}

describe.each(SHARED)('two nodes on one $name', (engine) => {
  test('know the responses of each other, and charge one in the background once, whoever sees its end', async () => {
    const nodes = await setNodes(engine, 2, (upstream) => configuration(upstream, { m: {} }))
    const provider = storingUpstream('m')
    nodes.upstream.decide('m', (request) => provider.decision(request))
    const [one, two] = nodes.gateways.map((gateway) => clientOf(gateway, 'ann'))
    if (!one || !two) throw new Error('there are no two nodes')
    const first = await one.responses.create({ model: 'm', input: 'hi' })
    const next = await two.responses.create({ model: 'm', input: 'on', previous_response_id: first.id })
    expect(await one.responses.retrieve(next.id)).toMatchObject({ previous_response_id: first.id })
    const kept = await one.responses.create({ model: 'chat', input: 'hi' })
    await two.responses.create({ model: 'chat', input: 'on', previous_response_id: kept.id })
    const [, said] = nodes.upstream.received('chat').map(({ text }) => JSON.parse(text).messages)
    expect(said).toMatchObject([{ content: 'hi' }, { role: 'assistant' }, { content: 'on' }])
    const { id } = await one.responses.create({ model: 'm', input: 'hi', background: true })
    provider.backgroundStatus = 'completed'
    expect((await two.responses.retrieve(id)).status).toBe('completed')
    await two.responses.delete(id)
    await vi.waitFor(async () => {
      const rows = await nodes.database.sql(`select quota, reason from usage_log where model = 'm'`)
      expect(rows).toEqual(Array.from({ length: 3 }, () => ({ quota: CHARGE, reason: 'complete' })))
    }, 60_000)
    const [sums] = await nodes.database.sql(
      `select used_quota as used, (select sum(quota)::bigint from usage_log) as charged from users where username = 'ann'`,
    )
    expect(sums?.['used']).toBe(sums?.['charged'])
    const answer: FullResponse = await call(nodes.gateways[0]?.url ?? '', undefined, {
      key: 'ann',
      method: 'GET',
      path: `/v1/responses/${id}`,
    })
    expect(answer.status).toBe(404)
  })
})
