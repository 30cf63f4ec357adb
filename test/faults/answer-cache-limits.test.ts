import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const MODELS = ['m', 'few', 'five']
const WINDOW = '1h'
const ANN = { id: 2, accessToken: 'ann-access' }
/** Ten prompt and five output tokens. */
const TOKENS = 15

interface Row {
  readonly cache: string
  readonly quota: number
  readonly hit_saved: number
  readonly prompt_tokens: number
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '10m', scope: 'user' } },
    rate_limits: {},
    models: {
      m: { ...(priced(['m'])['m'] as object) },
      few: { ...(priced(['few'])['few'] as object), rate_limit: { requests: 2, window: WINDOW } },
      five: { ...(priced(['five'])['five'] as object), rate_limit: { requests: 5, window: WINDOW } },
    },
    channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      ADMIN_USER,
      user(
        2,
        'ann',
        [
          token('free'),
          token('requests', { rate_limit: { requests: 3, window: WINDOW } }),
          token('tokens', { rate_limit: { tokens: 2 * TOKENS, window: WINDOW } }),
          token('limited'),
          token('disabled'),
          token('narrow', { rate_limit: { requests: 5, window: WINDOW } }),
        ],
        { access_token: ANN.accessToken },
      ),
      user(5, 'joe', [token('joe'), token('joetwo')], { rate_limit: { requests: 2, window: WINDOW } }),
    ],
  }))
  for (const name of MODELS)
    fixture.upstream.script(name, { kind: 'whole', content: 'kept', usage: usageText(10, 5) })
})
afterAll(() => fixture?.close())

const seen = ({ status, headers, text }: FullResponse): unknown =>
  status === 200
    ? headers['x-gateway-cache']
    : [status, (JSON.parse(text) as { error: { code: string } }).error.code]
const calls = async (keys: readonly string[], body: object): Promise<unknown[]> => {
  const all: unknown[] = []
  for (const key of keys) all.push(seen(await fixture.chat(key, body)))
  return all
}
const REFUSED = [429, 'rate_limited']

describe('a hit is counted like a call', () => {
  test('a cached answer counts against the request limit of the key that gets it', async () => {
    const body = ask('m', { seed: 1 })
    expect(await calls(['requests', 'requests', 'requests', 'requests'], body)).toEqual([
      'miss',
      'hit',
      'hit',
      REFUSED,
    ])
  })

  test('a cached answer counts the tokens of the original call against the token limit of the key that gets it', async () => {
    const body = ask('m', { seed: 2 })
    expect(await calls(['free', 'tokens', 'tokens', 'tokens'], body)).toEqual(['miss', 'hit', 'hit', REFUSED])
    // The remaining tokens are stated as for every call.
    const stream = await fixture.chat('free', { ...askStream('m', { seed: 2 }) })
    expect(seen(stream)).toBe('hit')
  })

  test('a cached answer counts against the request limit of the user, whichever key of the user gets it', async () => {
    const body = ask('m', { seed: 3 })
    expect(await calls(['joe', 'joetwo', 'joe'], body)).toEqual(['miss', 'hit', REFUSED])
  })

  test('a cached answer counts against the request limit of its model, which counts the calls of all users', async () => {
    const body = ask('few')
    expect(await calls(['free', 'limited', 'free'], body)).toEqual(['miss', 'hit', REFUSED])
  })

  test.each([
    ['key', 'narrow', 'm'],
    ['model', 'free', 'five'],
  ])(
    'simultaneous equal calls that share one upstream call all count against the request limit of their %s',
    async (_, key, model) => {
      const release = Promise.withResolvers<void>()
      fixture.upstream.script(model, {
        kind: 'whole',
        content: 'kept',
        usage: usageText(10, 5),
        after: release.promise,
      })
      const before = fixture.upstream.received(model).length
      const answers = Array.from({ length: 8 }, () => fixture.chat(key, ask(model, { seed: 4 })))
      await fixture.upstream.receivedAtLeast(model, before + 1)
      setTimeout(() => release.resolve(), 300)
      const all = (await Promise.all(answers)).map(seen)
      expect(all.filter((one) => one === 'hit')).toHaveLength(4)
      expect(all.filter((one) => Array.isArray(one))).toEqual([REFUSED, REFUSED, REFUSED])
    },
  )
})

describe('a hit needs what a call needs', () => {
  const change = async (key: string, fields: object, query = ''): Promise<void> => {
    const { data } = await manage<{ items: { id: number; name: string }[] }>(
      fixture.gateway.url,
      ANN,
      'GET /api/token/?page_size=100',
    )
    const id = data.items.find(({ name }) => name === `token-${key}`)?.id
    const { status } = await manage(fixture.gateway.url, ANN, `PUT /api/token/${query}`, { id, ...fields })
    expect(status).toBe(200)
  }

  test('a cached answer is refused to a key whose permission for the model has been taken away since', async () => {
    const body = ask('m', { seed: 5 })
    expect(await calls(['limited', 'limited'], body)).toEqual(['miss', 'hit'])
    await change('limited', { model_limits_enabled: true, model_limits: 'few' })
    expect(await calls(['limited', 'free'], body)).toEqual([[403, 'model_not_allowed'], 'hit'])
  })

  test('a cached answer is refused to a key that has been disabled, and at an address that the key does not allow', async () => {
    const body = ask('m', { seed: 6 })
    expect(await calls(['disabled', 'disabled'], body)).toEqual(['miss', 'hit'])
    await change('disabled', { allow_ips: '192.0.2.1' })
    expect(await calls(['disabled'], body)).toEqual([[403, 'ip_not_allowed']])
    await change('disabled', { allow_ips: '' })
    await change('disabled', { status: 2 }, '?status_only=1')
    expect(await calls(['disabled', 'free'], body)).toEqual([[401, 'token_disabled'], 'hit'])
  })
})

test('each cached answer has a usage row with the amount that it saved, and the sums of usage include these amounts', async () => {
  const body = ask('m', { seed: 7 })
  const answers = [
    await fixture.chat('free', body),
    await fixture.chat('free', body),
    await fixture.chat('free', body),
  ]
  const rows = []
  for (const { headers } of answers) {
    const request = `GET /api/log/${String(headers['x-request-id'])}` as const
    // A call that got the answer as it arrived is charged after the answer was sent.
    const data = await vi.waitFor(async () => {
      const found = await manage<Row | undefined>(fixture.gateway.url, ADMIN, request)
      if (found.data === undefined) throw new Error('the call is not settled yet')
      return found.data
    }, 60_000)
    rows.push([data.cache, data.quota, data.hit_saved, data.prompt_tokens])
  }
  expect(rows).toEqual([
    ['', 2 * TOKENS, 0, 10],
    ['hit', 0, 2 * TOKENS, 0],
    ['hit', 0, 2 * TOKENS, 0],
  ])
  const sums = async () =>
    (
      await manage<{ totals: { hits: number; hit_saved: number } }>(
        fixture.gateway.url,
        ADMIN,
        'GET /api/usage?by=none',
      )
    ).data.totals
  const listed = await manage<{ items: { cache: string; hit_saved: number }[] }>(
    fixture.gateway.url,
    ADMIN,
    'GET /api/log/?page_size=100',
  )
  const hits = listed.data.items.filter(({ cache }) => cache === 'hit')
  expect(hits.length).toBeGreaterThan(5)
  const saved = hits.reduce((sum, { hit_saved }) => sum + hit_saved, 0)
  await expect.poll(sums).toMatchObject({ hits: hits.length, hit_saved: saved })
})
