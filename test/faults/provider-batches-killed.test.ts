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
const LINES = 400
const KILLS = 6
const GRANTED = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }

test.each([
  ['chat', 'demo-chat'],
  ['messages', 'demo-claude'],
  ['gemini', 'demo-gemini'],
] as const)(
  'after kills at any moment, a batch at a provider of %s is made once, and charged as the provider bills it',
  async (protocol, upstream) => {
    const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
    const url = simulator[`${protocol}Url`]
    const gateway = await startGateway({
      config: {
        options: { batches: { poll: '50ms', poll_most: '200ms' } },
        models: { m: { price: BATCH_PRICE } },
        channels: [
          channel('m', url, { protocol, batches: true, models: ['m'], model_mapping: { m: upstream } }),
        ],
        users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
      },
    })
    try {
      const behaviour = { running_ms: 1_000, shuffled: true, duplicates: 2, unknown: 2 }
      await simulateBatches(url, { behaviour })
      const ann = new BatchClient(gateway.url, 'ann')
      const names = Array.from({ length: LINES }, (_, at) => `l${at}`)
      const { id } = await ann.make(
        names.map((name) => chatLine(name, 'm')),
        { metadata: {} },
      )
      for (let kill = 0; kill < KILLS; kill += 1) {
        await sleep(Math.random() * 600)
        await gateway.kill()
        await gateway.restart()
      }
      const ended = await ann.ended(id)
      expect(ended).toMatchObject({
        status: 'completed',
        request_counts: { total: LINES, completed: LINES, failed: 0 },
      })
      const results = await ann.lines(ended.output_file_id)
      expect(results.map(({ custom_id }) => custom_id)).toEqual(names)
      const invoices = await invoicesOf(url)
      expect(invoices.map(({ billed_lines: billed }) => billed)).toEqual([LINES])
      await gateway.stop()
      const database = databaseOf(gateway.dataDir)
      const billed = invoices.reduce((sum, invoice) => sum + quotaOfInvoice(invoice), 0)
      expect(database.usage()).toHaveLength(LINES)
      expect(database.usage().reduce((sum, { quota }) => sum + quota, 0)).toBe(billed)
      expect(database.token('token-ann').remain_quota).toBe(QUOTA - billed)
      expect(database.openHolds()).toEqual([])
      expect(audit(gateway.dataDir, [], GRANTED)).toEqual([])
    } finally {
      await gateway.discard()
      await simulator.close()
    }
  },
)
