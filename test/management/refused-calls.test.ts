import { setTimeout as sleep } from 'node:timers/promises'
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
      models: {
        ...priced(['m']),
        busy: { price: { input: 1, output: 1 }, rate_limit: { requests: 1, window: '60s' } },
        away: { price: { input: 1, output: 1 } },
      },
      channels: [channel('m', upstream.baseUrl('m')), channel('busy', upstream.baseUrl('m'))],
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

const messageOf = ({ text }: FullResponse): string => {
  const { error } = JSON.parse(text) as { error: { message: string } }
  return error.message.replace(/ \(request id: .*\)$/, '')
}

describe('a refused call', () => {
  test('67: a refused call is listed 2 s later with key, model, status, code and sentence, and is in no sum', async () => {
    await fixture.chat('ann', ask('busy'))
    const before = (await get<{ requests: number }>(ANN, '/api/log/self/stat')).data
    const answers: [FullResponse, object][] = [
      [await fixture.chat('limited', ask('m')), { status: 403, code: 'model_not_allowed', model_name: 'm' }],
      [await fixture.chat('poor', ask('m')), { status: 403, code: 'insufficient_quota', model_name: 'm' }],
      [
        await fixture.chat('capped', ask('m')),
        { status: 403, code: 'budget_exceeded', token_name: 'token-capped' },
      ],
      [await fixture.chat('off', ask('m')), { status: 401, code: 'token_disabled', token_name: 'token-off' }],
      [await fixture.chat('ann', ask('busy')), { status: 429, code: 'rate_limited', model_name: 'busy' }],
      [await fixture.chat('ann', ask('away')), { status: 503, code: 'model_not_found', model_name: 'away' }],
      [await fixture.chat('ann', { model: 'm' }), { status: 400 }],
    ]
    await sleep(2_000)
    for (const [answer, expected] of answers) {
      for (const account of [ADA, ANN]) {
        const row = await refusedRow(answer, account)
        expect(row, answer.text).toMatchObject({
          id: idOf(answer),
          request_id: idOf(answer),
          type: 5,
          username: 'ann',
          status: answer.status,
          message: messageOf(answer),
          ...expected,
        })
        expect(Math.abs(Date.now() / 1000 - (row?.created_at ?? 0))).toBeLessThan(60)
      }
      expect(await refusedRow(answer, BEN)).toBeUndefined()
      const listed = await get<{ total: number }>(ADA, `/api/log/?request_id=${idOf(answer)}`)
      expect(listed.data.total).toBe(0)
    }
    expect((await get(ANN, '/api/log/self/stat')).data).toMatchObject(before)
    const unknown = await fixture.chat('nobody', ask('m'))
    await sleep(2_000)
    expect(await refusedRow(unknown)).toMatchObject({ status: 401, username: '', token_name: '' })
    const byCode = await get<{ items: Refused[]; total: number }>(
      ADA,
      '/api/log/refused?code=rate_limited&code=token_disabled',
    )
    expect(new Set(byCode.data.items.map(({ code }) => code))).toEqual(
      new Set(['rate_limited', 'token_disabled']),
    )
    expect((await get(ANN, '/api/log/refused')).status).toBe(403)
  })

  test('68: a refused call has its own page, found by the id of its error, for its owner and administrators', async () => {
    const answer = await fixture.chat('limited', ask('m'))
    await sleep(2_000)
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

  test('70: a refused call names the limit that refused it', async () => {
    const answers = [
      await fixture.chat('poor', ask('m')),
      await fixture.chat('capped', ask('m')),
      await fixture.chat('ann', ask('busy')),
      await fixture.chat('limited', ask('m')),
    ]
    await sleep(2_000)
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
      left: 10,
      resets_at: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) / 1000,
    })
    expect(budget?.retry_after).toBeGreaterThan(0)
    expect(rate?.limit).toMatchObject({ subject: 'model', name: 'busy', kind: 'requests' })
    expect(none?.limit).toBeNull()
  })

  test('71: a limited number of refused calls is kept, and very many of one key do not displace those of other keys', async () => {
    await fixture.gateway.apply({ ...config, options: { refusals_kept: 50 } })
    const first = await fixture.chat('ben', { model: 'm' })
    await sleep(1_200)
    for (let i = 0; i < 30; i += 1) await fixture.chat('ann', { model: 'm' })
    for (let i = 0; i < 30; i += 1) await call(fixture.gateway.url, ask('m'), { key: `nobody-${i}` })
    await sleep(2_000)
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
    await sleep(1_500)
    expect(await refusedRow(unkept)).toBeUndefined()
  })
})
