import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { manage } from '../fixtures/account.ts'
import {
  BATCH_PRICE,
  type BatchInvoice,
  invoicesOf,
  quotaOfInvoice,
  simulateBatches,
} from '../fixtures/batch-provider.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { channel, type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { dateClock } from '../fixtures/moved-clock.ts'

const ANN = 'the-access-token-of-ann'
const ADMIN = { id: 9, accessToken: 'the-access-token-of-the-admin' }

let simulator: Simulator
let gateway: RunningGateway
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
})
afterAll(() => simulator?.close())
afterEach(() => gateway?.discard())

function configuration(name: string, url: string, price: object, fields: object = {}): Configuration {
  return {
    options: { batches: { poll: '50ms', poll_most: '200ms' } },
    models: { m: { price } },
    channels: [
      channel(name, url, { batches: true, models: ['m'], model_mapping: { m: 'demo-chat' }, ...fields }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN }),
      user(ADMIN.id, 'boss', [token('boss')], { role: 10, access_token: ADMIN.accessToken }),
    ],
  }
}

const simulate = (behaviour: object) => simulateBatches(simulator.chatUrl, { reset: true, behaviour })
const invoices = () => invoicesOf(simulator.chatUrl)
const lines = ['a', 'b', 'c'].map((name) => chatLine(name, 'm'))
const charged = (): number =>
  databaseOf(gateway.dataDir)
    .usage()
    .reduce((sum, { quota }) => sum + quota, 0)

/** Makes a batch, and waits until the provider has it. */
async function madeThere(fields: object = {}): Promise<{
  readonly ann: BatchClient
  readonly id: string
  readonly bill: () => Promise<number>
}> {
  const before = (await invoices()).length
  const ann = new BatchClient(gateway.url, 'ann')
  const { id } = await ann.make(lines, { metadata: {}, ...fields })
  await expect.poll(async () => (await invoices()).length).toBe(before + 1)
  return { ann, id, bill: async () => quotaOfInvoice((await invoices())[before] as BatchInvoice) }
}

