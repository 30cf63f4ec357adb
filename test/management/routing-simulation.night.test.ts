import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const BEA = { id: 3, accessToken: 'the-access-token-of-bea' }

interface Step {
  readonly model: string
  readonly fallback: boolean
  readonly priority: number
  readonly channels: readonly {
    readonly id: number
    readonly name: string
    readonly condition: string
    readonly native: boolean
    readonly share: number
    readonly why_not: string | null
  }[]
}
interface Simulation {
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null
  readonly group: string
  readonly ratio: string
  readonly hold: number
  readonly route: readonly Step[]
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const at = (name: string, of: object = {}) =>
      channel(name, upstream.baseUrl(name), { models: ['m'], ...of })
    return {
      rate_limits: { global: { requests: 0 } },
      groups: { default: { ratio: 2 }, other: { ratio: 1 } },
      models: {
        ...priced(['unserved']),
        m: {
          price: { input: 1, output: 2, cache_write_5m: 1, cache_write_1h: 1, cache_write_12h: 1 },
          fallback: ['spare'],
        },
        busy: { price: { input: 1, output: 2 }, balance: 'least_busy' },
        swift: { price: { input: 1, output: 2 }, balance: 'latency' },
        limited: { price: { input: 1, output: 2 }, rate_limit: { requests: 1, window: '60s' } },
        many: { price: { input: 1, output: 2 } },
        spare: { price: { input: 1, output: 2, cache_write_5m: 1, cache_write_1h: 1, cache_write_12h: 1 } },
      },
      channels: [
        at('one', { weight: 1 }),
        at('three', { weight: 3 }),
        at('claude', { protocol: 'messages', weight: 5 }),
        at('later', { priority: -5 }),
        at('backup', { models: ['spare'] }),
        // As long as a test may take: a stream of this channel stalls during many calls.
        at('occupied', { models: ['busy'], timeouts: { idle: '300s' } }),
        at('idle', { models: ['busy'] }),
        at('slow', { models: ['swift'] }),
        at('quick', { models: ['swift'] }),
        at('strict', { models: ['limited'] }),
        at('bulk', { models: ['many'], batches: 'only' }),
        at('single', { models: ['many'] }),
      ],
      users: [
        ROOT,
        user(2, 'ada', [token('ada')]),
        user(3, 'bea', [], { access_token: BEA.accessToken, role: 10 }),
        user(4, 'poor', [token('poor')], { quota: 1 }),
        user(5, 'cy', [token('off', { status: 2 })]),
        user(6, 'dora', [
          token('once', { rate_limit: { requests: 1, window: '60s' } }),
          token('single', { rate_limit: { parallel: 1 } }),
          token('thrifty', { budget: 10, budget_period: 'day' }),
        ]),
      ],
    }
  })
})
afterAll(() => fixture?.close())

const simulate = async (body: object): Promise<Simulation> =>
  (await manage<Simulation>(fixture.gateway.url, BEA, 'POST /api/routing/simulate', body)).data
const shares = ({ route }: Simulation): Record<string, number> =>
  Object.fromEntries(route.flatMap(({ channels }) => channels.map(({ name, share }) => [name, share])))
async function idOf(name: string): Promise<number> {
  const { data } = await manage<{ items: { id: number; name: string }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/channel/',
  )
  return data.items.find((one) => one.name === name)?.id ?? 0
}

test('the route of a model lists its channels in the order of attempts, with the shares of real calls', async () => {
  const simulated = await simulate({ model: 'm', group: 'default' })
  expect(simulated).toMatchObject({ refusal: null, group: 'default', ratio: '2' })
  expect(simulated.route.map(({ model, fallback, priority }) => [model, fallback, priority])).toEqual([
    ['m', false, 0],
    ['m', false, -5],
    ['spare', true, 0],
  ])
  expect(shares(simulated)).toEqual({ one: 0.25, three: 0.75, claude: 0, later: 1, backup: 1 })
  expect(simulated.route[0]?.channels).toContainEqual(
    expect.objectContaining({ name: 'claude', native: false, condition: 'untried', why_not: null }),
  )
  for (const name of ['one', 'three']) fixture.upstream.script(name, { kind: 'whole' })
  for (let call = 0; call < 200; call += 1) await fixture.chat('ada', ask('m'))
  const [one, three] = ['one', 'three'].map((name) => fixture.upstream.received(name).length)
  expect((one ?? 0) + (three ?? 0)).toBe(200)
  // Far beyond chance: with a share of a quarter, fewer than 20 or more than 85 of 200 happen once in a million.
  expect(one).toBeGreaterThan(20)
  expect(one).toBeLessThan(85)
})

