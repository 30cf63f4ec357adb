import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
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
import { type RunningGateway, startGateway } from '../equipment/gateway.ts'
import { dateClock } from '../equipment/moved-clock.ts'
import { patchedProgram } from '../equipment/patched-copy.ts'
import { type ScriptedUpstream, startUpstream } from '../equipment/scripted-upstream.ts'
import { type StoringUpstream, storingUpstream } from '../equipment/stored-responses.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

/** 100 tokens of the prompt at one quota unit, 50 of the output at four. */
const CHARGE = 300
const DAY_SECONDS = 24 * 3_600

interface Stage {
  readonly gateway: RunningGateway
  readonly upstream: ScriptedUpstream
  readonly provider: StoringUpstream
  readonly client: OpenAI
}

/** Limits beside what the configuration says. */
interface Limited {
  readonly channel?: object
  readonly models?: Record<string, unknown>
  readonly rate_limits?: Record<string, unknown>
  /** Whether a second channel serves the same model. */
  readonly twin?: boolean
}

const configuration = (
  upstream: ScriptedUpstream,
  { channel: fields, models, twin, ...limits }: Limited = {},
): Configuration => ({
  ...limits,
  options: { keep_responses: '1h' },
  models: { ...priced(['m', 'chat']), ...models },
  channels: [
    channel('m', upstream.baseUrl('m'), { protocol: 'responses', ...fields }),
    ...(twin ? [channel('twin', upstream.baseUrl('twin'), { protocol: 'responses', models: ['m'] })] : []),
    channel('chat', upstream.baseUrl('chat')),
  ],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

const clientOf = ({ url }: RunningGateway): OpenAI =>
  new OpenAI({ apiKey: 'sk-ann', baseURL: `${url}/v1`, maxRetries: 0 })

async function stage({
  limited,
  ...options
}: {
  env?: Readonly<Record<string, string>>
  root?: string
  limited?: Limited
} = {}): Promise<Stage> {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const provider = storingUpstream('m')
  for (const lane of ['m', 'twin']) upstream.decide(lane, (request) => provider.decision(request))
  const gateway = await startGateway({ config: configuration(upstream, limited), ...options })
  onTestFinished(() => gateway.discard())
  return { gateway, upstream, provider, client: clientOf(gateway) }
}

const usage = ({ dataDir }: RunningGateway): UsageRow[] => databaseOf(dataDir).usage()
const holds = ({ dataDir }: RunningGateway): number => databaseOf(dataDir).openHolds().length

/** The only usage row, once it is there. */
function charged(gateway: RunningGateway): Promise<UsageRow> {
  return vi.waitFor(() => {
    const rows = usage(gateway)
    expect(rows).toHaveLength(1)
    expect(holds(gateway)).toBe(0)
    return rows[0] as UsageRow
  }, 60_000)
}

const begin = ({ client }: Stage): Promise<OpenAI.Responses.Response> =>
  client.responses.create({ model: 'm', input: 'hi', background: true, max_output_tokens: 100 })

/** The same client after a restart, which has another port. */
const again = ({ gateway }: Stage): OpenAI => clientOf(gateway)

describe('a response in the background', () => {
  test('is held until a GET sees that it is done, and charged once by its usage', async () => {
    const on = await stage()
    const { id, status } = await begin(on)
    expect(status).toBe('in_progress')
    expect(usage(on.gateway)).toHaveLength(0)
    expect(holds(on.gateway)).toBe(1)
    expect((await on.client.responses.retrieve(id)).status).toBe('in_progress')
    expect(usage(on.gateway)).toHaveLength(0)
    on.provider.backgroundStatus = 'completed'
    expect((await on.client.responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE, reason: 'complete', model: 'm' })
    await Promise.all(Array.from({ length: 5 }, () => on.client.responses.retrieve(id)))
    expect(usage(on.gateway)).toHaveLength(1)
    await on.client.responses.delete(id)
    await expect(on.client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('is cancelled, and charged for its prompt where the upstream tells no usage', async () => {
    const on = await stage()
    const { id } = await begin(on)
    expect(await on.client.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    const row = await charged(on.gateway)
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThan(0)
    expect(row.quota).toBeLessThan(100)
    expect(row.input_tokens).toBe(row.quota)
  })

  test('is not deleted while it is made, and charged before it is', async () => {
    const on = await stage()
    const { id } = await begin(on)
    await expect(on.client.responses.delete(id)).rejects.toMatchObject({ status: 400 })
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.delete(id)
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE })
    expect(on.provider.made).toHaveLength(0)
  })

  test.each(['kill', 'stop'] as const)('outlives the gateway: %s', async (how) => {
    const on = await stage()
    const { id } = await begin(on)
    await on.gateway[how]()
    await on.gateway.restart()
    expect(usage(on.gateway)).toHaveLength(0)
    expect(holds(on.gateway)).toBe(1)
    on.provider.backgroundStatus = 'completed'
    expect((await again(on).responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    expect(databaseOf(on.gateway.dataDir).user('ann').used_quota).toBe(CHARGE)
  })

  test.each([
    ['its key', { rate_limits: { key: { tokens: 100, window: '1h' } } }],
    [
      'its model',
      { models: { m: { vendor: 'acme', price: PLAIN_PRICE, rate_limit: { tokens: 100, window: '1h' } } } },
    ],
    ['its channel', { channel: { rate_limit: { tokens: 100, window: '1h' } } }],
  ])('counts on the token limit of %s once it is settled', async (_, limited) => {
    const on = await stage({ limited })
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    await vi.waitFor(() => expect(usage(on.gateway)).toHaveLength(1), 30_000)
    expect(usage(on.gateway)[0]).toMatchObject({ quota: CHARGE })
    await expect(begin(on)).rejects.toMatchObject({ status: 429 })
  })

  test.each([false, true])(
    'whose id cannot be stored is begun once, and cancelled; stream: %s',
    async (stream) => {
      const copy = await patchedProgram([
        {
          file: 'src/relay/state/response-store.ts',
          text: "await this.#rows.write('storeResponse', response)",
          by: 'throw new StoreUnavailable(`not ${response.id}`)',
        },
      ])
      onTestFinished(() => copy.discard())
      const on = await stage({ root: copy.root, limited: { twin: true } })
      for (const lane of ['m', 'twin'])
        on.upstream.decide(lane, (request) => {
          const decided = on.provider.decision(request)
          if (decided.kind !== 'stream') return decided
          return { ...decided, frames: (decided.frames ?? []).slice(0, 2), ending: 'stall' }
        })
      const body = { model: 'm', input: 'hi', background: true, stream }
      const refused = await call(on.gateway.url, body, { key: 'ann', path: '/v1/responses' })
      expect(refused.status).toBe(503)
      await vi.waitFor(() => expect(on.provider.made).toMatchObject([{ status: 'cancelled' }]), 30_000)
      expect(holds(on.gateway)).toBe(0)
    },
  )

  test('without usage is charged by a count, and the price of a request once', async () => {
    const price = { ...PLAIN_PRICE, request: 0.002 }
    const on = await stage({ limited: { models: { m: { vendor: 'acme', price } } } })
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'completed'
    on.upstream.decide('m', (request) => {
      const decided = on.provider.decision(request)
      if (decided.kind !== 'whole') return decided
      return {
        ...decided,
        body: String(decided.body).replace(/"usage":\{.*?\}\s*,"x_big/, '"usage":null,"x_big'),
      }
    })
    await on.client.responses.retrieve(id)
    const row = await charged(on.gateway)
    expect(row.reason).toBe('estimated')
    expect(row.output_tokens).toBeGreaterThan(0)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens + 1_000)
  })

  test('that failed costs nothing', async () => {
    const on = await stage()
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'failed'
    await on.client.responses.retrieve(id)
    expect(await charged(on.gateway)).toMatchObject({ quota: 0, reason: 'failed' })
  })

  test('goes on when the client of its stream leaves, and when the gateway is killed meanwhile', async () => {
    const on = await stage()
    const frames = await streamOf(on)
    on.upstream.decide('m', (request) =>
      request.method === 'POST'
        ? { ...frames, frames: frames.frames.slice(0, 4), ending: 'stall' }
        : on.provider.decision(request),
    )
    const body = { model: 'm', input: 'hi', background: true, stream: true, max_output_tokens: 100 }
    const live = await open(on.gateway.url, body, { key: 'ann', path: '/v1/responses' })
    await live.until('output_text.delta')
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(live.text()) ?? []
    // Within 100 ms of a request, the end of sending does not mean yet that the client has left.
    await sleep(200)
    live.abort()
    await on.upstream.received('m').at(-1)?.ended
    await on.gateway.kill()
    await on.gateway.restart()
    expect(holds(on.gateway)).toBe(1)
    expect((await again(on).responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('goes on when the client of its stream leaves while its id is being stored', async () => {
    const copy = await patchedProgram([
      {
        file: 'src/relay/state/response-store.ts',
        text: "await this.#rows.write('storeResponse', response)",
        by: `console.log('storing ' + response.id + ';')
          await new Promise((resolve) => process.once('SIGUSR2', resolve))
          await this.#rows.write('storeResponse', response)`,
      },
    ])
    onTestFinished(() => copy.discard())
    const on = await stage({ root: copy.root })
    const frames = await streamOf(on)
    on.upstream.decide('m', (request) =>
      request.method === 'POST'
        ? { ...frames, frames: frames.frames.slice(0, 4), ending: 'stall' }
        : on.provider.decision(request),
    )
    const leaving = send(
      on.gateway.url,
      { model: 'm', input: 'hi', background: true, stream: true, max_output_tokens: 100 },
      { key: 'ann', path: '/v1/responses' },
    )
    const storing = /storing (resp_\w+);/
    await vi.waitFor(() => expect(on.gateway.logs()).toMatch(storing), 30_000)
    leaving.destroy()
    await on.upstream.only('m').ended
    // Counted after the prompt of the call, if that is counted: a charge would have been made by now.
    await on.client.responses.inputTokens.count({ model: 'chat', input: 'hi' })
    process.kill(on.gateway.pid, 'SIGUSR2')
    const [, id = ''] = storing.exec(on.gateway.logs()) ?? []
    await vi.waitFor(async () => {
      expect((await on.client.responses.retrieve(id)).status).toBe('completed')
      expect(usage(on.gateway)).toHaveLength(1)
    }, 60_000)
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE, reason: 'complete' })
  })

  test('goes on when its client leaves before the first answer, which is still read', async () => {
    const on = await stage({ limited: { channel: { on_client_gone: 'drain' } } })
    const { promise: after, resolve: answer } = Promise.withResolvers<void>()
    on.upstream.decide('m', (request) => ({
      ...on.provider.decision(request),
      ...(request.method === 'POST' ? { after } : {}),
    }))
    const leaving = new AbortController()
    const begun = on.client.responses.create(
      { model: 'm', input: 'hi', background: true },
      { signal: leaving.signal },
    )
    await vi.waitFor(() => expect(on.upstream.received('m')).toHaveLength(1), 30_000)
    leaving.abort()
    await expect(begun).rejects.toThrow()
    await delay(200)
    answer()
    await on.upstream.only('m').ended
    await on.gateway.stop()
    expect(usage(on.gateway)).toHaveLength(0)
    expect(holds(on.gateway)).toBe(1)
  })

  test('whose stream ends is charged once, by its end', async () => {
    const on = await stage()
    const events = await on.client.responses.create({
      model: 'm',
      input: 'hi',
      background: true,
      stream: true,
    })
    let id = ''
    for await (const event of events) if (event.type === 'response.completed') ({ id } = event.response)
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE })
  })

  test('is asked for by the gateway itself, and after a day settled at the held amount', async () => {
    const copy = await patchedProgram([
      { file: 'src/relay/state/background-calls.ts', text: 'POLL_MS = 60_000', by: 'POLL_MS = 200' },
    ])
    onTestFinished(() => copy.discard())
    const clock = dateClock()
    const on = await stage({ root: copy.root, env: clock.env })
    await begin(on)
    on.provider.backgroundStatus = 'completed'
    expect(await charged(on.gateway)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    on.provider.backgroundStatus = 'in_progress'
    await begin(on)
    const held = databaseOf(on.gateway.dataDir).openHolds()[0]?.amount
    clock.move(DAY_SECONDS + 60)
    const row = await vi.waitFor(() => {
      expect(usage(on.gateway)).toHaveLength(2)
      return usage(on.gateway).at(-1)
    }, 60_000)
    expect(row).toMatchObject({ quota: held, reason: 'estimated' })
  })
})

/** The stream of a background response that the provider goes on to finish. */
async function streamOf({ provider }: Stage): Promise<{ kind: 'stream'; frames: readonly string[] }> {
  const made = provider.decision({
    method: 'POST',
    path: '/v1/responses',
    headers: { authorization: 'Bearer upstream-key-of-m' },
    text: '{"background":true,"stream":true}',
  } as never)
  provider.backgroundStatus = 'completed'
  return Promise.resolve(made as { kind: 'stream'; frames: readonly string[] })
}

describe.each(SHARED)('two nodes on one $name', (engine) => {
  test('know the responses of each other, and charge one in the background once, whoever sees its end', async () => {
    const nodes = await setNodes(engine, 2, (upstream) => configuration(upstream))
    const provider = storingUpstream('m')
    nodes.upstream.decide('m', (request) => provider.decision(request))
    const [one, two] = nodes.gateways.map(clientOf)
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
