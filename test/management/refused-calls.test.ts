import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

let fixture: Fixture
let config: Record<string, unknown>
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const made = {
      rate_limits: { global: { requests: 0, window: '1s' } },
      groups: { default: {}, small: { budget: 30, budget_period: 'day' } },
      models: {
        ...priced(['m']),
        busy: { price: { input: 1, output: 1 }, rate_limit: { requests: 1, window: '1h' } },
        away: { price: { input: 1, output: 1 } },
      },
      channels: [
        channel('m', upstream.baseUrl('m'), { groups: ['default', 'small'] }),
        channel('busy', upstream.baseUrl('m')),
      ],
      users: [
        ROOT,
        user(
          2,
          'ann',
          [
            token('ann'),
            token('limited', { model_limits_enabled: true, model_limits: 'busy' }),
            token('poor', { unlimited_quota: false, remain_quota: 3 }),
            token('capped', { budget: 10, budget_period: 'month' }),
            token('off', { status: 2 }),
          ],
          { access_token: ANN.accessToken },
        ),
        user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
        user(5, 'cy', [token('cy')], { budget: 20, budget_period: 'week' }),
        user(6, 'dee', [token('dee')], { group: 'small' }),
        user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      ],
    }
    config = made
    return made
  })
  fixture.upstream.script('m', { kind: 'whole' })
})
afterAll(() => fixture?.close())

interface Refused {
  readonly id: string
  readonly request_id: string
  readonly created_at: number
  readonly type: number
  readonly username: string
  readonly token_name: string
  readonly model_name: string
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retry_after: number | null
  readonly limit: Record<string, unknown> | null
}

const get = <Data>(account: Account, path: string) =>
  manage<Data>(fixture.gateway.url, account, `GET ${path as `/${string}`}`)
const idOf = ({ headers }: FullResponse): string => String(headers['x-request-id'])

async function refusedRow(answer: FullResponse, account: Account = ADA): Promise<Refused | undefined> {
  const path = account === ADA ? '/api/log/refused' : '/api/log/self/refused'
  const { status, data } = await get<{ items: Refused[] }>(account, `${path}?request_id=${idOf(answer)}`)
  expect(status).toBe(200)
  return data.items[0]
}

/** Resolves when a refused call is in the list: those that were refused before it are written with it at the latest. */
async function listed(answer: FullResponse): Promise<void> {
  await expect.poll(() => refusedRow(answer)).toBeDefined()
}

const messageOf = ({ text }: FullResponse): string => {
  const { error } = JSON.parse(text) as { error: { message: string } }
  return error.message.replace(/ \(request id: .*\)$/, '')
}

