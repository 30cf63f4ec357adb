import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type Behaviour, errorBody, usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { type ProxyServer, PROXY_PASSWORD, PROXY_USER, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { atNight } from '../runner/tier.ts'

const ADMINISTRATOR = { id: ROOT.id, accessToken: ROOT.access_token }
const DAY_S = 86_400
/** The day (UTC) that is this number of days from today. */
const day = (days: number): string => new Date(Date.now() + days * DAY_S * 1000).toISOString().slice(0, 10)
const SOON = day(20)
const LATER = day(40)
const PAST = day(-1)

/** One quota unit per prompt token, four per output token; the expensive price is ten times as much. */
const PRICE = { input: 2, output: 8 }
const EXPENSIVE = { input: 20, output: 80 }

/** The model list of an upstream. */
const list = (dates: Readonly<Record<string, unknown>>): Behaviour => ({
  kind: 'status',
  status: 200,
  body: JSON.stringify({
    object: 'list',
    data: Object.entries(dates).map(([id, shutdown_date]) => ({ id, object: 'model', shutdown_date })),
  }),
})
const WHOLE: Behaviour = { kind: 'whole', usage: usageText(10, 5) }

/** Lists of the lanes, by the upstream's names. */
const LISTS: Readonly<Record<string, Behaviour>> = {
  soon: list({ soon: SOON, 'their-mapped': LATER, shared: PAST, two: SOON, lasting: null, odd: 'tomorrow' }),
  self: list({ shared: null }),
  second: list({ two: LATER }),
  past: list({ past: PAST, over: PAST, heirless: PAST, first: PAST }),
  broken: { kind: 'status', status: 500, body: '{"error":{"message":"no list"}}' },
  other: { kind: 'status', status: 200, body: '<html>' },
}

const isList = ({ method }: { readonly method: string }): boolean => method === 'GET'

/** Lets a lane answer with its list, and with a completion to calls. */
function serveList(upstream: Fixture['upstream'], lane: string, listed: Behaviour): void {
  upstream.decide(lane, (request) => {
    if (isList(request)) return listed
    return request.text.includes('"stream":true') ? { kind: 'stream' } : WHOLE
  })
}

const listings = ({ upstream }: Pick<Fixture, 'upstream'>, lane: string) =>
  upstream.received(lane).filter(isList)
const calls = ({ upstream }: Pick<Fixture, 'upstream'>, lane: string) =>
  upstream.received(lane).filter((request) => !isList(request))

interface Listed {
  readonly id: string
  readonly shutdown_date?: string
}

const modelsOf = async (
  { gateway }: Pick<Fixture, 'gateway'>,
  headers: Readonly<Record<string, string>> = { authorization: 'Bearer sk-ann' },
): Promise<Readonly<Record<string, Listed>>> => {
  const { text } = await call(gateway.url, undefined, { method: 'GET', path: '/v1/models', headers })
  const { data } = JSON.parse(text) as { data: readonly Listed[] }
  return Object.fromEntries(data.map((model) => [model.id, model]))
}

let fixture: Fixture
let proxy: ProxyServer
let startedMs: number
let readyMs: number
beforeAll(async () => {
  const routes = new Map<string, number>()
  proxy = await startHttpProxy(routes)
  startedMs = Date.now()
  fixture = await startFixture((upstream) => {
    routes.set('api.openai.com:80', upstream.port)
    for (const [lane, listed] of Object.entries(LISTS)) serveList(upstream, lane, listed)
    upstream.decide('keyed', ({ method, headers }) =>
      method === 'GET' && headers.authorization !== 'Bearer good'
        ? { kind: 'status', status: 401, body: '{}' }
        : list({ keyed: SOON }),
    )
    const through = `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    const at = (lane: string, models: readonly string[], fields = {}) =>
      channel(lane, upstream.baseUrl(lane), { models, ...fields })
    const names = ['soon', 'mapped', 'shared', 'two', 'lasting', 'odd', 'past', 'over', 'heirless', 'keyed']
    return {
      options: { model_dates: true },
      groups: { default: { ratio: 1 }, other: { ratio: 1 } },
      models: {
        ...Object.fromEntries(names.map((name) => [name, { price: PRICE }])),
        over: { price: PRICE, successor: 'next' },
        gone: { price: PRICE, successor: 'next' },
        first: { price: PRICE, successor: 'second' },
        second: { price: PRICE, successor: 'next' },
        heirless: { price: PRICE, successor: 'nowhere', fallback: ['next'] },
        soon: { price: PRICE, successor: 'next' },
        retired: { price: PRICE, successor: 'heir' },
        helped: { price: PRICE, fallback: ['heir'] },
        heir: { price: EXPENSIVE },
        next: { price: EXPENSIVE },
        'gpt-3.5-turbo-0301': { price: PRICE },
        'gpt-4-0314': { price: PRICE },
      },
      channels: [
        at('soon', ['soon', 'mapped', 'shared', 'two', 'lasting', 'odd'], {
          keys: ['k1', 'k2'],
          priority: 9,
          model_mapping: { mapped: 'their-mapped' },
        }),
        at('self', ['shared']),
        at('second', ['two']),
        at('past', ['past', 'over', 'heirless', 'first']),
        at('keyed', ['keyed'], { keys: ['bad', 'good'] }),
        at('broken', ['broken']),
        at('other', ['other']),
        at('next', ['next', 'mapped-elsewhere']),
        at('heir', ['heir'], {
          protocol: ['messages', 'responses', 'gemini'],
          model_mapping: { heir: 'their-heir' },
        }),
        channel('vendor', 'http://api.openai.com/vendor/v1', {
          models: ['gpt-3.5-turbo-0301', 'gpt-4-0314'],
          proxy: through,
          priority: 5,
        }),
        at('hosted', ['gpt-4-0314']),
      ],
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann'),
          token('narrow', { model_limits_enabled: true, model_limits: 'over,gone' }),
        ]),
      ],
    }
  })
  readyMs = Date.now()
  const ends = { past: PAST, keyed: SOON, mapped: LATER, two: LATER }
  await vi.waitUntil(
    async () => {
      const models = await modelsOf(fixture)
      return Object.entries(ends).every(([name, on]) => models[name]?.shutdown_date === on)
    },
    { timeout: 60_000, interval: 100 },
  )
})
afterAll(async () => {
  await fixture?.close()
  await proxy?.close()
})

/** Milliseconds from the start of another gateway until it reads a model list. */
async function firstReadingMs(): Promise<number> {
  const other = await startFixture((upstream) => {
    serveList(upstream, 'soon', list({ soon: SOON }))
    return {
      options: { model_dates: true },
      models: { soon: { price: PRICE } },
      channels: [channel('soon', upstream.baseUrl('soon'))],
      users: [ROOT],
    }
  })
  const beganMs = performance.now()
  try {
    await other.upstream.receivedAtLeast('soon', 1)
    return other.upstream.only('soon').at - beganMs
  } finally {
    await other.close()
  }
}

const rowOf = ({ headers }: FullResponse) =>
  databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))

describe('the end of a model', () => {
  test('the gateway reads the model list of each channel once, within ten seconds of the start', async () => {
    const [first, ...more] = listings(fixture, 'soon')
    expect(first?.path).toBe('/v1/models')
    expect(first?.headers.authorization).toMatch(/^Bearer k[12]$/)
    expect(more).toEqual([])
    let tookMs = performance.timeOrigin + (first?.at ?? 0) - readyMs
    // A halt may delay one start, and not one after the other.
    for (let start = 1; tookMs >= 10_000 && start < 4; start += 1) tookMs = await firstReadingMs()
    expect(tookMs).toBeLessThan(10_000)
  })

  test('the model list of a channel is read with another key of the channel if the provider refuses one', () => {
    expect(listings(fixture, 'keyed').map(({ headers }) => headers.authorization)).toEqual([
      'Bearer bad',
      'Bearer good',
    ])
  })

  test("the gateway's model list has the end date of a model as shutdown_date, at the model name that clients use", async () => {
    const models = await modelsOf(fixture)
    expect(models['soon']).toMatchObject({ shutdown_date: SOON })
    expect(models['mapped']).toMatchObject({ shutdown_date: LATER })
    for (const name of ['lasting', 'odd', 'next']) expect(models[name]).not.toHaveProperty('shutdown_date')
    const one = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/v1/models/soon',
      headers: { authorization: 'Bearer sk-ann' },
    })
    expect(JSON.parse(one.text)).toMatchObject({ id: 'soon', shutdown_date: SOON })
  })

  test("the model list in Anthropic's format has the end date of a model both in shutdown_date and in Anthropic's own fields", async () => {
    const headers = { 'x-api-key': 'sk-ann', 'anthropic-version': '2023-06-01' }
    const models = await modelsOf(fixture, headers)
    expect(models['soon']).toMatchObject({
      shutdown_date: SOON,
      lifecycle: 'deprecated',
      retires_at: `${SOON}T00:00:00Z`,
      deprecated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    })
    expect(models['past']).toMatchObject({
      deprecated_at: `${PAST}T00:00:00Z`,
      retires_at: `${PAST}T00:00:00Z`,
    })
    expect(models['lasting']).toMatchObject({ lifecycle: 'active', retires_at: null, deprecated_at: null })
  })

  test('the end date of a model is the latest one of its channels', async () => {
    expect((await modelsOf(fixture))['two']).toMatchObject({ shutdown_date: LATER })
  })

  test('a model has no end date if one of its channels states none', async () => {
    expect((await modelsOf(fixture))['shared']).not.toHaveProperty('shutdown_date')
    const { headers } = await fixture.chat('ann', ask('shared'))
    expect(headers).not.toHaveProperty('sunset')
  })

  test('an end date of a model in the price data applies only to channels of that vendor', async () => {
    const models = await modelsOf(fixture)
    expect(models['gpt-3.5-turbo-0301']).toMatchObject({ shutdown_date: '2025-06-06' })
    expect(models['gpt-4-0314']).not.toHaveProperty('shutdown_date')
    fixture.upstream.forget('vendor')
    const { status } = await fixture.chat('ann', ask('gpt-4-0314'))
    expect(status).toBe(200)
    expect(calls(fixture, 'hosted')).toHaveLength(1)
    expect(calls(fixture, 'vendor')).toHaveLength(0)
  })

  test('metrics show the end dates of models, and count how often model lists are read', async () => {
    const metrics = await metricsOf(fixture.gateway.url)
    expect(metrics.sum('sluice_model_shutdown_timestamp_seconds', { model: 'soon' })).toBe(
      Date.parse(SOON) / 1000,
    )
    expect(metrics.sum('sluice_model_lists_read_total', { result: 'read' })).toBeGreaterThanOrEqual(5)
    expect(metrics.sum('sluice_model_lists_read_total', { result: 'failed' })).toBeGreaterThanOrEqual(2)
  })
})

describe('headers of answers', () => {
  const deprecated = ({ headers }: FullResponse): number => Number(String(headers['deprecation']).slice(1))

  test('answers of a model with an end date have that date in the header sunset, and when it became known in deprecation', async () => {
    for (const body of [ask('soon'), askStream('soon')]) {
      const answer = await fixture.chat('ann', body)
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['sunset']).toBe(new Date(`${SOON}T00:00:00Z`).toUTCString())
      expect(answer.headers['deprecation']).toMatch(/^@\d+$/)
      expect(deprecated(answer)).toBeGreaterThanOrEqual(Math.floor(startedMs / 1000))
      expect(deprecated(answer)).toBeLessThanOrEqual(Date.now() / 1000)
    }
  })

  test('the header deprecation of an answer is never later than the end date of the model', async () => {
    const answer = await fixture.chat('ann', ask('past'))
    expect(answer.headers['sunset']).toBe(new Date(`${PAST}T00:00:00Z`).toUTCString())
    expect(deprecated(answer)).toBe(Date.parse(PAST) / 1000)
    const listed = await fixture.chat('ann', ask('gpt-3.5-turbo-0301'))
    expect(deprecated(listed)).toBe(Date.parse('2025-06-06') / 1000)
  })

  test('errors of a model with an end date have the headers sunset and deprecation, as its answers have', async () => {
    fixture.upstream.script('past', { kind: 'status', status: 404, body: errorBody('this model has ended') })
    const answer = await fixture.chat('ann', ask('past'))
    serveList(fixture.upstream, 'past', LISTS['past'] as Behaviour)
    expect(answer.status).toBe(404)
    expect(answer.headers['sunset']).toBe(new Date(`${PAST}T00:00:00Z`).toUTCString())
  })

  test.each([
    ['/v1/chat/completions', ask('past', { n: 0 })],
    ['/v1/chat/completions', ask('past', { messages: [] })],
    ['/v1/messages', { model: 'past', max_tokens: 5 }],
    ['/v1/responses', { model: 'past', input: 5 }],
    ['/v1beta/models/past:generateContent', { contents: 5 }],
    ['/v1beta/models/past:countTokens', { contents: 5 }],
  ])('a refusal of a wrong field has the headers sunset and deprecation: %s %j', async (path, body) => {
    const answer = await fixture.chat('ann', body, { path })
    expect(answer.status, answer.text).toBe(400)
    expect(answer.headers['sunset']).toBe(new Date(`${PAST}T00:00:00Z`).toUTCString())
    expect(answer.headers['deprecation']).toMatch(/^@\d+$/)
  })

  test('answers of models without an end date have neither of the headers sunset and deprecation', async () => {
    const { headers } = await fixture.chat('ann', ask('next'))
    expect(headers).not.toHaveProperty('sunset')
    expect(headers).not.toHaveProperty('deprecation')
  })
})

describe('a channel whose model has ended', () => {
  test('a channel whose model has ended gets no calls while another channel serves the model', async () => {
    const before = calls(fixture, 'soon').length
    const own = calls(fixture, 'self').length
    for (let count = 0; count < 5; count += 1)
      expect((await fixture.chat('ann', ask('shared'))).status).toBe(200)
    expect(calls(fixture, 'soon')).toHaveLength(before)
    expect(calls(fixture, 'self')).toHaveLength(own + 5)
  })

  test('a channel whose model has ended is still called if there is no other channel and no successor', async () => {
    const before = calls(fixture, 'past').length
    expect((await fixture.chat('ann', ask('past'))).status).toBe(200)
    expect(calls(fixture, 'past')).toHaveLength(before + 1)
  })
})

test('a simulated call shows the channels whose model has ended, and goes to the successor', async () => {
  const simulated = async (model: string) => {
    const { data } = await manage<{
      route: { model: string; channels: { name: string; share: number; why_not: string | null }[] }[]
    }>(fixture.gateway.url, ADMINISTRATOR, 'POST /api/routing/simulate', { model })
    return data.route.flatMap(({ model: of, channels }) =>
      channels.map(({ name, share, why_not }) => [of, name, share, why_not]),
    )
  }
  expect(await simulated('shared')).toEqual([
    ['shared', 'soon', 0, 'ended'],
    ['shared', 'self', 1, null],
  ])
  expect(await simulated('over')).toEqual([
    ['over', 'past', 0, 'ended'],
    ['next', 'next', 1, null],
  ])
  expect(await simulated('past')).toEqual([['past', 'past', 1, 'ended']])
})

describe('the successor of a model', () => {
  test("calls of a model go to its successor, at the successor's price, once the model has ended at every channel", async () => {
    const before = calls(fixture, 'past').length
    const answer = await fixture.chat('ann', ask('over', { max_tokens: 20 }))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('next')
    expect(answer.headers['sunset']).toBe(new Date(`${PAST}T00:00:00Z`).toUTCString())
    expect(calls(fixture, 'past')).toHaveLength(before)
    expect(JSON.parse(calls(fixture, 'next').at(-1)?.text ?? '')).toMatchObject({ model: 'next' })
    expect(rowOf(answer)).toMatchObject({
      model: 'next',
      requested_model: 'over',
      channel: 'next',
      quota: 10 * 10 + 5 * 40,
    })
  })

  test('calls of a model without a channel go to its successor, and the model stays listed', async () => {
    const answer = await fixture.chat('ann', ask('gone'))
    expect(answer.headers['x-gateway-model']).toBe('next')
    expect(rowOf(answer)).toMatchObject({ model: 'next', requested_model: 'gone' })
    expect(await modelsOf(fixture)).toHaveProperty('gone')
  })

  test('a call that goes to a successor needs the permission for the requested model only', async () => {
    for (const model of ['over', 'gone']) {
      const answer = await fixture.chat('narrow', ask(model))
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-gateway-model']).toBe('next')
    }
    expect((await fixture.chat('narrow', ask('next'))).status).toBe(403)
  })

  test('calls of a model with a successor go to the model itself until its end date', async () => {
    const answer = await fixture.chat('ann', ask('soon'))
    expect(answer.headers['x-gateway-model']).toBe('soon')
    expect(rowOf(answer)).toMatchObject({ model: 'soon', requested_model: 'soon' })
  })

  test('calls of a model whose successor has no channel left go to the successor of that successor', async () => {
    const answer = await fixture.chat('ann', ask('first'))
    expect(answer.status, answer.text).toBe(200)
    expect(rowOf(answer)).toMatchObject({ model: 'next', requested_model: 'first' })
  })

  const COUNTS = [
    ['/v1/messages/count_tokens', { messages: [{ role: 'user', content: 'hi' }] }, 'input_tokens'],
    ['/v1/responses/input_tokens', { input: 'hi' }, 'input_tokens'],
    ['/v1beta/models/MODEL:countTokens', { contents: [{ parts: [{ text: 'hi' }] }] }, 'totalTokens'],
  ] as const
  const countOf = (path: string, model: string, body: object): Promise<FullResponse> =>
    path.includes('MODEL')
      ? fixture.chat('ann', body, { path: path.replace('MODEL', model) })
      : fixture.chat('ann', { model, ...body }, { path })

  test.each(COUNTS)(
    'tokens of a model without a channel are counted by its successor: %s',
    async (path, body, counted) => {
      fixture.upstream.script('heir', { kind: 'status', status: 200, body: `{"${counted}":4711}` })
      const answer = await countOf(path, 'retired', body)
      expect([answer.status, answer.text]).toEqual([200, `{"${counted}":4711}`])
      const sent = calls(fixture, 'heir').at(-1)
      expect(`${sent?.path} ${sent?.text}`).toContain('their-heir')
    },
  )

  test.each(COUNTS)(
    'the gateway counts the tokens of a model without a channel if its successor cannot: %s',
    async (path, body, counted) => {
      const { status, text } = await countOf(path, 'gone', body)
      expect(status, text).toBe(200)
      expect(JSON.parse(text)[counted]).toBeGreaterThan(0)
    },
  )

  test.each(COUNTS)('a fallback does not count the tokens of a model: %s', async (path, body) => {
    expect((await countOf(path, 'helped', body)).status).toBe(503)
  })

  test("conversations of a model without a channel are compacted by its successor, at the successor's price", async () => {
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
    const body = JSON.stringify({ id: 'r', object: 'response.compaction', output: [], usage })
    fixture.upstream.script('heir', { kind: 'whole', body })
    const compact = (model: string) =>
      fixture.chat('ann', { model, input: 'hi' }, { path: '/v1/responses/compact' })
    const answer = await compact('retired')
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('heir')
    expect(JSON.parse(calls(fixture, 'heir').at(-1)?.text ?? '')).toEqual({
      model: 'their-heir',
      input: 'hi',
    })
    expect(rowOf(answer)).toMatchObject({
      model: 'heir',
      requested_model: 'retired',
      quota: 10 * 10 + 5 * 40,
    })
    expect((await compact('gone')).status).toBe(404)
    expect((await compact('helped')).status).toBe(503)
  })

  test("calls of a model that has ended go to the model's own fallbacks if its successor has no channel", async () => {
    const answer = await fixture.chat('ann', ask('heirless'))
    expect(answer.status, answer.text).toBe(200)
    expect(rowOf(answer)).toMatchObject({ model: 'next', requested_model: 'heirless' })
  })
})

describe('a list that changes', () => {
  /** Milliseconds between two looks at which lists are to be read; a second in the program. */
  const LOOK_MS = 20
  /** What the list of a channel, which has named its model with a date, is a day later. */
  const LATER_LISTS: Readonly<Record<string, Behaviour>> = {
    error: { kind: 'status', status: 500, body: '{}' },
    page: { kind: 'status', status: 200, body: '<html>' },
    // Beyond 4 MiB.
    large: {
      kind: 'status',
      status: 200,
      body: `{"data":[{"id":"m"}],"x":"${'x'.repeat(4_300_000)}"}`,
    },
    impossible: list({ impossible: '2030-02-31' }),
    removed: list({ removed: null }),
    moved: list({ moved: LATER }),
    ending: list({ ending: day(2) }),
  }
  const lanes = Object.keys(LATER_LISTS)
  const clock = dateClock(afterAll)
  let copy: PatchedCopy
  let one: Fixture

  const configured = (
    upstream: Fixture['upstream'],
    added: readonly Record<string, unknown>[] = [],
    model_dates = true,
  ): Configuration => ({
    options: { model_dates },
    models: Object.fromEntries([...lanes, 'missing'].map((name) => [name, { price: PRICE }])),
    channels: [
      ...lanes.map((lane) =>
        channel(lane, upstream.baseUrl(lane), {
          models: lane === 'moved' ? ['moved', 'missing'] : [lane],
          priority: 9,
        }),
      ),
      ...added,
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  })
  beforeAll(async () => {
    const file = 'src/gateway/read-model-lists.ts'
    copy = await patchedProgram([
      { file, text: 'const FIRST_MS = 2_000', by: 'const FIRST_MS = 0' },
      { file, text: 'const TICK_MS = 1_000', by: `const TICK_MS = ${LOOK_MS}` },
    ])
    one = await startFixture(
      (upstream) => {
        for (const lane of lanes) serveList(upstream, lane, list({ [lane]: SOON }))
        serveList(upstream, 'moved', list({ moved: SOON, missing: SOON }))
        serveList(upstream, 'ending', LATER_LISTS['ending'] as Behaviour)
        return configured(upstream)
      },
      { env: clock.env, root: copy.root },
    )
  })
  afterAll(async () => {
    await one?.close()
    copy?.discard()
  })

  const datesOf = async (): Promise<Readonly<Record<string, string | undefined>>> =>
    Object.fromEntries(Object.values(await modelsOf(one)).map(({ id, shutdown_date }) => [id, shutdown_date]))
  const first = {
    ...Object.fromEntries([...lanes, 'missing'].map((name) => [name, SOON])),
    ending: day(2),
  }
  const soon = { timeout: 60_000 }

  atNight(
    "a provider's model list is read again after a day, and changes an end date only if it states another or none",
    async () => {
      await expect.poll(datesOf, soon).toEqual(first)
      const knownOf = async (model: string) => (await one.chat('ann', ask(model))).headers['deprecation']
      const known = [await knownOf('missing'), await knownOf('moved')]
      for (const lane of lanes) serveList(one.upstream, lane, LATER_LISTS[lane] as Behaviour)
      clock.move(23 * 3600)
      await sleep(10 * LOOK_MS)
      for (const lane of lanes) expect(listings(one, lane), lane).toEqual([])
      clock.move(25 * 3600)
      const counted = async (): Promise<number> => {
        const metrics = await metricsOf(one.gateway.url)
        return ['read', 'failed'].reduce(
          (sum, result) => sum + metrics.sum('sluice_model_lists_read_total', { result }),
          0,
        )
      }
      await expect.poll(counted, soon).toBe(2 * lanes.length)
      for (const lane of lanes) expect(listings(one, lane), lane).toHaveLength(1)
      const later = { ...first, moved: LATER, removed: undefined }
      expect(await datesOf()).toEqual(later)
      await one.gateway.restart()
      expect(await datesOf()).toEqual(later)
      // A day that is moved does not change when the model was deprecated.
      expect([await knownOf('missing'), await knownOf('moved')]).toEqual(known)
    },
  )

  test("a channel gets no calls of a model from the first second of the model's end date, while another channel serves it", async () => {
    await expect.poll(async () => (await datesOf())['ending'], soon).toBe(day(2))
    await one.gateway.apply(
      configured(one.upstream, [channel('self', one.upstream.baseUrl('self'), { models: ['ending'] })]),
    )
    const end = Date.parse(day(2))
    clock.move(Math.floor((end - Date.now()) / 1000) - 30)
    await one.chat('ann', ask('ending'))
    expect(calls(one, 'ending')).toHaveLength(1)
    clock.move(Math.ceil((end - Date.now()) / 1000) + 1)
    await one.chat('ann', ask('ending'))
    expect(calls(one, 'ending')).toHaveLength(1)
    expect(calls(one, 'self')).toHaveLength(1)
  })

  test("with model_dates: false no provider's model list is read, and no model has an end date", async () => {
    const unread = channel('unread', one.upstream.baseUrl('unread'), { models: ['unread'] })
    await one.gateway.apply(configured(one.upstream, [unread], false))
    expect((await datesOf())['moved']).toBeUndefined()
    expect((await one.chat('ann', ask('moved'))).headers).not.toHaveProperty('sunset')
    // The lists of new channels are read at the next look otherwise.
    await sleep(10 * LOOK_MS)
    expect(one.upstream.received('unread')).toEqual([])
    await one.gateway.apply(configured(one.upstream, [unread]))
    await one.upstream.receivedAtLeast('unread', 1)
  })
})
