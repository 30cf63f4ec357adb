import { randomUUID } from 'node:crypto'
import { manage } from '../fixtures/account.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { BatchClient, bodyOf, chatLine } from '../fixtures/batches.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Charge of the default answer of an upstream: 10 tokens at 1 and 5 at 4 quota units. */
const CHARGE = 30
const MODELS = ['m', 'other', 'refused', 'limited', 'held', 'gated', 'kept']

const FAY = { id: 8, accessToken: 'the-access-token-of-fay' }
const GUS = { id: 9, accessToken: 'the-access-token-of-gus' }

let told: AlertReceiver
let fixture: Fixture
beforeAll(async () => {
  told = await startAlertReceiver()
  fixture = await startFixture((upstream) => ({
    options: { body_limit: '4KiB', batches: { most: 3, parallel: 8 } },
    rate_limits: { relay: { requests: 0 }, key: { requests: 0 } },
    models: priced(MODELS),
    channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
    alerts: [told.declared('budget.80', 'budget.100')],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('onlym', { model_limits_enabled: true, model_limits: 'm' })]),
      user(3, 'bob', [token('bob')]),
      user(4, 'cyd', [token('cyd', { remain_quota: 5_000 })]),
      user(5, 'boss', [token('boss')], { role: 10 }),
      user(6, 'dan', [token('dan')]),
      user(7, 'eve', [token('eve')]),
      user(8, 'fay', [token('fay'), token('fay2'), token('spent', { remain_quota: 0 })], {
        access_token: FAY.accessToken,
      }),
      user(9, 'gus', [token('gus')], { access_token: GUS.accessToken, budget: 300, budget_period: 'month' }),
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await told?.stop()
})

const clientOf = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
const books = () => databaseOf(fixture.gateway.dataDir)
const usageOf = (userId: number) =>
  books()
    .usage()
    .filter((row) => row.user_id === userId)

describe('docs/batches.md: Batches', () => {
  test('each line is a separate call, and the results are in the order of the file', async () => {
    const ann = clientOf('ann')
    const first = Promise.withResolvers<void>()
    fixture.upstream.script('held', { kind: 'whole', content: 'late', after: first.promise })
    const made = await ann.make([chatLine('slow', 'held'), '', chatLine('b'), chatLine('c', 'other')])
    expect(made).toEqual({
      id: expect.stringMatching(/^batch_[0-9a-f]{32}$/),
      object: 'batch',
      endpoint: '/v1/chat/completions',
      errors: null,
      input_file_id: expect.stringMatching(/^file-/),
      completion_window: '24h',
      status: 'in_progress',
      output_file_id: null,
      error_file_id: null,
      created_at: made['created_at'],
      in_progress_at: made['created_at'],
      expires_at: Number(made['created_at']) + 86_400,
      finalizing_at: null,
      completed_at: null,
      failed_at: null,
      expired_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 3, completed: 0, failed: 0 },
      metadata: { allow_local: 'true' },
    })
    await expect.poll(async () => (await ann.batch(made.id)).request_counts).toMatchObject({ completed: 2 })
    first.resolve()
    const ended = await ann.ended(made.id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 3, completed: 3, failed: 0 },
      error_file_id: null,
      usage: { input_tokens: 30, output_tokens: 15, total_tokens: 45 },
    })
    const lines = await ann.lines(ended.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(['slow', 'b', 'c'])
    for (const { id, response, error } of lines) {
      expect(id).toMatch(/^batch_req_/)
      expect([response?.status_code, error]).toEqual([200, null])
      expect(response?.body['object']).toBe('chat.completion')
    }
    const rows = usageOf(2)
    expect(rows.map(({ quota }) => quota)).toEqual([CHARGE, CHARGE, CHARGE])
    expect(new Set(rows.map(({ id }) => id))).toEqual(
      new Set(lines.map(({ response }) => response?.request_id)),
    )
    expect(books().openHolds()).toEqual([])
    expect(await ann.ask(`/v1/files/${ended.output_file_id}`).then(bodyOf)).toMatchObject({
      purpose: 'batch_output',
      filename: `${made.id}_output.jsonl`,
    })
  })

  test('what only the work on a batch needs is removed at its end', async () => {
    await expect
      .poll(() =>
        books()
          .keptKinds()
          .filter((kind) => /^batch_(?:open|line|input)$/.test(kind)),
      )
      .toEqual([])
  })

  test.each<[string, (object | string)[], string, string]>([
    ['no JSON', [chatLine('a'), '{'], 'invalid_json', 'line 2: '],
    ['a double member', ['{"custom_id":"a","custom_id":"b"}'], 'invalid_json', 'line 1: '],
    [
      'no custom_id',
      ['', { ...chatLine('a'), custom_id: undefined }],
      'invalid_request',
      'line 2: custom_id: ',
    ],
    [
      'the custom_id of another line',
      [chatLine('a'), chatLine('a')],
      'invalid_request',
      'line 2: custom_id: ',
    ],
    ['a known name in another case', [{ ...chatLine('a'), Custom_ID: 'b' }], 'invalid_request', 'line 1: '],
    ['another method', [{ ...chatLine('a'), method: 'GET' }], 'invalid_request', 'line 1: method: '],
    ['another url', [{ ...chatLine('a'), url: '/v1/responses' }], 'invalid_request', 'line 1: url: '],
    ['no body', [{ ...chatLine('a'), body: [] }], 'invalid_request', 'line 1: body: '],
    ['a stream', [chatLine('a', 'm', { stream: true })], 'invalid_request', 'line 1: body.stream: '],
    [
      'background',
      [chatLine('a', 'm', { background: true })],
      'invalid_request',
      'line 1: body.background: ',
    ],
    ['no output', [chatLine('a', 'm', { max_tokens: 0 })], 'invalid_request', 'line 1: body.max_tokens: '],
    ['no messages', [chatLine('a', 'm', { messages: 7 })], 'invalid_request', 'line 1: '],
    ['an unknown model', [chatLine('a', 'nowhere')], 'model_not_found', 'line 1: '],
    ['a large request', [chatLine('a', 'm', { user: 'x'.repeat(5_000) })], 'request_too_large', 'line 1: '],
  ])(
    'a file with a line of %s is refused with its number, and makes nothing',
    async (_, lines, code, text) => {
      const bob = clientOf('bob')
      const answer = await bob.submit(lines)
      expect(answer.status, answer.text).toBe(400)
      const { error } = answer.json() as unknown as { error: Record<string, unknown> }
      const line = Number(/^line (\d+)/.exec(text)?.[1])
      expect(error).toMatchObject({ code: 'invalid_batch', line })
      expect(error['message']).toContain(text)
      expect(error['errors']).toMatchObject({ object: 'list', data: [{ code, line }] })
      expect(bodyOf(await bob.ask('/v1/batches')).data).toEqual([])
      expect(books().openHolds()).toEqual([])
      expect(books().keptKinds()).not.toContain('batch_input')
    },
  )

  test('a refusal lists the first 100 wrong lines in order', async () => {
    const answer = await clientOf('bob').submit(Array.from({ length: 150 }, () => '[]'))
    const { errors } = (answer.json() as unknown as { error: { errors: { data: { line: number }[] } } }).error
    expect(errors.data.map(({ line }) => line)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1))
  })

  test.each([
    ['a member twice', '"completion_window":"24h","completion_window":"24h"', 'invalid_json'],
    ['a known name in another case', '"completion_window":"24h","Metadata":{}', 'invalid_request'],
    ['a name of metadata twice', '"completion_window":"24h","metadata":{"a":"1","a":"2"}', 'invalid_json'],
    ['bytes that are not UTF-8', '"completion_window":"24h","metadata":{"a":"\u00ff"}', 'invalid_json'],
  ])('a submission with %s is refused', async (_, members, code) => {
    const bob = clientOf('bob')
    const file = await bob.upload([chatLine('a')])
    const text = `{"input_file_id":"${file}","endpoint":"/v1/chat/completions",${members}}`
    const answer = await bob.ask('/v1/batches', 'POST', Buffer.from(text, 'latin1'))
    expect([answer.status, answer.json().error.code]).toEqual([400, code])
  })

  test('characters of custom_id and metadata are counted as code points', async () => {
    const boss = clientOf('boss')
    const most = '🍒'.repeat(512)
    const metadata = { allow_local: 'true', ['🍒'.repeat(64)]: most }
    const { id } = await boss.make([chatLine(most)], { metadata })
    const { output_file_id: results } = await boss.ended(id)
    expect((await boss.lines(results)).map(({ custom_id }) => custom_id)).toEqual([most])
    expect((await boss.submit([chatLine(`${most}x`)])).status).toBe(400)
    expect((await boss.submit([chatLine('a')], { metadata: { a: `${most}x` } })).status).toBe(400)
  })

  test('the permission for the model is that of the key', async () => {
    const answer = await clientOf('onlym').submit([chatLine('a'), chatLine('b', 'other')])
    expect(answer.text).toContain('"code":"model_not_allowed"')
    expect(answer.json().error).toMatchObject({ line: 2 })
  })

  test('lines that no channel can batch are refused unless the client or the operator allows local lines', async () => {
    for (const metadata of [undefined, null, { allow_local: 'True' }, { allow_local: '1' }]) {
      const answer = await clientOf('bob').submit([chatLine('a')], { metadata })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain('"code":"batch_unsupported"')
      expect(answer.text).toContain('allow_local')
    }
  })

  test.each<[string, Record<string, unknown>]>([
    ['another endpoint', { endpoint: '/v1/images/generations' }],
    ['another window', { completion_window: '1h' }],
    [
      '17 entries of metadata',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, ''])) },
    ],
    ['a number in its metadata', { metadata: { a: 1 } }],
    ['a long text in its metadata', { metadata: { a: 'x'.repeat(513) } }],
    ['results that expire within the hour', { output_expires_after: { anchor: 'created_at', seconds: 60 } }],
  ])('a batch with %s is refused with 400', async (_, fields) => {
    const answer = await clientOf('bob').submit([chatLine('a')], fields)
    expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
  })

  test('ids of another user, of the other API and unknown ones are a 404 on every path, for administrators too', async () => {
    const ann = clientOf('ann')
    const file = await ann.upload([chatLine('a')])
    const { id } = await ann.make([chatLine('a')])
    await ann.ended(id)
    for (const [key, ids] of [
      ['bob', [id, 'batch_0', 'msgbatch_0']],
      ['boss', [id]],
      ['ann', ['batch_0', 'msgbatch_0']],
    ] as const)
      for (const one of ids)
        for (const [path, method] of [
          [`/v1/batches/${one}`, 'GET'],
          [`/v1/batches/${one}/cancel`, 'POST'],
          [`/v1/messages/batches/${one}`, 'GET'],
          [`/v1/messages/batches/${one}/results`, 'GET'],
          [`/v1/messages/batches/${one}/cancel`, 'POST'],
          [`/v1/messages/batches/${one}`, 'DELETE'],
        ] as const)
          expect([key, path, (await clientOf(key).ask(path, method)).status]).toEqual([key, path, 404])
    expect((await ann.ask(`/v1/messages/batches/${id}`)).status).toBe(404)
    for (const key of ['bob', 'boss']) {
      const fields = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }
      expect((await clientOf(key).ask('/v1/batches', 'POST', fields)).status).toBe(404)
    }
  })

  test('one hold has the sum of the lines, and what it holds counts as spent', async () => {
    const cyd = clientOf('cyd')
    const held = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: held.promise })
    const lines = (count: number): object[] =>
      Array.from({ length: count }, (_, at) => chatLine(`c${at}`, 'gated'))
    const refused = await cyd.submit(lines(20))
    expect([refused.status, refused.json().error.code]).toEqual([403, 'insufficient_quota'])
    const { error } = refused.json() as unknown as { error: { needed: number; left: number } }
    expect(error.left).toBe(5_000)
    expect(books().openHolds()).toEqual([])
    const each = error.needed / 20
    const count = Math.floor(5_000 / each)
    const { id } = await cyd.make(lines(count))
    const [hold] = books().openHolds()
    expect(hold).toMatchObject({ id, amount: count * each })
    const answer = await fixture.chat('cyd', ask('m', { max_tokens: 1_000 }))
    expect([answer.status, answer.json().error.code]).toEqual([403, 'insufficient_quota'])
    held.resolve()
    await cyd.ended(id)
    expect(books().token('token-cyd').remain_quota).toBe(5_000 - count * CHARGE)
    expect(books().openHolds()).toEqual([])
    expect((await fixture.chat('cyd', ask('m', { max_tokens: 10 }))).status).toBe(200)
  })

  test('a batch that is refused for its budget is told to alert receivers, and recorded like a refused call', async () => {
    const refused = await clientOf('gus').submit([chatLine('a')])
    expect(refused.status).toBe(403)
    expect(refused.json().error).toMatchObject({ code: 'budget_exceeded', left: 300 })
    await told.atLeast(2)
    expect(told.received.map(({ type }) => type).toSorted()).toEqual(['budget.100', 'budget.80'])
    for (const { data } of told.received) expect(data).toMatchObject({ subject: 'user', name: 'gus' })
    const path = `GET /api/log/self/refused?request_id=${String(refused.headers['x-request-id'])}` as const
    const item = async () => (await manage<{ items: object[] }>(fixture.gateway.url, GUS, path)).data.items[0]
    await expect.poll(item).toMatchObject({ code: 'budget_exceeded', group: 'default' })
  })

  test('the message of a refused batch is recorded without the words of its wrong line', async () => {
    const said = 'words for the client of the batch alone'
    const refused = await clientOf('gus').submit([chatLine('a'), chatLine('b', said)])
    expect(refused.text).toContain(said)
    const path = `GET /api/log/self/refused?request_id=${String(refused.headers['x-request-id'])}` as const
    const item = async () =>
      (await manage<{ items: { message: string }[] }>(fixture.gateway.url, GUS, path)).data.items[0]
    await expect
      .poll(item)
      .toMatchObject({ code: 'invalid_batch', message: expect.stringMatching(/^line 2: .*…/) })
    expect((await item())?.message).not.toContain(said)
  })

  test('a line that a provider refuses is an error line with its words, and costs nothing', async () => {
    const dan = clientOf('dan')
    const body = JSON.stringify({
      error: { message: 'bad picture', type: 'invalid_request_error', code: 'x' },
    })
    fixture.upstream.script('refused', { kind: 'status', status: 400, body })
    const { id } = await dan.make([chatLine('bad', 'refused'), chatLine('good')])
    const ended = await dan.ended(id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 2, completed: 1, failed: 1 },
    })
    const [line] = await dan.lines(ended.error_file_id)
    expect(line).toMatchObject({ custom_id: 'bad', error: null, response: { status_code: 400 } })
    expect(JSON.stringify(line)).toContain('bad picture')
    expect(
      usageOf(6)
        .map(({ quota }) => quota)
        .toSorted((a, b) => a - b),
    ).toEqual([0, CHARGE])
  })

  test('a line waits and is tried again after a 429, and is charged once', async () => {
    const eve = clientOf('eve')
    const limited = { kind: 'status', status: 429, body: '{"error":{"message":"slow"}}' } as const
    fixture.upstream.script('limited', limited, limited, { kind: 'whole' })
    const { id } = await eve.make([chatLine('a', 'limited')])
    const ended = await eve.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 1 } })
    expect(usageOf(7).map(({ quota }) => quota)).toEqual([CHARGE])
  })

  test('of a cancelled batch nothing more is sent, and what was sent is charged and can be downloaded', async () => {
    const fay = clientOf('fay')
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const { id } = await fay.make(Array.from({ length: 9 }, (_, at) => chatLine(`f${at}`, 'gated')))
    await fixture.upstream.receivedAtLeast('gated', 4)
    const cancelling = bodyOf(await fay.ask(`/v1/batches/${id}/cancel`, 'POST'))
    expect(cancelling).toMatchObject({ status: 'cancelling', cancelling_at: expect.any(Number) })
    gate.resolve()
    const ended = await fay.ended(id)
    expect(ended).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 9, completed: 4, failed: 0 },
    })
    expect(await fay.lines(ended.output_file_id)).toHaveLength(4)
    const errors = await fay.lines(ended.error_file_id)
    expect(errors.map(({ custom_id }) => custom_id)).toEqual(['f4', 'f5', 'f6', 'f7', 'f8'])
    for (const { response, error } of errors)
      expect([response, error?.code]).toEqual([null, 'batch_cancelled'])
    expect(usageOf(8)).toHaveLength(4)
    expect(fixture.upstream.received('gated')).toHaveLength(4)
    expect((await fay.ask(`/v1/batches/${id}/cancel`, 'POST')).status).toBe(400)
    expect(books().openHolds()).toEqual([])
  })

  test('a key whose quota is exhausted cannot cancel a batch, with an idempotency key or without', async () => {
    const { id } = await clientOf('fay').make([chatLine('a')])
    await clientOf('fay').ended(id)
    for (const headers of [{}, { 'idempotency-key': randomUUID() }]) {
      const path = `/v1/batches/${id}/cancel`
      const answer = await call(fixture.gateway.url, undefined, {
        method: 'POST',
        path,
        key: 'spent',
        headers,
      })
      expect([answer.status, answer.json().error.code]).toEqual([401, 'token_exhausted'])
    }
  })

  test('a user has at most options.batches.most batches that have not ended', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const eve = clientOf('eve')
    const ids = [0, 1, 2].map((at) => eve.make([chatLine(`g${at}`, 'gated')]))
    const made = await Promise.all(ids)
    const answer = await eve.submit([chatLine('x', 'gated')])
    expect([answer.status, answer.json().error.code]).toEqual([429, 'too_many_batches'])
    gate.resolve()
    for (const { id } of made) await eve.ended(id)
  })

  test('a batch is cancelled when its key is disabled, and keys of the same user find its results', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const { id } = await clientOf('fay2').make(
      Array.from({ length: 5 }, (_, at) => chatLine(`k${at}`, 'gated')),
    )
    await fixture.upstream.receivedAtLeast('gated', 4)
    const tokenId = books().token('token-fay2').id
    const changed = await manage(fixture.gateway.url, FAY, 'PUT /api/token/?status_only=1', {
      id: tokenId,
      status: 2,
    })
    expect(changed.success, changed.message).toBe(true)
    await expect.poll(async () => (await clientOf('fay').batch(id)).status).toBe('cancelling')
    gate.resolve()
    const ended = await clientOf('fay').ended(id)
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 5, completed: 4 } })
  })

  test('a submission that repeats an idempotency key gets the first batch', async () => {
    const ann = clientOf('ann')
    const fields = {
      input_file_id: await ann.upload([chatLine('a')]),
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { allow_local: 'true' },
    }
    const options = { path: '/v1/batches', key: 'ann', headers: { 'idempotency-key': randomUUID() } }
    const [first, again] = [
      await call(fixture.gateway.url, fields, options),
      await call(fixture.gateway.url, fields, options),
    ]
    expect(first.status).toBe(200)
    expect(again.text).toBe(first.text)
    await ann.ended(bodyOf(first).id)
  })

  test('batches are listed in pages, the newest first', async () => {
    const bob = clientOf('bob')
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) {
      const { id } = await bob.make([chatLine(name)])
      ids.unshift(id)
      await bob.ended(id)
    }
    const list = async (query: string): Promise<[string[], unknown]> => {
      const { data, has_more } = bodyOf(await bob.ask(`/v1/batches?${query}`))
      return [data.map(({ id }) => id), has_more]
    }
    expect(await list('')).toEqual([ids, false])
    expect(await list('limit=2')).toEqual([ids.slice(0, 2), true])
    expect(await list(`limit=2&after=${ids[1]}`)).toEqual([[ids[2]], false])
    expect((await bob.ask('/v1/batches?limit=101')).status).toBe(400)
  })

  test('an input file may be deleted while its batch runs', async () => {
    const ann = clientOf('ann')
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const made = await ann.make(Array.from({ length: 6 }, (_, at) => chatLine(`d${at}`, 'gated')))
    await ann.ask(`/v1/files/${made.input_file_id}`, 'DELETE')
    gate.resolve()
    expect(await ann.ended(made.id)).toMatchObject({ request_counts: { completed: 6 } })
  })
})
