import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import {
  BATCH_PRICE,
  type BatchInvoice,
  invoicesOf,
  quotaOfInvoice,
  simulateBatches,
} from '../fixtures/batch-provider.ts'
import { BatchClient, type BatchBody, chatLine } from '../fixtures/batches.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const MODEL = 'demo-chat'

/** A channel whose provider gets lines. */
function batching(
  name: string,
  url: string,
  models: string[],
  mapping: Record<string, string>,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return channel(name, url, { batches: true, models, model_mapping: mapping, ...fields })
}

let simulator: Simulator
let gateway: RunningGateway
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  gateway = await startGateway({
    config: {
      options: { batches: { poll: '50ms', poll_most: '200ms' }, public_url: 'https://batches.example' },
      models: {
        [MODEL]: { price: BATCH_PRICE },
        plain: { price: { input: '4', output: '16' } },
        ...Object.fromEntries(
          [
            'second',
            'other',
            'claude',
            'claude-too',
            'gemini',
            'gemini-4',
            'responses',
            'azure',
            'passed',
            'only',
            'called',
            'vectors',
          ].map((name) => [name, { price: BATCH_PRICE }]),
        ),
      },
      channels: [
        batching('openai', simulator.chatUrl, [MODEL, 'plain', 'second'], { plain: MODEL, second: MODEL }),
        batching('other', simulator.chatUrl, ['other'], { other: 'demo-reason' }),
        batching(
          'claude',
          simulator.messagesUrl,
          ['claude', 'claude-too'],
          { claude: 'demo-claude', 'claude-too': 'demo-claude' },
          { protocol: 'messages' },
        ),
        batching(
          'gemini',
          simulator.geminiUrl,
          ['gemini', 'gemini-4'],
          { gemini: 'demo-gemini', 'gemini-4': 'demo-gemini' },
          { protocol: 'gemini' },
        ),
        batching(
          'responses',
          simulator.responsesUrl,
          ['responses'],
          { responses: 'demo-responses' },
          { protocol: 'responses' },
        ),
        batching(
          'azure',
          simulator.azureUrl,
          ['azure'],
          { azure: MODEL },
          { provider: 'azure', api_version: '2024-10-21' },
        ),
        batching('refusing', simulator.chatUrl, ['passed'], { passed: MODEL }, { priority: 2 }),
        batching('accepting', simulator.chatUrl, ['passed'], { passed: MODEL }),
        batching('only', simulator.chatUrl, ['only'], { only: MODEL }, { batches: 'only' }),
        batching('vectors', simulator.embeddingsUrl, ['vectors'], { vectors: 'demo-embed' }),
        channel('called', simulator.chatUrl, { model_mapping: { called: MODEL } }),
      ],
      guards: [
        { name: 'mask', do: 'replace', match: { pii: ['email'] }, tokens: ['token-cyd'] },
        { name: 'stop', do: 'block', match: { words: ['cherry'] }, tokens: ['token-cyd'] },
      ],
      users: [
        ROOT,
        ...['ann', 'bob', 'cyd'].map((name, at) => user(2 + at, name, [token(name)])),
        user(5, 'dan', [token('dan', { rate_limit: { requests: 4, tokens: 2_000, window: '1h' } })]),
      ],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await simulator?.close()
})
beforeEach(() => simulate({ reset: true }))

const simulate = (settings: object) => simulateBatches(simulator.chatUrl, settings)
const invoices = () => invoicesOf(simulator.chatUrl)
const clientOf = (key: string): BatchClient => new BatchClient(gateway.url, key)
const rowsOf = (userId: number) =>
  databaseOf(gateway.dataDir)
    .usage()
    .filter((row) => row.user_id === userId)

const sumOf = (rows: readonly { readonly quota: number }[]): number =>
  rows.reduce((sum, { quota }) => sum + quota, 0)

/** The tier of a row, and whether its price is incomplete. */
function tierOf(row: object): unknown[] {
  const { service_tier: tier, price_incomplete: isIncomplete } = row as Record<string, unknown>
  return [tier, isIncomplete]
}

/** The batch and the line of a row, and how much less it cost than at the standard tier. */
function lineOf(row: object): unknown[] {
  const { batch, custom_id: customId, batch_saved: saved } = row as Record<string, unknown>
  return [batch, customId, saved]
}

/** Makes a batch without leave for local lines. */
async function made(client: BatchClient, lines: object[], fields: object = {}): Promise<BatchBody> {
  return client.make(lines, { metadata: {}, ...fields })
}

describe('docs/batches.md: Batches of providers', () => {
  test('lines go to the batch of a provider, and each is charged once at the price of the tier batch', async () => {
    const ann = clientOf('ann')
    const before = (await invoices()).length
    const { id } = await made(ann, [chatLine('a', MODEL), chatLine('b', MODEL), chatLine('c', MODEL)])
    const batch = await ann.ended(id)
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 3, completed: 3, failed: 0 },
      error_file_id: null,
    })
    const lines = await ann.lines(batch.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(['a', 'b', 'c'])
    expect(lines[0]?.response).toMatchObject({ status_code: 200, body: { object: 'chat.completion' } })
    const [invoice, ...others] = (await invoices()).slice(before)
    expect(others).toEqual([])
    const rows = rowsOf(2)
    expect(rows).toHaveLength(3)
    expect(sumOf(rows)).toBe(quotaOfInvoice(invoice as BatchInvoice))
    expect(rows.map((row) => tierOf(row))).toEqual(Array.from({ length: 3 }, () => ['batch', 0]))
    // The standard tier costs twice as much.
    const named = rows.map((row) => lineOf(row))
    expect(new Set(named.map(([batchId, customId]) => `${String(batchId)} ${String(customId)}`))).toEqual(
      new Set([`${id} a`, `${id} b`, `${id} c`]),
    )
    expect(named.reduce((sum, [, , saved]) => sum + Number(saved), 0)).toBe(
      quotaOfInvoice(invoice as BatchInvoice),
    )
    expect(databaseOf(gateway.dataDir).openHolds()).toEqual([])
  })

  test('a line of another protocol is converted both ways, and lists what was left out', async () => {
    const bob = clientOf('bob')
    const lines = [chatLine('one', 'claude', { service_tier: 'flex', logit_bias: { 1: 2 } })]
    const batch = await bob.ended((await made(bob, lines)).id)
    const [line] = await bob.lines(batch.output_file_id)
    expect(line?.response?.body).toMatchObject({ object: 'chat.completion' })
    expect((line as unknown as Record<string, unknown>)['x_gateway_dropped']).toEqual(
      expect.arrayContaining(['service_tier', 'logit_bias']),
    )
    const [row] = rowsOf(3).slice(-1)
    expect(row && tierOf(row)).toEqual(['batch', 0])
  })

  test.each<[string, string, Record<string, unknown>?]>([
    ['the Gemini API', 'gemini'],
    ['the Gemini API, also where a call would ask for a stream', 'gemini-4', { max_tokens: 40_000 }],
    ['Azure, after the uploaded file was checked', 'azure'],
    ['the Responses API', 'responses'],
  ])('lines go to the batch API of %s', async (_, model, fields = {}) => {
    const bob = clientOf('bob')
    const of = [chatLine('x', model, fields), chatLine('y', model, fields)]
    const batch = await bob.ended((await made(bob, of)).id)
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    const lines = await bob.lines(batch.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(['x', 'y'])
    for (const { response } of lines) expect(response?.body).toMatchObject({ object: 'chat.completion' })
    expect(rowsOf(3).slice(-2).map(tierOf)).toEqual([
      ['batch', 0],
      ['batch', 0],
    ])
  })

  test('lines are one batch of Gemini, whether calls would ask for streams or for whole answers', async () => {
    const bob = clientOf('bob')
    const before = (await invoicesOf(simulator.geminiUrl)).length
    const lines = [40_000, 100, 40_000].map((max_tokens, at) => chatLine(`${at}`, 'gemini-4', { max_tokens }))
    const batch = await bob.ended((await made(bob, lines)).id)
    expect(batch.request_counts).toEqual({ total: 3, completed: 3, failed: 0 })
    expect((await invoicesOf(simulator.geminiUrl)).slice(before)).toHaveLength(1)
  })

  test('a request of a message batch goes to a channel of chat completions', async () => {
    const bob = clientOf('bob')
    const params = { model: MODEL, max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    const answer = await bob.ask('/v1/messages/batches', 'POST', { requests: [{ custom_id: 'm', params }] })
    expect(answer.status).toBe(200)
    const { id } = JSON.parse(answer.text) as BatchBody
    expect((await bob.ended(id)).request_counts).toMatchObject({ succeeded: 1 })
    const { text } = await bob.ask(`/v1/messages/batches/${id}/results`)
    expect(JSON.parse(text)).toMatchObject({
      custom_id: 'm',
      result: { type: 'succeeded', message: { type: 'message' } },
    })
  })

  test('a model without a price for the tier batch pays its standard price there, which is complete', async () => {
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const bills = (await invoices()).length
    await ann.ended((await made(ann, [chatLine('a', 'plain')])).id)
    const [row] = rowsOf(2).slice(before)
    const [invoice] = (await invoices()).slice(bills)
    expect(row && tierOf(row)).toEqual(['batch', 0])
    expect(row?.quota).toBe(2 * quotaOfInvoice(invoice as BatchInvoice))
    expect(row && lineOf(row)[2]).toBe(0)
  })

  test('lines of several models are a batch for each upstream model', async () => {
    const ann = clientOf('ann')
    const before = (await invoices()).length
    const lines = [chatLine('a', MODEL), chatLine('b', 'other'), chatLine('c', MODEL), chatLine('d', 'other')]
    const batch = await ann.ended((await made(ann, lines)).id)
    expect((await ann.lines(batch.output_file_id)).map(({ custom_id }) => custom_id)).toEqual([
      'a',
      'b',
      'c',
      'd',
    ])
    expect((await invoices()).slice(before)).toHaveLength(2)
  })

  test('results in any order, twice, and with unknown ids belong to their lines or are ignored; one that is missing is an error', async () => {
    await simulate({ behaviour: { shuffled: true, duplicates: 2, unknown: 3, missing: 1 } })
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const bills = (await invoices()).length
    const names = Array.from({ length: 12 }, (_, at) => `l${at}`)
    const batch = await ann.ended(
      (
        await made(
          ann,
          names.map((name) => chatLine(name, MODEL)),
        )
      ).id,
    )
    expect(batch.request_counts).toEqual({ total: 12, completed: 11, failed: 1 })
    const errors = await ann.lines(batch.error_file_id)
    expect(errors).toMatchObject([{ response: null, error: { code: 'result_missing' } }])
    const results = (await ann.lines(batch.output_file_id)).map(({ custom_id }) => custom_id)
    expect(results).toEqual(names.filter((name) => name !== errors[0]?.custom_id))
    expect((await invoices()).slice(bills)).toHaveLength(1)
    expect(rowsOf(2).slice(before)).toHaveLength(11)
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    expect(metrics).toContain('sluice_batch_results_ignored_total{reason="duplicate"} 2')
    expect(metrics).toContain('sluice_batch_results_ignored_total{reason="unknown"} 3')
  })

  test.each([
    ['of OpenAI', MODEL, 'chatUrl'],
    ['of Azure', 'azure', 'azureUrl'],
    ['of Gemini', 'gemini', 'geminiUrl'],
  ] as const)(
    'the file that was uploaded for a batch %s is deleted once its results were read',
    async (_, model, url) => {
      const before = await simulateBatches(simulator[url], { faults: [{ step: 'content', broken: 1 }] })
      const ann = clientOf('ann')
      expect(
        (await ann.ended((await made(ann, [chatLine('a', model), chatLine('b', model)])).id)).status,
      ).toBe('completed')
      const after = await simulateBatches(simulator[url], {})
      const since = (step: string): number => (after[step] ?? 0) - (before[step] ?? 0)
      expect([since('content'), since('delete_file')]).toEqual([2, 1])
    },
  )

  test('a provider that does not delete a file does no harm', async () => {
    await simulate({ faults: [{ step: 'delete_file', status: 500 }] })
    const ann = clientOf('ann')
    expect(await ann.ended((await made(ann, [chatLine('a', MODEL)])).id)).toMatchObject({
      request_counts: { total: 1, completed: 1, failed: 0 },
    })
    await expect.poll(() => gateway.logs()).toContain('a file for a batch could not be deleted at a provider')
  })

  test('results that break off are read again, and no line is charged twice', async () => {
    await simulate({ faults: [{ step: 'content', broken: 3 }] })
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const bills = (await invoices()).length
    const batch = await ann.ended(
      (
        await made(
          ann,
          Array.from({ length: 8 }, (_, at) => chatLine(`l${at}`, MODEL)),
        )
      ).id,
    )
    expect(batch.request_counts).toEqual({ total: 8, completed: 8, failed: 0 })
    expect(sumOf(rowsOf(2).slice(before))).toBe(quotaOfInvoice((await invoices())[bills] as BatchInvoice))
  })

  test.each([
    ['upload', 503],
    ['create', 429],
    ['get', 500],
    ['content', 503],
  ])('after an error at the step %s (%i) the provider is asked again', async (step, status) => {
    await simulate({ faults: [{ step, status, times: 2 }] })
    const ann = clientOf('ann')
    const bills = (await invoices()).length
    const batch = await ann.ended((await made(ann, [chatLine('a', MODEL)])).id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
    expect((await invoices()).slice(bills)).toHaveLength(1)
  })

  test('a batch whose making got no answer is found at the provider, and not made twice', async () => {
    await simulate({ faults: [{ step: 'create', lost: true }] })
    const ann = clientOf('ann')
    const bills = (await invoices()).length
    const batch = await ann.ended((await made(ann, [chatLine('a', MODEL), chatLine('b', MODEL)])).id)
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect((await invoices()).slice(bills)).toHaveLength(1)
  })

  test.each([
    ['whose answers were lost are not taken for each other', { lost: true, times: 2 }, 3],
    ['that were not made are not taken for one that another program made', { status: 500, times: 2 }, 3],
  ])('batches of one size at Anthropic %s', async (_, fault, billed) => {
    const params = { model: 'demo-claude', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    await simulateBatches(simulator.messagesUrl, { reset: true, behaviour: { running_ms: 500 } })
    const bills = (await invoicesOf(simulator.messagesUrl)).length
    const foreign = await fetch(`${simulator.messagesUrl}/messages/batches`, {
      method: 'POST',
      headers: { 'x-api-key': 'upstream-key-of-claude', 'content-type': 'application/json' },
      body: JSON.stringify({ requests: [{ custom_id: 'foreign', params }] }),
    })
    expect(foreign.status).toBe(200)
    await simulateBatches(simulator.messagesUrl, { faults: [{ step: 'create', ...fault }] })
    const ann = clientOf('ann')
    const both = await made(ann, [chatLine('a', 'claude'), chatLine('b', 'claude-too')])
    expect((await ann.ended(both.id)).request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect((await invoicesOf(simulator.messagesUrl)).slice(bills)).toHaveLength(billed)
  })

  test('a batch for which the provider has too many tokens is made again later', async () => {
    await simulate({ faults: [{ step: 'create', fails: 'token_limit_exceeded' }] })
    const ann = clientOf('ann')
    const batch = await ann.ended((await made(ann, [chatLine('a', MODEL)])).id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
  })

  test('lines that a channel refuses go to the next channel of the model', async () => {
    await simulate({ faults: [{ step: 'create', status: 403 }] })
    const ann = clientOf('ann')
    const batch = await ann.ended((await made(ann, [chatLine('a', 'passed'), chatLine('b', 'passed')])).id)
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
  })

  test('lines that every channel refuses are errors with the words of the provider, and cost nothing', async () => {
    await simulate({ faults: [{ step: 'create', status: 400 }] })
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const batch = await ann.ended((await made(ann, [chatLine('a', MODEL), chatLine('b', MODEL)])).id)
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 2, completed: 0, failed: 2 },
    })
    const errors = await ann.lines(batch.error_file_id)
    expect(errors.map(({ custom_id }) => custom_id)).toEqual(['a', 'b'])
    for (const { response } of errors)
      expect(response).toMatchObject({ status_code: 400, body: { error: {} } })
    expect(sumOf(rowsOf(2).slice(before))).toBe(0)
    expect(databaseOf(gateway.dataDir).openHolds()).toEqual([])
  })

  test('a cancelled batch is cancelled once at the provider, and what it has finished is charged', async () => {
    await simulate({ behaviour: { running_ms: 60_000, cancelling_ms: 300, done: 2 } })
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const bills = (await invoices()).length
    const names = ['a', 'b', 'c', 'd']
    const { id } = await made(
      ann,
      names.map((name) => chatLine(name, MODEL)),
    )
    await expect.poll(async () => (await invoices()).length).toBe(bills + 1)
    const earlier = await simulate({})
    expect((await ann.ask(`/v1/batches/${id}/cancel`, 'POST')).status).toBe(200)
    const batch = await ann.ended(id)
    expect(batch).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 4, completed: 2, failed: 0 },
    })
    expect(await ann.lines(batch.output_file_id)).toHaveLength(2)
    for (const { error } of await ann.lines(batch.error_file_id)) expect(error?.code).toBe('batch_cancelled')
    expect(sumOf(rowsOf(2).slice(before))).toBe(quotaOfInvoice((await invoices())[bills] as BatchInvoice))
    const requests = await simulate({})
    expect((requests['cancel'] ?? 0) - (earlier['cancel'] ?? 0)).toBe(1)
    expect(databaseOf(gateway.dataDir).openHolds()).toEqual([])
  })

  test('lines that a provider leaves unfinished when its batch expires are errors, and cost nothing', async () => {
    await simulate({ behaviour: { end: 'expired', done: 1 } })
    const ann = clientOf('ann')
    const before = rowsOf(2).length
    const bills = (await invoices()).length
    const batch = await ann.ended((await made(ann, [chatLine('a', MODEL), chatLine('b', MODEL)])).id)
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 2, completed: 1, failed: 0 },
    })
    expect((await ann.lines(batch.error_file_id))[0]?.error).toMatchObject({ code: 'batch_expired' })
    expect(sumOf(rowsOf(2).slice(before))).toBe(quotaOfInvoice((await invoices())[bills] as BatchInvoice))
  })

  test('an expired batch of Gemini, of which nothing is left, costs nothing', async () => {
    await simulateBatches(simulator.geminiUrl, { reset: true, behaviour: { end: 'expired' } })
    const bob = clientOf('bob')
    const before = rowsOf(3).length
    const batch = await bob.ended((await made(bob, [chatLine('a', 'gemini')])).id)
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 1, completed: 0, failed: 0 },
    })
    expect((await bob.lines(batch.error_file_id))[0]?.error).toMatchObject({ code: 'batch_expired' })
    expect(rowsOf(3)).toHaveLength(before)
    expect(databaseOf(gateway.dataDir).openHolds()).toEqual([])
  })

  test('embeddings, responses and completions are lines as well', async () => {
    const ann = clientOf('ann')
    const line = (url: string, body: object): object => ({ custom_id: 'a', method: 'POST', url, body })
    for (const [endpoint, body, found] of [
      ['/v1/embeddings', { model: 'vectors', input: 'hi' }, { object: 'list' }],
      ['/v1/responses', { model: 'responses', input: 'hi', max_output_tokens: 20 }, { object: 'response' }],
      ['/v1/responses', { model: MODEL, input: 'hi', max_output_tokens: 20 }, { object: 'response' }],
      ['/v1/completions', { model: MODEL, prompt: 'hi', max_tokens: 20 }, { object: 'text_completion' }],
    ] as const) {
      const batch = await ann.ended((await made(ann, [line(endpoint, body)], { endpoint })).id)
      expect(batch.request_counts, endpoint).toEqual({ total: 1, completed: 1, failed: 0 })
      expect((await ann.lines(batch.output_file_id))[0]?.response?.body, endpoint).toMatchObject(found)
    }
  })

  test('lines count in no limit of their key', async () => {
    const dan = clientOf('dan')
    const lines = Array.from({ length: 5 }, (_, at) => chatLine(`l${at}`, MODEL))
    const batch = await dan.ended((await made(dan, lines)).id)
    expect(batch.request_counts).toEqual({ total: 5, completed: 5, failed: 0 })
    const ask = { model: 'called', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }
    expect((await dan.ask('/v1/chat/completions', 'POST', ask)).status).toBe(200)
  })

  test('a line that no channel can batch is refused, unless it may be local', async () => {
    const ann = clientOf('ann')
    const refused = await ann.submit([chatLine('a', 'called')], { metadata: {} })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('batch_unsupported')
    const batch = await ann.ended((await ann.make([chatLine('a', 'called'), chatLine('b', MODEL)])).id)
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
  })

  test('a channel with batches: only serves lines, and no calls', async () => {
    const ann = clientOf('ann')
    const called = await ann.ask('/v1/chat/completions', 'POST', {
      model: 'only',
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(called.text).toContain('model_not_found')
    const batch = await ann.ended((await made(ann, [chatLine('a', 'only')])).id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
  })

  test('guards change a line before it is sent, put values back into its answer, and block free of charge', async () => {
    const cyd = clientOf('cyd')
    const saying = (customId: string, content: string): object =>
      chatLine(customId, MODEL, { messages: [{ role: 'user', content }] })
    const lines = [saying('mail', 'Repeat exactly: simulate(echo) jo@example.com'), saying('no', 'a cherry')]
    const batch = await cyd.ended((await made(cyd, lines)).id)
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    const [blocked] = await cyd.lines(batch.error_file_id)
    expect(blocked).toMatchObject({ custom_id: 'no', response: { status_code: 400 } })
    expect(JSON.stringify(blocked)).toContain('guard_blocked')
  })
})
