import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { type FullResponse, send } from '../fixtures/client.ts'
import { PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { cohereAnswer, jinaAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { askRerank, ranked, rerank, rerankChannel } from '../fixtures/rerank-fixture.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'

/** One unit for each token; a thousand for each call, five hundred in the group `half`. */
const PER_TOKEN = PLAIN_PRICE
const PER_CALL = { request: 0.002 }

/** Models with two channels. */
const PAIRS = ['pair', 'rubbish', 'keys']

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1 },
    groups: { default: {}, half: { ratio: 0.5 } },
    models: Object.fromEntries([
      ...['m', 'drained', ...PAIRS].map((name) => [name, { price: PER_TOKEN }]),
      ['percall', { price: PER_CALL }],
      ['free', { price: { input: 0, output: 0 } }],
    ]),
    channels: [
      ...['m', 'percall', 'free'].map((name) =>
        rerankChannel(name, upstream.baseUrl(name), { groups: ['default', 'half'] }),
      ),
      rerankChannel('drained', upstream.baseUrl('drained'), { on_client_gone: 'drain' }),
      ...PAIRS.map((name) =>
        rerankChannel(name, upstream.baseUrl(name), {
          priority: 5,
          ...(name === 'keys' ? { keys: ['bad-key', 'good-key'] } : {}),
        }),
      ),
      rerankChannel('spare', upstream.baseUrl('spare'), { models: ['pair', 'rubbish'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann', { remain_quota: 1_000_000_000 }),
        token('half', { remain_quota: 1_000_000_000, group: 'half' }),
        token('poor', { remain_quota: 999 }),
      ]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

interface Charged {
  readonly answer: FullResponse
  readonly row: UsageRow
}

/**
 * Makes a call, and checks that token and user were charged as its row says by the time the response was
 * complete.
 */
async function charged(
  model: string,
  behaviour: Behaviour,
  fields: Record<string, unknown> = {},
  key = 'ann',
): Promise<Charged> {
  fixture.upstream.script(model, behaviour)
  const before = { token: database.token(`token-${key}`), user: database.user('ann') }
  const answer = await rerank(fixture, key, askRerank(model, fields))
  const row = database.usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error(`no usage row for ${answer.status} ${answer.text.slice(0, 300)}`)
  const after = { token: database.token(`token-${key}`), user: database.user('ann') }
  expect(after.token.used_quota - before.token.used_quota).toBe(row.quota)
  expect(before.token.remain_quota - after.token.remain_quota).toBe(row.quota)
  expect(after.user.used_quota - before.user.used_quota).toBe(row.quota)
  expect(before.user.quota - after.user.quota).toBe(row.quota)
  expect(after.user.request_count - before.user.request_count).toBe(1)
  return { answer, row }
}

async function untilNoHolds(): Promise<void> {
  await expect.poll(() => database.openHolds()).toHaveLength(0)
}

/** Makes a call that delivers nothing, and checks that it cost nothing and counts for nothing. */
async function uncharged(model: string): Promise<FullResponse> {
  const before = { token: database.token('token-ann'), user: database.user('ann') }
  const answer = await rerank(fixture, 'ann', askRerank(model))
  await untilNoHolds()
  const { used_quota, remain_quota } = before.token
  expect(database.token('token-ann')).toMatchObject({ used_quota, remain_quota })
  expect(database.user('ann')).toEqual(before.user)
  return answer
}

const RESULTS = scored(0.1, 0.9, 0.5)
const usage = (tokens: number): object => ({
  prompt_tokens: tokens,
  completion_tokens: 0,
  total_tokens: tokens,
})

describe('a price per token', () => {
  test("a rerank call with a price per token is charged for the tokens in the upstream's usage", async () => {
    const { row, answer } = await charged('m', jinaAnswer(RESULTS, 1234))
    expect(row).toMatchObject({
      quota: 1234,
      reason: 'complete',
      input_tokens: 1234,
      output_tokens: 0,
      model: 'm',
      stream: 0,
    })
    expect(ranked(answer).usage).toEqual(usage(1234))
  })
  test("a rerank call with a price per token is charged for the tokens in the upstream's meta", async () => {
    const body = JSON.stringify({ results: RESULTS, meta: { tokens: { input_tokens: 321 } } })
    const { row, answer } = await charged('m', { kind: 'whole', body })
    expect(row).toMatchObject({ quota: 321, reason: 'complete' })
    expect(ranked(answer).usage).toEqual(usage(321))
  })
  test('a rerank call with a price per token is charged at the ratio of the group', async () => {
    const { row } = await charged('m', jinaAnswer(RESULTS, 1001), {}, 'half')
    expect(row.quota).toBe(501) // 500.5, rounded away from zero
  })
  test('a rerank call with a price per token is charged for output tokens, too, where there are any', async () => {
    const body = JSON.stringify({ results: RESULTS, usage: { prompt_tokens: 100, completion_tokens: 2 } })
    const { row, answer } = await charged('m', { kind: 'whole', body })
    expect(row).toMatchObject({ quota: 108, input_tokens: 100, output_tokens: 2 })
    expect(ranked(answer).usage).toEqual({ prompt_tokens: 100, completion_tokens: 2, total_tokens: 102 })
  })
  test('a rerank call of a free model costs nothing, but is counted as a request', async () => {
    expect((await charged('free', jinaAnswer(RESULTS, 1234))).row.quota).toBe(0)
  })
})

describe('rerank calls without reported tokens', () => {
  // One token for each word, in any tokenizer, and one more for the separator of two documents.
  const apples = (count: number): string => Array.from({ length: count }, () => 'apple').join(' ')
  const fields = { query: apples(10), documents: [apples(100), { text: apples(190), title: 'left out' }] }

  test.each<[string, Behaviour]>([
    ['which charges for searches', cohereAnswer(scored(0.1, 0.9))],
    ['which is empty', { kind: 'whole', body: JSON.stringify({ results: scored(0.1, 0.9) }) }],
    ['whose count cannot be true', jinaAnswer(scored(0.1, 0.9), -5)],
  ])(
    'the tokens of query and documents are counted where the rerank upstream reports none: %s',
    async (_, behaviour) => {
      const { row, answer } = await charged('m', behaviour, fields)
      expect(row.reason).toBe('estimated')
      expect(row.input_tokens).toBeGreaterThanOrEqual(295)
      expect(row.input_tokens).toBeLessThanOrEqual(310)
      expect(row).toMatchObject({ quota: row.input_tokens, output_tokens: 0 })
      expect(ranked(answer).usage).toEqual(usage(row.input_tokens))
    },
  )
})

describe('a price per call', () => {
  test.each<[string, Behaviour, number]>([
    ['whatever tokens the upstream reports', jinaAnswer(RESULTS, 1_000_000), 1_000_000],
    ['and needs none', cohereAnswer(RESULTS), 0],
  ])('a rerank call with a price per call costs that price: %s', async (_, behaviour, tokens) => {
    const { row, answer } = await charged('percall', behaviour)
    expect(row).toMatchObject({ quota: 1000, reason: 'complete', input_tokens: tokens })
    expect(ranked(answer).usage).toEqual(usage(tokens))
  })
  test('a rerank call with a price per call is charged at the ratio of the group', async () => {
    expect((await charged('percall', cohereAnswer(RESULTS), {}, 'half')).row.quota).toBe(500)
  })
  test('a rerank call is refused where the key cannot pay the price per call', async () => {
    fixture.upstream.forget('percall')
    const answer = await rerank(fixture, 'poor', askRerank('percall'))
    expect(answer.status).toBe(403)
    expect(answer.json().error).toMatchObject({ type: 'permission_error', code: 'insufficient_quota' })
    expect(answer.json().error.message).toMatch(/999.*1000|1000.*999/)
    expect(fixture.upstream.received('percall')).toHaveLength(0)
  })
})

describe('a call whose documents may cost more than the remaining quota', () => {
  const long = { documents: ['x'.repeat(1000)] }
  test('a rerank call whose documents cost more than the quota is a 403, and no upstream is called', async () => {
    fixture.upstream.forget('m')
    const answer = await rerank(fixture, 'poor', askRerank('m', long))
    expect([answer.status, answer.json().error.code]).toEqual([403, 'insufficient_quota'])
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
  test('a rerank call whose documents the key can pay is admitted, because no output is held', async () => {
    const { row } = await charged('m', jinaAnswer(scored(1), 100), { documents: ['x'.repeat(100)] }, 'poor')
    expect(row.quota).toBe(100)
  })
})

describe('a client that leaves before the response', () => {
  const leave = async (
    model: string,
    behaviour: Behaviour,
    hasLeft: () => void = () => {},
  ): Promise<UsageRow> => {
    fixture.upstream.script(model, behaviour)
    const known = new Set(database.usage().map(({ id }) => id))
    const sent = send(fixture.gateway.url, askRerank(model), { key: 'ann', path: '/v1/rerank' })
    await fixture.upstream.receivedAtLeast(model, 1)
    sent.destroy()
    // The gateway must notice this before an answer arrives.
    await untilOver(fixture.gateway.url, 0)
    hasLeft()
    await expect.poll(() => database.usage().filter(({ id }) => !known.has(id))).toHaveLength(1)
    await untilNoHolds()
    return database.usage().find(({ id }) => !known.has(id)) as UsageRow
  }

  test('a rerank call whose client leaves is aborted upstream, and charged for the counted prompt', async () => {
    const row = await leave('m', { kind: 'silence' })
    await fixture.upstream.only('m').ended
    expect(fixture.upstream.only('m').completed).toBe(false)
    expect(row.reason).toBe('client_gone')
    // Four words: "which?", "zero", "one", "two".
    expect(row.quota).toBeGreaterThanOrEqual(4)
    expect(row.quota).toBeLessThanOrEqual(10)
  })
  test('a rerank call with a price per call is charged when its client leaves', async () => {
    expect(await leave('percall', { kind: 'silence' })).toMatchObject({ quota: 1000, reason: 'client_gone' })
  })
  test('a rerank call whose client leaves is read to its end, and charged by its usage, where the channel is configured for that', async () => {
    const { promise: after, resolve: hasLeft } = Promise.withResolvers<void>()
    const row = await leave('drained', { ...jinaAnswer(RESULTS, 77), after }, hasLeft)
    expect(row).toMatchObject({ quota: 77, reason: 'client_gone' })
    await expect.poll(() => fixture.upstream.only('drained').completed).toBe(true)
  })
})

describe('failover before a response', () => {
  const RUBBISH: [string, unknown][] = [
    ['an index beyond the documents', [{ index: 3, relevance_score: 1 }]],
    ['a negative index', [{ index: -1, relevance_score: 1 }]],
    ['an index twice', [...scored(1, 0.5), { index: 0, relevance_score: 0.1 }]],
    ['a fraction of an index', [{ index: 0.5, relevance_score: 1 }]],
    ['no score', [{ index: 0 }]],
    ['a score that is text', [{ index: 0, relevance_score: '1' }]],
    ['no list', { 0: { index: 0, relevance_score: 1 } }],
  ]
  const rubbish = (results: unknown): Behaviour => ({
    kind: 'whole',
    body: JSON.stringify({ results, usage: { total_tokens: 5 } }),
  })

  test.each<[string, Behaviour]>([
    ['a 500', { kind: 'status', status: 500 }],
    ['a 429', { kind: 'status', status: 429 }],
    ['a dropped connection', { kind: 'drop' }],
    ['a page of HTML', { kind: 'whole', body: '<html>', headers: { 'content-type': 'text/html' } }],
    [
      'an answer cut short',
      { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"resu', ending: 'close' },
    ],
    ['an error with status 200', { kind: 'whole', body: '{"error":{"message":"no"}}' }],
    ...RUBBISH.map(([what, results]): [string, Behaviour] => [what, rubbish(results)]),
  ])(
    'the next rerank channel is tried after %s, and only the delivered response is charged',
    async (_, behaviour) => {
      fixture.upstream.script('spare', jinaAnswer(RESULTS, 42))
      const { row, answer } = await charged('pair', behaviour)
      expect(row).toMatchObject({ quota: 42, reason: 'complete', channel: 'spare' })
      expect(ranked(answer).results).toHaveLength(3)
      expect(fixture.upstream.received('spare')).toHaveLength(1)
    },
  )

  test.each(RUBBISH)(
    'a rerank call to which every channel answers with %s is a 500 api_error, and not charged',
    async (_, results) => {
      fixture.upstream.script('rubbish', rubbish(results))
      fixture.upstream.script('spare', rubbish(results))
      const answer = await uncharged('rubbish')
      expect(answer.status).toBe(500)
      expect(answer.json().error).toMatchObject({ type: 'api_error', code: 'upstream_error' })
      expect(fixture.upstream.received('spare')).toHaveLength(1)
    },
  )

  test("no other rerank channel is tried after an upstream error that is the client's fault", async () => {
    fixture.upstream.script('pair', { kind: 'status', status: 422, body: '{"message":"unknown field"}' })
    fixture.upstream.script('spare', jinaAnswer(RESULTS, 42))
    expect((await uncharged('pair')).status).toBe(422)
    expect(fixture.upstream.received('spare')).toHaveLength(0)
  })

  test('an upstream key that a rerank provider refuses is set aside, and another one is used', async () => {
    fixture.upstream.decide('keys', ({ headers }) =>
      headers.authorization === 'Bearer good-key' ? jinaAnswer(RESULTS, 9) : { kind: 'status', status: 401 },
    )
    for (let turn = 0; turn < 4; turn++)
      expect(ranked(await rerank(fixture, 'ann', askRerank('keys'))).usage.total_tokens).toBe(9)
    const used = fixture.upstream.received('keys').map(({ headers }) => headers.authorization)
    expect(used.filter((key) => key === 'Bearer bad-key')).toHaveLength(1)
  })
})

test('a gateway that is killed during a rerank call settles the call when it starts again', async () => {
  fixture.upstream.script('percall', { kind: 'silence' })
  const known = new Set(database.usage().map(({ id }) => id))
  send(fixture.gateway.url, askRerank('percall'), { key: 'ann', path: '/v1/rerank' })
  await fixture.upstream.receivedAtLeast('percall', 1)
  await expect.poll(() => database.openHolds()).toHaveLength(1)
  await fixture.gateway.kill()
  await fixture.gateway.restart()
  expect(database.openHolds()).toHaveLength(0)
  expect(database.usage().filter(({ id }) => !known.has(id))).toMatchObject([
    { quota: 1000, reason: 'crash' },
  ])
})
