import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { audit } from '../fixtures/auditor.ts'
import { BATCH_PRICE, invoicesOf, quotaOfInvoice, simulateBatches } from '../fixtures/batch-provider.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startGateway } from '../fixtures/gateway.ts'

const QUOTA = 10_000_000
/** Lines of the batch at each provider. */
const LINES = 200
/** Requests that providers get, in the order of a batch. */
const STEPS = ['upload', 'create', 'get', 'content'] as const
/** The step during which, or soon after which, each kill happens. */
const KILLS: readonly (typeof STEPS)[number][] = ['upload', 'create', 'create', 'get', 'content', 'content']
/** Kills after which all batches may have ended. */
const MIN_KILLS = 5
/** Longest time in milliseconds between a request and the kill. */
const SOON_MS = 100
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
    const asked = async (): Promise<readonly number[]> => {
      const counts = await Promise.all(providers.map(({ url }) => simulateBatches(url, {})))
      return STEPS.map((step) => counts.reduce((sum, count) => sum + (count[step] ?? 0), 0))
    }
    const areOver = async (): Promise<boolean> => {
      const batches = await Promise.all(made.map(({ id }) => ann.batch(id)))
      return batches.every(({ status }) => status === 'completed')
    }
    let before = STEPS.map(() => 0)
    for (const [kill, step] of KILLS.entries()) {
      const isDue = async (): Promise<boolean> => {
        const now = await asked()
        return now.some((count, at) => at >= STEPS.indexOf(step) && count > (before[at] ?? 0))
      }
      while (!(await isDue()) && !(await areOver())) await sleep(20)
      if (kill >= MIN_KILLS && (await areOver())) break
      await sleep(Math.random() * SOON_MS)
      await gateway.kill()
      before = [...(await asked())]
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
