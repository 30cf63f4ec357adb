import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { BatchClient, type BatchBody, chatLine } from '../fixtures/batches.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'

const CHARGE = 30
const MODELS = ['m', 'asked', 'once', 'vectors', 'conversed', 'limited', 'routed', 'gated']
const GROUPS = ['default', 'first', 'other']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { local_batches: true, cache: { ttl: '10m' } },
    rate_limits: { relay: { requests: 0 }, key: { requests: 0 } },
    groups: {
      default: { ratio: 1 },
      ...Object.fromEntries(
        GROUPS.slice(1).map((name) => [name, { ratio: 2, budget: 1_000_000, budget_period: 'month' }]),
      ),
    },
    models: priced([...MODELS, 'failing']),
    channels: MODELS.map((name) => channel(name, upstream.baseUrl(name), { groups: GROUPS })).concat(
      channel('failing', upstream.baseUrl('failing'), { protocol: 'gemini' }),
    ),
    guards: [
      { name: 'mask', do: 'redact', match: { words: ['plum'] }, tokens: ['token-ann'] },
      { name: 'stop', do: 'block', match: { words: ['cherry'] }, tokens: ['token-ann'] },
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')]),
      user(3, 'bob', [token('bob')]),
      user(4, 'cyd', [token('cyd')]),
      user(5, 'dan', [token('dan', { rate_limit: { requests: 3, window: '3s' } })]),
      user(6, 'eve', [token('eve')], { group: 'first' }),
      user(7, 'fay', [token('fay', { group: 'first' })]),
      user(8, 'gil', [token('gil', { vendor_routes: '{"acme":"first"}' })]),
    ],
  }))
})
afterAll(() => fixture?.close())

const clientOf = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
async function ended(
  client: BatchClient,
  lines: object[],
  endpoint = '/v1/chat/completions',
): Promise<BatchBody> {
  return client.ended((await client.make(lines, { endpoint })).id)
}
const saying = (customId: string, content: string, model = 'm'): object =>
  chatLine(customId, model, { messages: [{ role: 'user', content }] })
const quotasOf = (userId: number): number[] =>
  databaseOf(fixture.gateway.dataDir)
    .usage()
    .filter((row) => row.user_id === userId)
    .map(({ quota }) => quota)

