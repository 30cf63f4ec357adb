import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { BatchClient, chatLine, linesIn } from '../fixtures/batches.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
/** What the fixture's answer costs, in quota units. */
const CHARGE = 30

interface Listed {
  readonly total: number
  readonly items: readonly Record<string, unknown>[]
}

let fixture: Fixture
let ended: string
let ofMessages: string
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { local_batches: true },
    rate_limits: { global: { requests: 0 } },
    models: priced(['m', 'slow']),
    channels: ['m', 'slow'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(3, 'bob', [token('bob')], { access_token: BOB.accessToken }),
    ],
  }))
  const ann = new BatchClient(fixture.gateway.url, 'ann')
  fixture.upstream.script('m', { kind: 'status', status: 400 }, { kind: 'whole' })
  const failing = await ann.make([chatLine('bad')])
  await ann.ended(failing.id)
  const made = await ann.make([chatLine('a'), chatLine('b')])
  ended = (await ann.ended(made.id)).id
  const messages = await ann.ask('/v1/messages/batches', 'POST', {
    requests: [{ custom_id: 'c', params: ask('m', { max_tokens: 20 }) }],
  })
  ofMessages = (JSON.parse(messages.text) as { id: string }).id
  await ann.ended(ofMessages)
  // A batch may end just before the charge of its last line is stored.
  while ((await listed(ANN)).items[0]?.['quota'] !== CHARGE) await sleep(20)
})
afterAll(() => fixture?.close())

const as = (account: typeof ANN, request: Parameters<typeof manage>[2]) =>
  manage(fixture.gateway.url, account, request)
const listed = async (account: typeof ANN, query = ''): Promise<Listed> =>
  (await as(account, `GET /api/batches${query}`)).data as Listed

describe('docs/batches.md: Over HTTP', () => {
  test('an account lists its batches of both APIs with progress and cost, the newest first', async () => {
    const { total, items } = await listed(ANN)
    expect(total).toBe(3)
    expect(items).toMatchObject([
      { id: ofMessages, endpoint: '/v1/messages', total: 1, completed: 1, quota: CHARGE },
      {
        id: ended,
        user_id: 2,
        username: 'ann',
        token_name: 'token-ann',
        endpoint: '/v1/chat/completions',
        model: 'm',
        status: 'completed',
        total: 2,
        completed: 2,
        failed: 0,
        quota: 2 * CHARGE,
        saved: 0,
        held: 0,
        ended_at: expect.any(Number),
        has_results: true,
        has_errors: false,
      },
      { total: 1, completed: 0, failed: 1, quota: 0, has_results: false, has_errors: true },
    ])
    expect((await listed(ANN, '?p=2&page_size=1')).items).toMatchObject([{ id: ended }])
  })

  test('a batch that has failed lines says which they are and why', async () => {
    const { items } = await listed(ANN)
    const { data } = await as(ANN, `GET /api/batches/${String(items[2]?.id)}`)
    expect(data).toMatchObject({ errors: [{ custom_id: 'bad', status: 400, message: expect.any(String) }] })
  })

  test('administrators see the batches of all users, others only their own', async () => {
    expect((await listed(BOB)).total).toBe(0)
    expect((await as(BOB, `GET /api/batches/${ended}`)).status).toBe(404)
    expect((await as(BOB, `POST /api/batches/${ended}/cancel`)).status).toBe(404)
    expect((await listed(ROOT_ACCOUNT)).total).toBe(3)
    expect((await listed(ROOT_ACCOUNT, '?username=bob')).total).toBe(0)
    expect((await listed(ROOT_ACCOUNT, '?username=ann&user_id=2')).total).toBe(3)
    expect((await listed(ROOT_ACCOUNT, '?username=ann&user_id=3')).total).toBe(0)
    expect((await listed(ROOT_ACCOUNT, '?user_id=3')).total).toBe(0)
    expect((await as(ROOT_ACCOUNT, `GET /api/batches/${ended}`)).data).toMatchObject({ username: 'ann' })
  })

  test('only the user downloads results and failed lines', async () => {
    const get = async (account: typeof ANN, path: string) =>
      call(fixture.gateway.url, undefined, {
        method: 'GET',
        path,
        headers: { authorization: account.accessToken, 'gateway-user': String(account.id) },
      })
    const results = await get(ANN, `/api/batches/${ended}/results`)
    expect(linesIn(results.text).map(({ custom_id: id }) => id)).toEqual(['a', 'b'])
    const messages = await get(ANN, `/api/batches/${ofMessages}/results`)
    expect(linesIn(messages.text).map(({ custom_id: id }) => id)).toEqual(['c'])
    expect((await get(ANN, `/api/batches/${ended}/errors`)).status).toBe(404)
    expect((await get(ROOT_ACCOUNT, `/api/batches/${ended}/results`)).status).toBe(404)
  })

  test('rows of the usage log have the batch and the line, and the log is filtered by batch', async () => {
    const { data } = await as(ANN, `GET /api/log/self?batch=${ended}`)
    const { items } = data as Listed
    expect(items.map(({ batch, custom_id }) => `${String(batch)} ${String(custom_id)}`).toSorted()).toEqual([
      `${ended} a`,
      `${ended} b`,
    ])
    const sums = await as(ANN, `GET /api/log/self/stat?batch=${ended}`)
    expect(sums.data).toMatchObject({ quota: 2 * CHARGE })
    const two = (await as(ROOT_ACCOUNT, `GET /api/log/?batch=${ended}&batch=${ofMessages}`)).data as Listed
    expect(two.total).toBe(3)
    expect(((await as(ANN, 'GET /api/log/self?batch=batch_none')).data as Listed).total).toBe(0)
    const csv = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: `/api/log/self/export?batch=${ofMessages}`,
      headers: { authorization: ANN.accessToken, 'gateway-user': '2' },
    })
    expect(csv.text.split('\n')[0]).toContain(',batch,custom_id,batch_saved')
    expect(csv.text).toContain(`,${ofMessages},c,0,`)
  })

  test('a running batch shows what it holds; its cancellation is in the audit log once, and one after its end is refused', async () => {
    fixture.upstream.script('slow', { kind: 'silence' })
    const ann = new BatchClient(fixture.gateway.url, 'ann')
    const { id } = await ann.make(Array.from({ length: 20 }, (_, at) => chatLine(String(at), 'slow')))
    const running = await as(ANN, `GET /api/batches/${id}`)
    expect(running.data).toMatchObject({ status: 'in_progress', ended_at: null, errors: [] })
    expect((running.data as { held: number }).held).toBeGreaterThan(0)
    const cancelled = await as(ROOT_ACCOUNT, `POST /api/batches/${id}/cancel`)
    expect(cancelled.data).toMatchObject({ status: 'cancelling' })
    expect((await as(ANN, `POST /api/batches/${id}/cancel`)).data).toMatchObject({ status: 'cancelling' })
    const audit = (await as(ROOT_ACCOUNT, 'GET /api/audit?kind=batch')).data as Listed
    expect(audit.items).toMatchObject([{ action: 'batch.stop', actor: 'root', object: { name: id } }])
    expect((await as(ROOT_ACCOUNT, `POST /api/batches/${ended}/cancel`)).status).toBe(400)
  })
})