describe('a refused call', () => {
  test('a refused call whose model name has NUL is listed, and so are those beside it', async () => {
    const path = '/v1beta/models/a%00b:generateContent'
    const beside = await fixture.chat('ann', ask('away'))
    const answer = await fixture.chat('ann', { contents: [{ parts: [{ text: 'hi' }] }] }, { path })
    await listed(answer)
    expect(await refusedRow(answer)).toMatchObject({ code: 'model_not_found', model_name: 'a b' })
    expect(await refusedRow(beside)).toBeDefined()
  })

  test('a refused call is listed within 2 s with key, model, status, code and message, and changes no sum of usage', async () => {
    await fixture.chat('ann', ask('busy'))
    /** All that counts calls of the account, or what they cost. */
    const sums = async () => {
      const { data: usage } = await get<{ totals: object }>(ANN, '/api/usage/self')
      const { data: profile } = await get<{ quota: number; used_quota: number }>(ANN, '/api/user/self')
      const { data: log } = await get<{ total: number }>(ANN, '/api/log/self')
      const stat = (await get<object>(ANN, '/api/log/self/stat')).data
      return [usage.totals, profile.quota, profile.used_quota, log.total, stat]
    }
    await expect.poll(sums).toMatchObject([{ requests: 1 }, {}, {}, 1, { requests: 1 }])
    const before = await sums()
    const refused = async (key: string, body: object, status: number, code: string, model: string) =>
      [
        await fixture.chat(key, body),
        { status, code, model_name: model, token_name: `token-${key}` },
      ] as const
    const answers = [
      await refused('limited', ask('m'), 403, 'model_not_allowed', 'm'),
      await refused('poor', ask('m'), 403, 'insufficient_quota', 'm'),
      await refused('capped', ask('m'), 403, 'budget_exceeded', 'm'),
      // The body of this one is not read.
      await refused('off', ask('m'), 401, 'token_disabled', ''),
      await refused('ann', { model: 'm' }, 400, 'invalid_request', 'm'),
      await refused('ann', { ...ask('m'), Stream: true }, 400, 'invalid_request', 'm'),
      await refused('ann', { ...ask('m'), model: 5 }, 400, 'invalid_request', ''),
      await refused('ann', { model: 'any text' }, 400, 'invalid_request', ''),
      await refused('ann', ask('busy'), 429, 'rate_limited', 'busy'),
      await refused('ann', ask('away'), 503, 'model_not_found', 'away'),
    ]
    await listed(answers.at(-1)![0])
    for (const [answer, expected] of answers) {
      expect(answer.status, answer.text).toBe(expected.status)
      for (const account of [ADA, ANN]) {
        const row = await refusedRow(answer, account)
        expect(row, answer.text).toMatchObject({
          id: idOf(answer),
          request_id: idOf(answer),
          type: 5,
          username: 'ann',
          message: messageOf(answer),
          ...expected,
        })
        expect(Math.abs(Date.now() / 1000 - (row?.created_at ?? 0))).toBeLessThan(60)
      }
      expect(await refusedRow(answer, BEN)).toBeUndefined()
      const listed = await get<{ total: number }>(ADA, `/api/log/?request_id=${idOf(answer)}`)
      expect(listed.data.total).toBe(0)
    }
    expect(await sums()).toEqual(before)
    const unknown = await fixture.chat('nobody', ask('m'))
    await expect.poll(() => refusedRow(unknown)).toMatchObject({ status: 401, username: '', token_name: '' })
    const byCode = await get<{ items: Refused[]; total: number }>(
      ADA,
      '/api/log/refused?code=rate_limited&code=token_disabled',
    )
    expect(new Set(byCode.data.items.map(({ code }) => code))).toEqual(
      new Set(['rate_limited', 'token_disabled']),
    )
    expect((await get(ANN, '/api/log/refused')).status).toBe(403)
  })

  test('the details of a refused call can be read by the request id of its error, by its owner and administrators', async () => {
    const answer = await fixture.chat('limited', ask('m'))
    await listed(answer)
    for (const [account, path] of [[ADA, '/api/log/'] as const, [ANN, '/api/log/self/'] as const])
      expect((await get(account, `${path}${idOf(answer)}`)).data).toMatchObject({
        id: idOf(answer),
        type: 5,
        quota: 0,
        cost: null,
        attempts: [],
        error: { cause: 'model_not_allowed', status: 403, message: messageOf(answer), tried: 0 },
      })
    expect((await get(BEN, `/api/log/self/${idOf(answer)}`)).status).toBe(404)
  })

  test('a refused call names the limit that refused it', async () => {
    const answers = [
      await fixture.chat('poor', ask('m')),
      await fixture.chat('capped', ask('m')),
      await fixture.chat('ann', ask('busy')),
      await fixture.chat('limited', ask('m')),
    ]
    await listed(answers[3]!)
    const [quota, budget, rate, none] = await Promise.all(answers.map((answer) => refusedRow(answer)))
    expect(quota?.limit).toMatchObject({ subject: 'token', name: 'token-poor', kind: 'quota', left: 3 })
    expect(quota?.limit?.['needed']).toBeGreaterThan(3)
    const now = new Date()
    expect(budget?.limit).toMatchObject({
      subject: 'token',
      name: 'token-capped',
      kind: 'budget',
      spent: 0,
      held: 0,
      needed: quota?.limit?.['needed'],
      left: 10,
      resets_at: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) / 1000,
    })
    expect(budget?.retry_after).toBeGreaterThan(0)
    expect(rate?.limit).toMatchObject({ subject: 'model', name: 'busy', kind: 'requests' })
    expect(none?.limit).toBeNull()
  })

  test('the subject of a budget that refused a call is its user or its group', async () => {
    const [day, week] = [86_400, 7 * 86_400].map((length) => {
      // Weeks begin on Mondays; the first of January 1970 was a Thursday.
      const shift = length === 86_400 ? 0 : 4 * 86_400
      const now = Date.now() / 1000
      return (Math.floor((now - shift) / length) + 1) * length + shift
    })
    const expected = [
      ['cy', { subject: 'user', id: 5, name: 'cy', left: 20, resets_at: week }],
      ['dee', { subject: 'group', name: 'small', left: 30, resets_at: day }],
    ] as const
    for (const [key, limit] of expected) {
      const answer = await fixture.chat(key, ask('m'))
      await expect
        .poll(() => refusedRow(answer))
        .toMatchObject({
          code: 'budget_exceeded',
          limit: { kind: 'budget', spent: 0, needed: expect.any(Number), ...limit },
        })
    }
  })

  test('a limited number of refused calls is stored, and many refused calls of one key do not displace those of other keys', async () => {
    await fixture.gateway.apply({ ...config, options: { refusals_kept: 50 } })
    const first = await fixture.chat('ben', { model: 'm' })
    await listed(first)
    for (let i = 0; i < 30; i += 1) await fixture.chat('ann', { model: 'm' })
    for (let i = 0; i < 29; i += 1) await call(fixture.gateway.url, ask('m'), { key: `nobody-${i}` })
    await listed(await call(fixture.gateway.url, ask('m'), { key: 'nobody' }))
    expect(await refusedRow(first)).toBeDefined()
    for (const [name, most] of [
      ['token-ann', 5],
      ['', 5],
    ] as const) {
      const { data } = await get<{ items: Refused[]; total: number }>(ADA, '/api/log/refused?page_size=100')
      expect(data.total).toBeLessThanOrEqual(50)
      const own = data.items.filter(({ token_name }) => token_name === name)
      expect(own.length).toBe(most)
    }
    await fixture.gateway.apply({ ...config, options: { refusals_kept: 0 } })
    const unkept = await fixture.chat('ben', { model: 'm' })
    await fixture.gateway.apply(config)
    await listed(await fixture.chat('ben', { model: 'm' }))
    expect(await refusedRow(unkept)).toBeUndefined()
  })
})
