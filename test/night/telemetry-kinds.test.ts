import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { type Collector, startCollector } from '../fixtures/collector.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, eventually, type Program, runProgram } from '../operations/program.ts'

interface Row {
  readonly request_id: string
  readonly quota: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly kind: string
}

let upstream: ScriptedUpstream
let collector: Collector
let program: Program
beforeAll(async () => {
  ;[upstream, collector] = await Promise.all([startUpstream(), startCollector()])
  upstream.decide('all', ({ path, text }) => {
    if (path.includes('moderations'))
      return {
        kind: 'whole',
        body: JSON.stringify({
          id: 'x',
          model: 'j',
          results: [{ flagged: text.includes('bad'), categories: {}, category_scores: {} }],
        }),
      }
    if (path.includes('images')) return { kind: 'whole', body: '{"created":1,"data":[{"b64_json":"eA=="}]}' }
    if (path.includes('speech'))
      return { kind: 'whole', body: Buffer.from('RIFF'), headers: { 'content-type': 'audio/wav' } }
    if (path.includes('transcriptions'))
      return { kind: 'whole', body: '{"text":"heard","usage":{"type":"duration","seconds":3}}' }
    return text.includes('"stream":true')
      ? { kind: 'stream', events: 5, paceMs: 20, usage: usageText(40, 6) }
      : { kind: 'whole', usage: usageText(40, 6) }
  })
  upstream.decide('down', () => ({ kind: 'status', status: 500 }))
  const moderation = { model: 'judge' }
  program = await runProgram({
    config: {
      options: { retries: 0, cache: { price: 0.5 } },
      guards: [
        { name: 'free', do: 'block', where: ['input'], match: { moderation }, models: ['guarded'] },
        {
          name: 'paid',
          do: 'block',
          where: ['input', 'output'],
          match: { moderation },
          models: ['guarded'],
          charge: true,
        },
      ],
      models: {
        ...priced(['m', 'guarded']),
        first: { price: { input: 2, output: 8 }, fallback: ['m'] },
        judge: { price: { request: 0.001 } },
        draw: { price: { image: 0.04 } },
        say: { price: { input: 2, output: 8 } },
        hear: { price: { second: 0.001 } },
      },
      channels: [
        channel('all', upstream.baseUrl('all'), { models: ['m', 'guarded', 'judge', 'draw', 'say', 'hear'] }),
        channel('down', upstream.baseUrl('down'), { models: ['first'] }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
    },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_METRIC_EXPORT_INTERVAL: '200' },
  })
  await program.ready()
})
afterAll(async () => {
  await discard(program)
  await Promise.all([collector?.stop(), upstream?.stop()])
})

test('each row of a guard, a fallback, a form or a shared call has one span with its tokens and charge', async () => {
  const say = (content: string) => [{ role: 'user', content }]
  const chat = (model: string, content = 'hi', more: object = {}) =>
    call(program.url, { model, messages: say(content), ...more }, { key: 'ann' })
  expect((await chat('guarded')).status).toBe(200)
  expect((await chat('guarded', 'bad')).status).toBe(400)
  expect((await chat('first')).headers['x-gateway-model']).toBe('m')
  expect(
    (await call(program.url, { model: 'draw', prompt: 'x' }, { key: 'ann', path: '/v1/images/generations' }))
      .status,
  ).toBe(200)
  expect(
    (
      await call(
        program.url,
        { model: 'say', input: 'x', voice: 'alloy' },
        { key: 'ann', path: '/v1/audio/speech' },
      )
    ).status,
  ).toBe(200)
  const form = formBytes([
    { name: 'model', content: 'hear' },
    { name: 'file', content: 'RIFF', filename: 'a.wav' },
  ])
  expect((await call(program.url, form, formCall('/v1/audio/transcriptions', 'ann', form))).status).toBe(200)
  const shared = { model: 'm', messages: say('shared'), stream: true }
  const headers = { 'cache-control': 'max-age=60' }
  const one = await open(program.url, shared, { key: 'ann', headers })
  await one.until('data:')
  const two = await open(program.url, shared, { key: 'ann', headers })
  await two.until('data:')
  two.abort()
  await one.end()
  await call(
    program.url,
    { model: 'm', messages: say('again') },
    { key: 'ann', headers: { 'idempotency-key': 'a' } },
  )
  await call(
    program.url,
    { model: 'm', messages: say('again') },
    { key: 'ann', headers: { 'idempotency-key': 'a' } },
  )
  await call(
    program.url,
    { model: 'm', messages: say('hi') },
    { key: 'ann', path: '/v1/messages/count_tokens' },
  )
  let rows: Row[] = []
  await eventually(async () => {
    const { data } = await manage<{ items: Row[] }>(program.url, ADMIN, 'GET /api/log/?page_size=100')
    const isSame = rows.length === data.items.length
    rows = data.items
    return isSame && rows.length >= 12
  }, 'the rows')
  program.kill('SIGTERM')
  await program.exit
  const spans = collector.spans().filter(({ attributes }) => 'gen_ai.operation.name' in attributes)
  const seen = spans.map(({ attributes: found }) => [
    found['sluice.request_id'],
    found['sluice.quota'],
    found['gen_ai.usage.input_tokens'] ?? 0,
    found['gen_ai.usage.output_tokens'] ?? 0,
  ])
  const inRows = rows.map((row) => [row.request_id, row.quota, row.prompt_tokens, row.completion_tokens])
  expect(seen).toHaveLength(inRows.length)
  expect(seen).toEqual(expect.arrayContaining(inRows))
  const costs = collector.points().filter(({ metric }) => metric === 'sluice.client.inference.cost')
  const quota = rows.reduce((sum, row) => sum + row.quota, 0)
  expect(costs.reduce((sum, { value }) => sum + value, 0)).toBeCloseTo(quota / 500_000, 9)
})
