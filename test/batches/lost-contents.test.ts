import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { BATCH_PRICE, invoicesOf, simulateBatches } from '../fixtures/batch-provider.ts'
import { BatchClient, bodyOf, chatLine, linesIn } from '../fixtures/batches.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, sqliteFileIn } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Models of local lines: one for each test, because a script holds for later calls. */
const CALLED = ['deleted', 'damaged', 'message', 'file']
/** Lines whose bodies are in separate parts. */
const WORDS = { messages: [{ role: 'user', content: 'x'.repeat(40_000) }] }

let simulator: Simulator
let fixture: Fixture
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  fixture = await startFixture((upstream) => ({
    options: { local_batches: true, batches: { poll: '50ms', poll_most: '200ms', parallel: 2 } },
    rate_limits: { relay: { requests: 0 } },
    models: Object.fromEntries(['sent', ...CALLED].map((name) => [name, { price: BATCH_PRICE }])),
    channels: [
      channel('sent', simulator.chatUrl, {
        batches: true,
        models: ['sent'],
        model_mapping: { sent: 'demo-chat' },
      }),
      ...CALLED.map((name) => channel(name, upstream.baseUrl(name))),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await simulator?.close()
})

const ann = (): BatchClient => new BatchClient(fixture.gateway.url, 'ann')
const linesFor = (model: string): object[] =>
  ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => chatLine(id, model, WORDS))
const books = () => databaseOf(fixture.gateway.dataDir)
const charged = (id: string) =>
  books()
    .usage()
    .filter((row) => (row as unknown as { batch: string }).batch === id && row.quota > 0)

/** Paths of the objects of a kind, of all batches. */
function objectsOf(kind: string): string[] {
  const folder = join(fixture.gateway.dataDir, 'files')
  const database = new DatabaseSync(sqliteFileIn(fixture.gateway.dataDir), { timeout: 5_000 })
  try {
    const rows = database.prepare('select content_id as id from kept where kind = ?').all(kind)
    const ids = (rows as { id: string }[]).map(({ id }) => id)
    return readdirSync(folder)
      .filter((name) => ids.some((id) => name.startsWith(id)))
      .map((name) => join(folder, name))
  } finally {
    database.close()
  }
}

function remove(paths: readonly string[]): void {
  expect(paths.length).toBeGreaterThan(0)
  for (const path of paths) rmSync(path)
}

/** Changes a bit in each part. */
function damage(paths: readonly string[]): void {
  expect(paths.length).toBeGreaterThan(0)
  for (const path of paths)
    writeFileSync(
      path,
      readFileSync(path).map((byte) => byte ^ 1),
    )
}

/** Error codes of the lines of a batch, by custom id. */
async function codesOf(client: BatchClient, file: string | null): Promise<Record<string, unknown>> {
  const lines = await client.lines(file)
  return Object.fromEntries(lines.map(({ custom_id: id, error }) => [id, error?.code]))
}

describe('docs/batches.md: Lost contents', () => {
  test.each([
    ['deleted', remove],
    ['damaged', damage],
  ])(
    'when the bodies of lines are %s, the lines that are left end as errors, and their hold is released',
    async (how, harm) => {
      const gate = Promise.withResolvers<void>()
      fixture.upstream.script(how, { kind: 'whole', after: gate.promise })
      const client = ann()
      const { id } = await client.make(linesFor(how))
      // A user who is alone has half of `parallel`.
      await fixture.upstream.receivedAtLeast(how, 1)
      harm(objectsOf('batch_input'))
      gate.resolve()
      const ended = await client.ended(id)
      expect(ended).toMatchObject({
        status: 'completed',
        request_counts: { total: 6, completed: 1, failed: 5 },
      })
      expect((await client.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(['a'])
      expect(await codesOf(client, ended.error_file_id)).toEqual(
        Object.fromEntries(['b', 'c', 'd', 'e', 'f'].map((name) => [name, 'content_lost'])),
      )
      expect(charged(id)).toHaveLength(1)
      expect(books().openHolds()).toEqual([])
      await expect.poll(() => fixture.gateway.logs()).toContain('missing or damaged (options.files.store)')
    },
  )

  test('when the bodies of lines are deleted while a provider has them, the lines end as errors, and cost nothing', async () => {
    // The provider does not report the end of the batch before the bodies are deleted.
    const silent = { step: 'get', status: 503, times: Number.MAX_SAFE_INTEGER }
    await simulateBatches(simulator.chatUrl, {
      reset: true,
      behaviour: { running_ms: 2_000 },
      faults: [silent],
    })
    const client = ann()
    const before = (await invoicesOf(simulator.chatUrl)).length
    const { id } = await client.make(linesFor('sent'))
    await expect.poll(async () => (await invoicesOf(simulator.chatUrl)).length).toBe(before + 1)
    remove(objectsOf('batch_input'))
    // What was read is in memory.
    await fixture.gateway.kill()
    await simulateBatches(simulator.chatUrl, { reset: true })
    await fixture.gateway.restart()
    const again = ann()
    const ended = await again.ended(id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 6, completed: 0, failed: 6 },
    })
    expect(Object.values(await codesOf(again, ended.error_file_id))).toEqual(
      Array.from({ length: 6 }, () => 'content_lost'),
    )
    expect(charged(id)).toEqual([])
    expect(books().openHolds()).toEqual([])
  })

  test('when what was to be sent to a provider is deleted, the lines end as errors', async () => {
    // It is not sent before it is deleted.
    await simulateBatches(simulator.chatUrl, {
      reset: true,
      faults: [{ step: 'upload', status: 503, times: Number.MAX_SAFE_INTEGER }],
    })
    const client = ann()
    const before = (await invoicesOf(simulator.chatUrl)).length
    const { id } = await client.make(linesFor('sent'))
    await expect.poll(() => objectsOf('batch_part_lines')).not.toEqual([])
    remove(objectsOf('batch_part_lines'))
    const ended = await client.ended(id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 6, completed: 0, failed: 6 },
    })
    expect(Object.values(await codesOf(client, ended.error_file_id))).toEqual(
      Array.from({ length: 6 }, () => 'content_lost'),
    )
    expect((await invoicesOf(simulator.chatUrl)).length).toBe(before)
    expect(books().openHolds()).toEqual([])
  })

  test('requests of a message batch whose bodies are lost are errored', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('message', { kind: 'whole', after: gate.promise })
    const client = ann()
    const params = { model: 'message', max_tokens: 20, ...WORDS }
    const requests = ['a', 'b'].map((name) => ({ custom_id: name, params }))
    const { id } = bodyOf(await client.ask('/v1/messages/batches', 'POST', { requests }))
    await fixture.upstream.receivedAtLeast('message', 1)
    remove(objectsOf('batch_input'))
    gate.resolve()
    expect((await client.ended(id)).request_counts).toMatchObject({ succeeded: 1, errored: 1 })
    const [, lost] = linesIn((await client.ask(`/v1/messages/batches/${id}/results`)).text)
    expect(lost).toMatchObject({
      custom_id: 'b',
      result: { type: 'errored', error: { type: 'error', error: { type: 'api_error' } } },
    })
  })

  test('a submission of a file whose content is lost is a 404, and makes nothing', async () => {
    const client = ann()
    const file = await client.upload(linesFor('file'))
    remove(objectsOf('file'))
    const request = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }
    expect((await client.ask('/v1/batches', 'POST', request)).status).toBe(404)
    expect(objectsOf('batch_input')).toEqual([])
    expect(books().openHolds()).toEqual([])
  })
})