test('a route that is simulated without one channel gives its share to the other channels, and marks drained channels', async () => {
  const without = await simulate({ model: 'm', group: 'default', without: [await idOf('three')] })
  expect(shares(without)).toMatchObject({ one: 1, three: 0 })
  expect(without.route[0]?.channels.find(({ name }) => name === 'three')?.why_not).toBe('without')
  const id = await idOf('one')
  await manage(fixture.gateway.url, AS_ROOT, `PUT /api/channel/${id}/drain`, { on: true })
  const drained = await simulate({ model: 'm', group: 'default' })
  expect(drained.route[0]?.channels.find(({ name }) => name === 'one')).toMatchObject({
    condition: 'drained',
    why_not: 'drained',
    share: 0,
  })
  const others = await Promise.all(['three', 'claude', 'later', 'backup'].map(idOf))
  const alone = await simulate({ model: 'm', group: 'default', without: others })
  expect(alone.route[0]?.channels.find(({ name }) => name === 'one')).toMatchObject({
    why_not: 'drained',
    share: 1,
  })
  await manage(fixture.gateway.url, AS_ROOT, `PUT /api/channel/${id}/drain`, { on: false })
  expect(shares(await simulate({ model: 'm', group: 'default', protocol: 'messages' }))).toMatchObject({
    claude: 1,
    one: 0,
  })
})

test('a simulated call gets the hold and the exact refusal of a real call, and nothing is sent or logged', async () => {
  const received = ['one', 'three', 'claude', 'later', 'backup'].map(
    (name) => fixture.upstream.received(name).length,
  )
  /** What a call would change: the log, the sums, and the balance of its user. */
  const traces = async () =>
    Promise.all(
      ['/api/log/', '/api/log/refused', '/api/usage?by=none', '/api/user/4'].map(
        async (path) =>
          (
            await manage<{ total?: number; totals?: object; quota?: number; used_quota?: number }>(
              fixture.gateway.url,
              AS_ROOT,
              `GET ${path}` as 'GET /',
            )
          ).data,
      ),
    ).then((all) => all.map(({ total, totals, quota, used_quota }) => [total, totals, quota, used_quota]))
  const before = await traces()
  const { data: tokens } = await manage<{ items: { id: number }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/user/4/tokens',
  )
  const simulated = await simulate({
    model: 'm',
    token_id: tokens.items[0]?.id,
    prompt_tokens: 100,
    max_tokens: 50,
  })
  // (100 × $1 + 50 × $2) / 1,000,000 × 500,000 units × the ratio 2.
  expect(simulated).toMatchObject({ hold: 200, refusal: { status: 403, code: 'insufficient_quota' } })
  expect(simulated.refusal?.message).toBe(
    'quota is not enough for this request: 1 remain, 200 are needed ($0.000002 of $0.0004); 0 are spent, 0 are held by calls under way ($0.00 and $0.00); an administrator of the gateway can raise the quota of this user',
  )
  const { data: ofCy } = await manage<{ items: { id: number }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/user/5/tokens',
  )
  const off = await simulate({ model: 'm', token_id: ofCy.items[0]?.id })
  expect(off.refusal).toMatchObject({ status: 401, code: 'token_disabled' })
  // A later call that is refused is the only new one in the list.
  await fixture.chat('off', ask('m'))
  const [log, refused, ...others] = before
  await expect.poll(traces).toEqual([log, [Number(refused?.[0]) + 1, ...refused!.slice(1)], ...others])
  const unknown = await simulate({ model: 'unserved', group: 'default' })
  const { status, text } = await fixture.chat('ada', ask('unserved'))
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  expect(unknown.refusal).toEqual({
    status,
    code: error.code,
    message: error.message.replace(/ \(request id: .*\)$/, ''),
  })
  expect(unknown.route).toEqual([])
  const answer = await manage(fixture.gateway.url, AS_ROOT, 'POST /api/routing/simulate', {
    model: 'm',
    token_id: 999,
  })
  expect(answer.status).toBe(404)
  const after = ['one', 'three', 'claude', 'later', 'backup'].map(
    (name) => fixture.upstream.received(name).length,
  )
  expect(after).toEqual(received)
})

