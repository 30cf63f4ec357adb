import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BatchClient, bodyOf, linesIn } from '../fixtures/batches.ts'
import { call } from '../fixtures/client.ts'
import { type Configuration, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const CHARGE = 30
const MODELS = ['m', 'refused', 'gated']

let fixture: Fixture
let config: Configuration & { readonly options: object }
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) =>
      (config = {
        options: {
          body_limit: '4KiB',
          local_batches: true,
          batches: { parallel: 16 },
          public_url: 'https://ai.example.com',
        },
        rate_limits: { relay: { requests: 0 }, key: { requests: 0 } },
        models: priced(MODELS),
        channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
        users: [
          ROOT,
          user(2, 'ann', [token('ann')]),
          user(3, 'bob', [token('bob')]),
          user(5, 'boss', [token('boss')], { role: 10 }),
        ],
      }),
  )
})
afterAll(() => fixture?.close())

const clientOf = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
const request = (customId: string, model = 'm', fields: object = {}): object => ({
  custom_id: customId,
  params: { model, max_tokens: 50, messages: [{ role: 'user', content: 'a, ]}"\\' }], ...fields },
})
const make = (key: string, requests: readonly object[]) =>
  clientOf(key).ask('/v1/messages/batches', 'POST', { requests })

describe('docs/batches.md: Message batches', () => {
  test('each request is a separate call, and the results are those of their custom ids', async () => {
    const ann = clientOf('ann')
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    fixture.upstream.script('refused', {
      kind: 'status',
      status: 400,
      body: '{"error":{"message":"bad picture","type":"invalid_request_error"}}',
    })
    const made = bodyOf(await make('ann', [request('a'), request('b', 'refused'), request('c', 'gated')]))
    expect(made).toEqual({
      id: expect.stringMatching(/^msgbatch_[0-9a-f]{32}$/),
      type: 'message_batch',
      processing_status: 'in_progress',
      request_counts: { processing: 3, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      ended_at: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      expires_at: new Date(Date.parse(String(made['created_at'])) + 86_400_000).toISOString(),
      archived_at: null,
      cancel_initiated_at: null,
      results_url: null,
    })
    expect((await ann.ask(`/v1/messages/batches/${made.id}/results`)).status).toBe(404)
    expect((await ann.ask(`/v1/messages/batches/${made.id}`, 'DELETE')).status).toBe(400)
    gate.resolve()
    const ended = await ann.ended(made.id)
    expect(ended).toMatchObject({
      processing_status: 'ended',
      request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 },
      results_url: `https://ai.example.com/v1/messages/batches/${made.id}/results`,
    })
    const results = linesIn((await ann.ask(`/v1/messages/batches/${made.id}/results`)).text)
    expect(results.map(({ custom_id, result }) => [custom_id, result.type])).toEqual([
      ['a', 'succeeded'],
      ['b', 'errored'],
      ['c', 'succeeded'],
    ])
    expect(results[0]?.result.message).toMatchObject({ type: 'message', role: 'assistant' })
    expect(results[1]?.result.error).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error' },
    })
    expect(JSON.stringify(results[1])).toContain('bad picture')
    const rows = databaseOf(fixture.gateway.dataDir).usage()
    expect(rows.map(({ quota }) => quota).toSorted((a, b) => a - b)).toEqual([0, CHARGE, CHARGE])
    expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
    expect(bodyOf(await ann.ask('/v1/files')).data).toEqual([])
    expect((await ann.ask(`/v1/messages/batches/${made.id}`, 'DELETE')).json()).toEqual({
      id: made.id,
      type: 'message_batch_deleted',
    })
    expect((await ann.ask(`/v1/messages/batches/${made.id}`)).status).toBe(404)
    expect((await ann.ask(`/v1/messages/batches/${made.id}/results`)).status).toBe(404)
  })

  test('every answer has its id in the header request-id', async () => {
    const ann = clientOf('ann')
    const made = await make('ann', [request('a')])
    const { id } = bodyOf(made)
    await ann.ended(id)
    const answers = [
      made,
      await ann.ask('/v1/messages/batches'),
      await ann.ask(`/v1/messages/batches/${id}`),
      await ann.ask(`/v1/messages/batches/${id}/results`),
      await ann.ask(`/v1/messages/batches/${id}/cancel`, 'POST'),
      await ann.ask(`/v1/messages/batches/${id}`, 'DELETE'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 200])
    for (const { headers } of answers) {
      expect(headers['request-id']).toBeTruthy()
      expect(headers['request-id']).toBe(headers['x-request-id'])
    }
  })

  test.each<[string, unknown, string]>([
    ['a known name in another case', { requests: [{ ...request('a'), Params: {} }] }, 'requests.0: '],
    ['a list at its root', [request('a')], 'requests'],
    ['another member', { requests: [request('a')], other: 1 }, 'requests'],
    ['no requests', { requests: [] }, 'at least one'],
    ['a wrong custom_id', { requests: [request('a'), request('b c')] }, 'requests.1.custom_id: '],
    ['a custom_id twice', { requests: [request('a'), request('a')] }, 'requests.1.custom_id: '],
    ['no params', { requests: [{ custom_id: 'a' }] }, 'requests.0.params: '],
    ['an unknown model', { requests: [request('a'), request('b', 'nowhere')] }, 'requests.1: '],
    ['a stream', { requests: [request('a', 'm', { stream: true })] }, 'requests.0.params.stream: '],
    ['a text as an element', { requests: ['a'] }, 'requests.0: '],
    ['a large request', { requests: [request('a', 'm', { system: 'x'.repeat(5_000) })] }, 'requests.0: '],
  ])('a body with %s is refused, and makes nothing', async (_, body, text) => {
    const bob = clientOf('bob')
    const answer = await bob.ask('/v1/messages/batches', 'POST', body as object)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ type: 'error' })
    expect(answer.json().error.message).toContain(text)
    expect(bodyOf(await bob.ask('/v1/messages/batches')).data).toEqual([])
    expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
  })

  test('ids of another user and of the other API are a 404 on every path, for administrators too', async () => {
    const { id } = bodyOf(await make('ann', [request('a')]))
    await clientOf('ann').ended(id)
    for (const key of ['bob', 'boss'])
      for (const [path, method] of [
        [`/v1/messages/batches/${id}`, 'GET'],
        [`/v1/messages/batches/${id}/results`, 'GET'],
        [`/v1/messages/batches/${id}/cancel`, 'POST'],
        [`/v1/messages/batches/${id}`, 'DELETE'],
      ] as const)
        expect([path, (await clientOf(key).ask(path, method)).status]).toEqual([path, 404])
    expect((await clientOf('ann').ask(`/v1/batches/${id}`)).status).toBe(404)
    expect((await clientOf('ann').ask(`/v1/batches/${id}/cancel`, 'POST')).status).toBe(404)
    expect((await clientOf('ann').ask(`/v1/messages/batches/${id}/results`)).status).toBe(200)
  })

  test('requests of a cancelled message batch that were not made are canceled', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const bob = clientOf('bob')
    const requests = Array.from({ length: 10 }, (_, at) => request(`r${at}`, 'gated'))
    const { id } = bodyOf(await make('bob', requests))
    await fixture.upstream.receivedAtLeast('gated', 8)
    const cancelled = bodyOf(await bob.ask(`/v1/messages/batches/${id}/cancel`, 'POST'))
    expect(cancelled).toMatchObject({ processing_status: 'canceling', request_counts: { processing: 10 } })
    gate.resolve()
    expect(await bob.ended(id)).toMatchObject({
      request_counts: { processing: 0, succeeded: 8, errored: 0, canceled: 2, expired: 0 },
    })
    const results = linesIn((await bob.ask(`/v1/messages/batches/${id}/results`)).text)
    expect(results.slice(8).map(({ custom_id, result }) => [custom_id, result])).toEqual([
      ['r8', { type: 'canceled' }],
      ['r9', { type: 'canceled' }],
    ])
    await bob.ask(`/v1/messages/batches/${id}`, 'DELETE')
  })

  test('message batches are listed in pages after and before an id', async () => {
    const boss = clientOf('boss')
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift(bodyOf(await make('boss', [request(name)])).id)
    const list = async (query: string): Promise<[string[], unknown]> => {
      const { data, has_more } = bodyOf(await boss.ask(`/v1/messages/batches?${query}`))
      return [data.map(({ id }) => id), has_more]
    }
    expect(await list('')).toEqual([ids, false])
    expect(await list('limit=2')).toEqual([ids.slice(0, 2), true])
    expect(await list(`after_id=${ids[0]}&limit=1`)).toEqual([[ids[1]], true])
    expect(await list(`before_id=${ids[2]}`)).toEqual([ids.slice(0, 2), false])
    for (const id of ids) await boss.ended(id)
  })

  test('without public_url, results_url has the host of the request, and https if a trusted proxy says so', async () => {
    const { gateway } = fixture
    const { url } = gateway
    const options = { ...config.options, public_url: '', base_path: '/ai' }
    const path = '/ai/v1/messages/batches'
    const { id } = bodyOf(await make('ann', [request('a')]))
    await clientOf('ann').ended(id)
    const resultsUrl = async (): Promise<string | null> => {
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'ai.example.com' }
      return bodyOf(await call(url, undefined, { method: 'GET', path: `${path}/${id}`, key: 'ann', headers }))
        .results_url
    }
    await gateway.apply({ ...config, options })
    expect(await resultsUrl()).toBe(`${url}${path}/${id}/results`)
    await gateway.apply({ ...config, options: { ...options, trusted_proxies: ['127.0.0.1'] } })
    expect(await resultsUrl()).toBe(`https://ai.example.com${path}/${id}/results`)
  })
})