describe('docs/batches.md: Batches of providers', () => {
  test('a batch goes on when its channel, its key and its group are changed, at the prices of its submission', async () => {
    await simulate({ running_ms: 1_500 })
    gateway = await startGateway({ config: configuration('first', simulator.chatUrl, BATCH_PRICE) })
    const { ann, id, bill } = await madeThere()
    await gateway.apply(
      configuration('second', simulator.messagesUrl, { input: '400', output: '400' }, { keys: ['other'] }),
    )
    expect(await ann.ended(id)).toMatchObject({ request_counts: { total: 3, completed: 3 } })
    expect(charged()).toBe(await bill())
    expect(databaseOf(gateway.dataDir).openHolds()).toEqual([])
  })

  test('the same after a restart with the changed configuration', async () => {
    await simulate({ running_ms: 1_500 })
    gateway = await startGateway({ config: configuration('first', simulator.chatUrl, BATCH_PRICE) })
    const { id, bill } = await madeThere()
    await gateway.kill()
    await gateway.restart(
      configuration('second', simulator.messagesUrl, { input: '400', output: '400' }, { keys: ['other'] }),
    )
    const ended = await new BatchClient(gateway.url, 'ann').ended(id)
    expect(ended).toMatchObject({ request_counts: { total: 3, completed: 3 } })
    expect(charged()).toBe(await bill())
  })

  test.each([
    ['its key is disabled', 'PUT /api/user/2/tokens', { status: 2 }],
    ['its key is deleted', 'DELETE /api/token/:key', undefined],
    ['its user is disabled', 'POST /api/user/manage', { id: 2, action: 'disable' }],
    ['its user is deleted', 'DELETE /api/user/2', undefined],
  ] as const)(
    'when %s, a batch is cancelled at the provider, and what it has finished is charged, also after a restart',
    async (_, request, fields) => {
      await simulate({ running_ms: 600_000, cancelling_ms: 1_000, done: 2 })
      gateway = await startGateway({ config: configuration('first', simulator.chatUrl, BATCH_PRICE) })
      const { bill } = await madeThere()
      const { id: keyId } = databaseOf(gateway.dataDir).token('token-ann')
      const who = request.includes(':key') ? { id: 2, accessToken: ANN } : ADMIN
      const answer = await manage(
        gateway.url,
        who,
        request.replace(':key', String(keyId)) as typeof request,
        fields && { id: keyId, ...fields },
      )
      expect(answer).toMatchObject({ success: true })
      const statuses = async (): Promise<string | undefined> => (await invoices()).at(-1)?.status
      await expect.poll(statuses).toMatch(/^cancel/)
      await gateway.kill()
      await gateway.restart()
      const books = databaseOf(gateway.dataDir)
      await expect.poll(() => books.openHolds()).toEqual([])
      await expect.poll(charged).toBe(await bill())
      expect(charged()).toBeGreaterThan(0)
      expect(await statuses()).toBe('cancelled')
      if (request === 'DELETE /api/user/2') await expect.poll(() => books.keptKinds()).toEqual([])
    },
  )

  test('when its user is deleted, everything that its end needs stays until it has ended at the provider', async () => {
    // Cancelling does not succeed, because that would store some of it again.
    await simulateBatches(simulator.chatUrl, {
      reset: true,
      behaviour: { running_ms: 600_000 },
      faults: [{ step: 'cancel', status: 503, times: 1_000_000 }],
    })
    const guards = [
      { name: 'mask', do: 'replace', match: { pii: ['email'] } },
      { name: 'stop', do: 'block', match: { words: ['cherry'] } },
    ]
    gateway = await startGateway({
      config: { ...configuration('first', simulator.chatUrl, BATCH_PRICE), guards },
    })
    const saying = (customId: string, content: string) =>
      chatLine(customId, 'm', { messages: [{ role: 'user', content }] })
    const ann = new BatchClient(gateway.url, 'ann')
    await ann.make([...lines, saying('masked', 'jo@example.com'), saying('refused', 'cherry')], {})
    const books = databaseOf(gateway.dataDir)
    const kinds = (): readonly string[] => [...new Set(books.keptKinds())].toSorted()
    const needed = [
      'batch',
      'batch_heads',
      'batch_input',
      'batch_line',
      'batch_line_state',
      'batch_open',
      'batch_part',
      'batch_part_lines',
    ]
    await expect.poll(kinds).toEqual([...needed, 'file'])
    expect(await manage(gateway.url, ADMIN, 'DELETE /api/user/2')).toMatchObject({ success: true })
    await expect.poll(kinds).toEqual(needed)
  })

  test('after 24 hours a batch is cancelled at the provider and expires; what it has finished is charged', async () => {
    const clock = dateClock()
    await simulate({ running_ms: 60_000, cancelling_ms: 200, done: 1 })
    gateway = await startGateway({
      config: configuration('first', simulator.chatUrl, BATCH_PRICE),
      env: clock.env,
    })
    const { ann, id, bill } = await madeThere()
    clock.move(24 * 3_600 + 1)
    const ended = await ann.ended(id)
    expect(ended).toMatchObject({ status: 'expired', request_counts: { total: 3, completed: 1, failed: 0 } })
    const errors = await ann.lines(ended.error_file_id)
    expect(errors.map(({ error }) => error?.code)).toEqual(['batch_expired', 'batch_expired'])
    expect(charged()).toBe(await bill())
  })

  test('a batch whose gateway was away for three days is cancelled at the provider, and what it has finished is charged, however early its results expire', async () => {
    const clock = dateClock()
    await simulate({ running_ms: 600_000, cancelling_ms: 200, done: 2 })
    gateway = await startGateway({
      config: configuration('first', simulator.chatUrl, BATCH_PRICE),
      env: clock.env,
    })
    const { id, bill } = await madeThere({
      output_expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    await gateway.kill()
    clock.move(72 * 3_600)
    await gateway.restart()
    const ended = await new BatchClient(gateway.url, 'ann').ended(id)
    expect(ended).toMatchObject({ status: 'expired', request_counts: { total: 3, completed: 2, failed: 0 } })
    expect((await invoices()).at(-1)?.status).toBe('cancelled')
    expect(charged()).toBe(await bill())
  })

  test('a batch that was cancelled while its gateway was down is cancelled at the provider after the start', async () => {
    await simulate({ running_ms: 60_000, cancelling_ms: 200, done: 1 })
    gateway = await startGateway({ config: configuration('first', simulator.chatUrl, BATCH_PRICE) })
    const { ann, id, bill } = await madeThere()
    expect((await ann.ask(`/v1/batches/${id}/cancel`, 'POST')).status).toBe(200)
    await gateway.kill()
    await gateway.restart()
    const ended = await new BatchClient(gateway.url, 'ann').ended(id)
    expect(ended).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 3, completed: 1, failed: 0 },
    })
    expect(charged()).toBe(await bill())
  })
})
