import { expect, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { audit } from '../fixtures/auditor.ts'
import {
  BATCH_PRICE,
  type BatchStep,
  invoicesOf,
  momentOfStep,
  quotaOfInvoice,
  requestsSoFar,
  simulateBatches,
} from '../fixtures/batch-provider.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startGateway } from '../fixtures/gateway.ts'

const QUOTA = 10_000_000
/** Lines of the batch at each provider. */
const LINES = 200
/** The step during which, or soon after which, each kill happens. */
const KILLS: readonly BatchStep[] = ['upload', 'create', 'create', 'get', 'content', 'content']
/** Kills after which all batches may have ended. */
const MIN_KILLS = 5
const GRANTED = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }
const PROVIDERS = [
  ['chat', 'demo-chat'],
  ['messages', 'demo-claude'],
  ['gemini', 'demo-gemini'],
] as const

test('after kills at any moment, batches at providers of chat, messages and gemini are made once, and charged as the providers bill them', async () => {
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  const providers = PROVIDERS.map(([protocol, model]) => ({
    protocol,
    model,
    url: simulator[`${protocol}Url`],
  }))
  const gateway = await startGateway({
    config: {
      options: { batches: { poll: '50ms', poll_most: '200ms' } },
      models: Object.fromEntries(PROVIDERS.map(([, model]) => [model, { price: BATCH_PRICE }])),
      channels: providers.map(({ protocol, model, url }) =>
        channel(protocol, url, { protocol, batches: true, models: [model] }),
      ),
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
    },
  })
  try {
    const behaviour = { running_ms: 1_000, shuffled: true, duplicates: 2, unknown: 2 }
    const ann = new BatchClient(gateway.url, 'ann')
    const names = Array.from({ length: LINES }, (_, at) => `l${at}`)
    const made = await Promise.all(
      providers.map(async ({ model, url }) => {
        await simulateBatches(url, { behaviour })
        const lines = names.map((name) => chatLine(name, model))
        return { model, url, id: (await ann.make(lines, { metadata: {} })).id }
      }),
    )
    const urls = providers.map(({ url }) => url)
    const areOver = async (): Promise<boolean> => {
      const batches = await Promise.all(made.map(({ id }) => ann.batch(id)))
      return batches.every(({ status }) => status === 'completed')
    }
    let before: readonly number[] = []
    for (const [kill, step] of KILLS.entries()) {
      await momentOfStep(urls, step, before, areOver)
      if (kill >= MIN_KILLS && (await areOver())) break
      await gateway.kill()
      before = await requestsSoFar(urls)
      await gateway.restart()
    }
    const billed = new Map<string, number>()
    for (const { model, url, id } of made) {
      const ended = await ann.ended(id)
      expect(ended).toMatchObject({
        status: 'completed',
        request_counts: { total: LINES, completed: LINES, failed: 0 },
      })
      const results = await ann.lines(ended.output_file_id)
      expect(results.map(({ custom_id }) => custom_id)).toEqual(names)
      const invoices = await invoicesOf(url)
      expect(invoices.map(({ billed_lines: lines }) => lines)).toEqual([LINES])
      billed.set(
        model,
        invoices.reduce((sum, invoice) => sum + quotaOfInvoice(invoice), 0),
      )
    }
    await gateway.stop()
    const database = databaseOf(gateway.dataDir)
    const rows = database.usage()
    for (const [model, quota] of billed) {
      const charged = rows.filter((row) => row.model === model)
      expect(charged).toHaveLength(LINES)
      expect(charged.reduce((sum, row) => sum + row.quota, 0)).toBe(quota)
    }
    const total = [...billed.values()].reduce((sum, quota) => sum + quota, 0)
    expect(database.token('token-ann').remain_quota).toBe(QUOTA - total)
    expect(database.openHolds()).toEqual([])
    expect(audit(gateway.dataDir, [], GRANTED)).toEqual([])
  } finally {
    await gateway.discard()
    await simulator.close()
  }
})