describe('docs/batches.md: Batches', () => {
  test('guards look at a line before it is sent, and at its answer before it is kept', async () => {
    const ann = clientOf('ann')
    fixture.upstream.script('m', { kind: 'whole', content: 'a plum for you' })
    const batch = await ended(ann, [saying('red', 'one plum'), saying('no', 'one cherry')])
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    expect(fixture.upstream.only('m').text).not.toContain('plum')
    const [line] = await ann.lines(batch.output_file_id)
    expect(JSON.stringify(line)).not.toContain('plum')
    const [blocked] = await ann.lines(batch.error_file_id)
    expect(blocked).toMatchObject({ custom_id: 'no', response: { status_code: 400 } })
    expect(JSON.stringify(blocked)).toContain('guard_blocked')
    expect(quotasOf(2).reduce((sum, quota) => sum + quota, 0)).toBe(CHARGE)
  })

  test('lines neither read nor fill the answer cache', async () => {
    const bob = clientOf('bob')
    const body = ask('once', { max_tokens: 100 })
    await ended(bob, [chatLine('a', 'once'), chatLine('b', 'once')])
    expect(fixture.upstream.received('once')).toHaveLength(2)
    const first = await fixture.chat('bob', body)
    expect(first.headers['x-gateway-cache']).toBe('miss')
    await ended(bob, [chatLine('c', 'once')])
    expect(fixture.upstream.received('once')).toHaveLength(4)
  })

  test('a provider gets the request alone: neither the custom id nor the metadata of the batch', async () => {
    const cyd = clientOf('cyd')
    const made = await cyd.make([chatLine('secret-id', 'asked')], { metadata: { note: 'secret-note' } })
    await cyd.ended(made.id)
    const { text, headers } = fixture.upstream.only('asked')
    expect(JSON.parse(text)).toEqual(ask('asked', { max_tokens: 100 }))
    expect(JSON.stringify(headers)).not.toMatch(/secret|batch/)
  })

  test('lines may be embeddings or responses', async () => {
    const cyd = clientOf('cyd')
    const vectors = JSON.stringify({
      object: 'list',
      model: 'vectors',
      data: [{ object: 'embedding', index: 0, embedding: [1, 2] }],
      usage: { prompt_tokens: 7, total_tokens: 7 },
    })
    fixture.upstream.script('vectors', { kind: 'whole', body: vectors })
    const line = (url: string, body: object): object => ({ custom_id: 'a', method: 'POST', url, body })
    const embedded = await ended(
      cyd,
      [line('/v1/embeddings', { model: 'vectors', input: 'hi' })],
      '/v1/embeddings',
    )
    expect((await cyd.lines(embedded.output_file_id))[0]?.response?.body).toMatchObject({ object: 'list' })
    expect(embedded['usage']).toMatchObject({ input_tokens: 7 })
    const answered = await ended(
      cyd,
      [line('/v1/responses', { model: 'conversed', input: 'hi', max_output_tokens: 50 })],
      '/v1/responses',
    )
    const [result] = await cyd.lines(answered.output_file_id)
    expect(result?.response?.body).toMatchObject({ object: 'response', status: 'completed' })
  })

  test('lines count in the limits of their key, and wait for them', async () => {
    const dan = clientOf('dan')
    const batch = await dan.make([0, 1, 2].map((at) => chatLine(`l${at}`, 'limited')))
    await expect.poll(() => quotasOf(5), { timeout: 60_000, interval: 200 }).toEqual([CHARGE, CHARGE, CHARGE])
    expect(batch.request_counts['total']).toBe(3)
  })

  test('the row of a line that had to wait has the times of its call', async () => {
    const sentMs: number[] = []
    fixture.upstream.decide('limited', () => {
      sentMs.push(Date.now())
      return { kind: 'whole' }
    })
    const { id } = await ended(
      clientOf('dan'),
      [0, 1, 2].map((at) => chatLine(`w${at}`, 'limited')),
    )
    const rows = databaseOf(fixture.gateway.dataDir)
      .usage()
      .filter((row) => 'batch' in row && row.batch === id)
    const endedMs = rows.map((row) => row.ended_ms).toSorted((one, other) => one - other)
    expect(endedMs).toHaveLength(3)
    expect(sentMs.filter((ms, at) => ms > (endedMs[at] ?? 0))).toEqual([])
    const begunMs = Math.max(...rows.map((row) => row.ended_ms - row.duration_ms))
    expect(begunMs).toBeGreaterThan(endedMs[0] ?? 0)
  })

  test('a failed line is free in its row and in the metrics, although its provider states usage', async () => {
    const [prompt, cached, output] = [100, 40, 50]
    const answer = (finishReason: string): string =>
      JSON.stringify({
        candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason }],
        usageMetadata: {
          promptTokenCount: prompt,
          cachedContentTokenCount: cached,
          candidatesTokenCount: output,
          totalTokenCount: prompt + output,
        },
      })
    fixture.upstream.decide('failing', ({ text }) => ({
      kind: 'whole',
      body: answer(text.includes('fail') ? 'MALFORMED_FUNCTION_CALL' : 'STOP'),
    }))
    const bob = clientOf('bob')
    const { id } = await ended(bob, [saying('a', 'please fail', 'failing'), saying('b', 'hi', 'failing')])
    const rows = databaseOf(fixture.gateway.dataDir)
      .usage()
      .filter((row) => 'batch' in row && row.batch === id)
      .toSorted((one, other) => one.quota - other.quota)
    const charge = prompt - cached + cached / 4 + output * 4
    expect(rows).toMatchObject([
      { quota: 0, output_tokens: output, cache_saved: 0 },
      { quota: charge, output_tokens: output, cache_saved: cached - cached / 4 },
    ])
    const metrics = await metricsOf(fixture.gateway.url)
    expect(metrics.sum('sluice_quota_total', { model: 'failing' })).toBe(charge)
  })

  test('lines go on in the groups of the submission, whose budgets they are charged to', async () => {
    const { gateway, upstream } = fixture
    const gate = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: gate.promise })
    const made = []
    for (const key of ['eve', 'fay', 'gil'])
      made.push(await clientOf(key).make([chatLine('a', 'routed'), chatLine('b', 'gated')]))
    await upstream.receivedAtLeast('gated', 3)
    await expect.poll(() => [6, 7, 8].map((id) => quotasOf(id).length)).toEqual([1, 1, 1])
    const change = async (path: `PUT /${string}`, fields: object): Promise<void> => {
      expect(
        await manage(gateway.url, { id: 1, accessToken: ROOT.access_token }, path, fields),
      ).toMatchObject({ success: true })
    }
    const idOf = (key: string): number => databaseOf(gateway.dataDir).token(`token-${key}`).id
    await change('PUT /api/user/', { id: 6, group: 'other' })
    await change('PUT /api/user/7/tokens', { id: idOf('fay'), group: 'other' })
    await change('PUT /api/user/8/tokens', { id: idOf('gil'), vendor_routes: '{"acme":"other"}' })
    // What was sent is sent again, for the keys as they are now.
    await gateway.kill()
    gate.resolve()
    await gateway.restart()
    for (const [at, key] of ['eve', 'fay', 'gil'].entries())
      expect(await clientOf(key).ended(made[at]?.id ?? '')).toMatchObject({
        request_counts: { completed: 2 },
      })
    const database = databaseOf(gateway.dataDir)
    const rows = database.usage().filter((row) => row.user_id >= 6)
    expect(rows.map((row) => [row.group_name, row.quota])).toEqual(rows.map(() => ['first', 2 * CHARGE]))
    expect(rows).toHaveLength(6)
    const used = database.budgets().map(({ account, used: sum }) => [account.split(':').at(-1), sum])
    expect(Object.fromEntries(used)).toEqual({ first: 6 * 2 * CHARGE })
  })
})
