import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { manage } from '../fixtures/account.ts'
import { call, send } from '../fixtures/client.ts'
import { PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { cohereAnswer, jinaAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { askRerank, ranked, rerank, rerankChannel } from '../fixtures/rerank-fixture.ts'

/** A thousand quota units for a search unit. */
const PER_UNIT = { search_unit: 0.002 }
/** A model whose price is built in. */
const COHERE = 'rerank-v3.5'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      m: { price: PER_UNIT },
      both: { price: { ...PLAIN_PRICE, ...PER_UNIT } },
      percall: { price: { ...PER_UNIT, request: 0.001 } },
      tokens: { price: PLAIN_PRICE },
    },
    channels: ['m', 'both', 'percall', 'tokens', COHERE].map((name) =>
      rerankChannel(name, upstream.baseUrl(name)),
    ),
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann', { remain_quota: 1_000_000_000 }),
          token('poor', { remain_quota: 1_999 }),
          token('lucky', { remain_quota: 2_000 }),
        ],
        { access_token: ANN.accessToken },
      ),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

/** A token for each word, in any tokenizer. */
const apples = (count: number): string => Array.from({ length: count }, () => 'apple').join(' ')
const NO_UNITS: Behaviour = { kind: 'whole', body: JSON.stringify({ results: scored(1) }) }

function answerOf(units: unknown, further: object = {}): Behaviour {
  const meta = { billed_units: { search_units: units }, ...further }
  return { kind: 'whole', body: JSON.stringify({ results: scored(1), meta }) }
}

async function charged(model: string, behaviour: Behaviour, fields: object = {}): Promise<UsageRow> {
  fixture.upstream.script(model, behaviour)
  const answer = await rerank(fixture, 'ann', askRerank(model, { ...fields }))
  expect(answer.status).toBe(200)
  const row = database.usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error('no usage row')
  return row
}

describe('a price per search unit', () => {
  test('a price per search unit is charged for the units that the upstream bills', async () => {
    const row = await charged('m', answerOf(7))
    expect(row).toMatchObject({ quota: 7_000, reason: 'complete', search_units: 7, input_tokens: 0 })
  })
  test('a price per search unit is charged together with the price per call, which is charged once', async () => {
    expect((await charged('percall', answerOf(7))).quota).toBe(7_500)
  })
  test('a price per search unit is charged for the models of Cohere, whose price is built in', async () => {
    expect((await charged(COHERE, answerOf(4))).quota).toBe(4_000)
  })
  test('a price per search unit is charged where a rerank upstream reports no tokens, even if tokens have a price, too', async () => {
    expect(await charged('both', answerOf(7))).toMatchObject({ quota: 7_000, reason: 'complete' })
    const tokens = { tokens: { input_tokens: 321 } }
    expect(await charged('both', answerOf(7, tokens))).toMatchObject({ quota: 321, search_units: 7 })
  })
  test('the charge for search units is a separate line of the cost in the usage row and in exported rows', async () => {
    const { id } = await charged('m', answerOf(3))
    const { data } = await manage(fixture.gateway.url, ANN, `GET /api/log/self/${id}`)
    const cost = [{ kind: 'search_unit', count: 3, price_usd: '0.002', quota: '3000' }]
    expect(data).toMatchObject({ search_units: 3, ratio: '1', rounded: '3000', cost })
    const file = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/log/self/export',
      headers: { authorization: ANN.accessToken, 'gateway-user': String(ANN.id) },
    })
    const [header = '', ...rows] = file.text.split('\r\n')
    const row = rows.find((line) => line.startsWith(id))?.split(',') ?? []
    expect(row[header.split(',').indexOf('search_units')]).toBe('3')
  })
})

test('search units that the upstream bills are believed up to ten times what the request can be', async () => {
  const documents = Array.from({ length: 101 }, () => 'apple')
  expect(await charged('m', answerOf(20), { documents })).toMatchObject({ quota: 20_000, reason: 'complete' })
  for (const model of ['m', COHERE]) {
    const row = await charged(model, answerOf(21), { documents })
    const AT_HOLD = { quota: 2_000, reason: 'estimated', note: 'usage_implausible' }
    expect(row).toMatchObject({ ...AT_HOLD, search_units: 2 })
  }
})

describe('rerank calls without reported search units', () => {
  const documents = (count: number, tokens: number): string[] =>
    Array.from({ length: count }, () => apples(tokens))

  test.each<[string, object, number]>([
    ['a short document', { query: 'apple', documents: documents(1, 10) }, 1],
    ['a hundred chunks', { query: 'apple', documents: documents(100, 400) }, 1],
    ['one chunk more', { query: 'apple', documents: documents(101, 400) }, 2],
    // (10 + 1000) / 500: three chunks each.
    ['long documents', { query: apples(10), documents: documents(50, 1000) }, 2],
    ['documents with a text', { query: 'apple', documents: [{ text: apples(99_000), title: 'x' }] }, 2],
    ['empty documents', { query: 'apple', documents: documents(101, 0) }, 2],
    ['an empty query, too', { query: '', documents: documents(101, 0) }, 2],
  ])(
    'query and documents are counted in chunks of 500 tokens where no search units are reported: %s',
    async (_, fields, units) => {
      expect(await charged('m', NO_UNITS, fields)).toMatchObject({
        quota: units * 1_000,
        reason: 'estimated',
        search_units: units,
      })
    },
  )

  test('search units are counted by the gateway where the upstream reports only tokens, which have no price', async () => {
    expect(await charged('m', jinaAnswer(scored(1), 1_000_000))).toMatchObject({ quota: 1_000 })
  })
  test('search units are counted by the gateway when the client of a rerank call leaves', async () => {
    fixture.upstream.script('m', { kind: 'silence' })
    const known = new Set(database.usage().map(({ id }) => id))
    const body = askRerank('m', { query: 'apple', documents: documents(101, 400) })
    const sent = send(fixture.gateway.url, body, { key: 'ann', path: '/v1/rerank' })
    await fixture.upstream.receivedAtLeast('m', 1)
    sent.destroy()
    await expect
      .poll(() => database.usage().filter(({ id }) => !known.has(id)))
      .toMatchObject([{ quota: 2_000, reason: 'client_gone', search_units: 2 }])
  })
  test('a rerank call is charged by its tokens only, where search units have no price', async () => {
    const row = await charged('tokens', cohereAnswer(scored(0.5)), {
      query: 'apple',
      documents: documents(1, 9),
    })
    expect(row.reason).toBe('estimated')
    expect(row.quota).toBe(row.input_tokens)
    expect(row.input_tokens).toBeGreaterThanOrEqual(10)
  })
})

test('the hold of a rerank call covers the search units of the maximum number of chunks', async () => {
  // 200 documents of one chunk each are two units.
  const documents = Array.from({ length: 200 }, () => 'x'.repeat(490))
  const ask = askRerank('m', { query: 'which?', documents })
  fixture.upstream.script('m', answerOf(2))
  fixture.upstream.forget('m')
  const refused = await rerank(fixture, 'poor', ask)
  expect([refused.status, refused.json().error.code]).toEqual([403, 'insufficient_quota'])
  expect(fixture.upstream.received('m')).toHaveLength(0)
  expect(ranked(await rerank(fixture, 'lucky', ask)).results).toHaveLength(1)
  expect(database.token('token-lucky').remain_quota).toBe(0)
})