test('with the balancing method least_busy or latency, the simulated shares of channels equal those of real calls', async () => {
  fixture.upstream.script('occupied', { kind: 'stream', events: 1, ending: 'stall' })
  fixture.upstream.script('idle', { kind: 'whole' })
  const idle = await idOf('idle')
  await manage(fixture.gateway.url, AS_ROOT, `PUT /api/channel/${idle}/drain`, { on: true })
  const live = await fixture.live('ada', ask('busy', { stream: true }))
  await live.until('data')
  await manage(fixture.gateway.url, AS_ROOT, `PUT /api/channel/${idle}/drain`, { on: false })
  fixture.upstream.script('occupied', { kind: 'whole' })
  // A tenth of the calls goes by weight, which is the same for both.
  const byLoad = shares(await simulate({ model: 'busy', group: 'default' }))
  expect(byLoad['idle']).toBeCloseTo(0.95, 9)
  expect(byLoad['occupied']).toBeCloseTo(0.05, 9)
  for (let call = 0; call < 100; call += 1) await fixture.chat('ada', ask('busy'))
  // With a share of a twentieth, more than 25 of 100 happen once in a hundred million.
  expect(fixture.upstream.received('occupied').length).toBeLessThan(25)
  live.abort()

  const wait = async (): Promise<void> => void (await new Promise((resolve) => setTimeout(resolve, 100)))
  fixture.upstream.decide('slow', () => ({ kind: 'whole', after: wait() }))
  fixture.upstream.script('quick', { kind: 'whole' })
  // The channel that was not called first gets a twentieth of the calls.
  await vi.waitFor(
    async () => {
      await fixture.chat('ada', ask('swift'))
      for (const name of ['slow', 'quick']) expect(fixture.upstream.received(name).length).toBeGreaterThan(0)
    },
    { timeout: 60_000, interval: 0 },
  )
  // The quick channel is measured as the slow one if the machine was busy; further calls correct this.
  await vi.waitFor(
    async () => {
      const byLatency = shares(await simulate({ model: 'swift', group: 'default' }))
      fixture.upstream.forget('slow')
      for (let call = 0; call < 40; call += 1) await fixture.chat('ada', ask('swift'))
      expect(byLatency['quick']).toBeCloseTo(0.95, 9)
      expect(byLatency['slow']).toBeCloseTo(0.05, 9)
      expect(fixture.upstream.received('slow').length).toBeLessThan(15)
    },
    { timeout: 240_000, interval: 0 },
  )
})

test("rate limits of key and model, parallel limits and budgets refuse a simulated call with a real call's message", async () => {
  const { data } = await manage<{ items: { id: number; name: string }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/user/6/tokens',
  )
  const compare = async (key: string, model: string, code: string): Promise<void> => {
    const token_id = data.items.find(({ name }) => name === `token-${key}`)?.id
    const call = { ...ask(model), max_tokens: 50 }
    const real = await fixture.chat(key, call)
    const { error } = JSON.parse(real.text) as { error: { code: string; message: string } }
    expect([real.status, error.code]).toEqual([code === 'rate_limited' ? 429 : 403, code])
    const words = error.message.replace(/ \(request id: .*\)$/, '')
    const { refusal } = await simulate({ model, token_id, prompt_tokens: 1_000_000, max_tokens: 50 })
    expect(refusal).toMatchObject({ status: real.status, code })
    // The amounts follow from the prompt, and seconds go by.
    const general = (sentence: string | undefined) => sentence?.replaceAll(/\d+/g, 'N')
    expect(general(refusal?.message)).toBe(general(words))
  }
  const free = await simulate({
    model: 'm',
    token_id: data.items.find(({ name }) => name === 'token-once')?.id,
  })
  expect(free.refusal).toBeNull()
  fixture.upstream.script('one', { kind: 'whole' })
  fixture.upstream.script('three', { kind: 'whole' })
  // Simulated calls count against nothing.
  for (let call = 0; call < 3; call += 1)
    expect(
      (await simulate({ model: 'm', token_id: data.items.find(({ name }) => name === 'token-once')?.id }))
        .refusal,
    ).toBeNull()
  expect((await fixture.chat('once', ask('m'))).status).toBe(200)
  await compare('once', 'm', 'rate_limited')
  fixture.upstream.script('strict', { kind: 'whole' })
  expect((await fixture.chat('ada', ask('limited'))).status).toBe(200)
  await compare('single', 'limited', 'rate_limited')
  fixture.upstream.script('backup', { kind: 'stream', events: 1, ending: 'stall' })
  const live = await fixture.live('single', ask('spare', { stream: true }))
  await live.until('data')
  await compare('single', 'm', 'rate_limited')
  live.abort()
  await compare('thrifty', 'm', 'budget_exceeded')
})

test('a channel that serves batches alone is in no simulated route, also if the others are skipped', async () => {
  await manage(fixture.gateway.url, AS_ROOT, `PUT /api/channel/${await idOf('single')}/drain`, { on: true })
  expect(shares(await simulate({ model: 'many', group: 'default' }))).toEqual({ single: 1 })
})

test('a simulated route lists a disabled channel at its place in the order, without a share', async () => {
  const { data } = await manage<{ ids: number[] }>(fixture.gateway.url, AS_ROOT, 'POST /api/channel/', {
    name: 'off',
    type: 1,
    key: 'sk-off',
    base_url: fixture.upstream.baseUrl('off'),
    models: 'm',
    status: 2,
  })
  const { route } = await simulate({ model: 'm', group: 'default' })
  expect(route[0]?.channels.find(({ name }) => name === 'off')).toMatchObject({
    id: data.ids[0],
    condition: 'disabled',
    why_not: 'disabled',
    share: 0,
  })
})
