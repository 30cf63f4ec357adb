import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import {
  batchesOf,
  type BatchStep,
  invoicesOf,
  momentOfStep,
  quotaOfInvoice,
  requestsSoFar,
  simulateBatches,
} from '../fixtures/batch-provider.ts'
import { BatchClient, type BatchBody, chatLine, sharedFolder } from '../fixtures/batches.ts'
import { databaseOf } from '../fixtures/database.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { byTier } from '../runner/tier.ts'
import { setNodes, SHARED } from './fixture.ts'

const NODES = byTier(2, 3)
const LINES = byTier(300, 50_000)
/** By day, the step at which the node with the batch is killed; at night, any node is, at any moment. */
const KILLS = byTier<readonly (BatchStep | undefined)[]>(
  ['create', 'get', 'content', 'content'],
  Array.from({ length: 20 }, () => undefined),
)
/** Longest time in milliseconds between two kills at any moment. */
const BETWEEN_MS = 15_000
/** The lease of a batch, which a dead node leaves behind. */
const LEASE_MS = 90_000
const QUOTA = 2_000_000_000
const ENDS: ReadonlySet<string> = new Set(['completed', 'expired', 'cancelled'])

describe.each(SHARED)('a batch at a provider, with several nodes on $name', (engine) => {
  test('with kills of nodes at any moment, each line of a batch at a provider has one result, and the ledger has what the provider bills', {
    timeout: byTier(240_000, 1_800_000),
  }, async () => {
    const shared = sharedFolder()
    onTestFinished(() => shared.remove())
    const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
    onTestFinished(() => simulator.close())
    const configure = () => ({
      options: { batches: { poll: '50ms', poll_most: '500ms' }, files: { store: shared.path } },
      ...batchesOf('ann', simulator.chatUrl, QUOTA),
    })
    const { gateways, database } = await setNodes(engine, NODES, configure, { program: patientProgram })
    const urls = [simulator.chatUrl]
    const behaviour = { running_ms: byTier(1_000, 2_000), shuffled: true, duplicates: 3, unknown: 3 }
    await simulateBatches(simulator.chatUrl, { behaviour })
    const clients = gateways.map(({ url }) => new BatchClient(url, 'ann'))
    const clientOf = (node: number): BatchClient => clients[node] as BatchClient
    const names = Array.from({ length: LINES }, (_, at) => `l${at}`)
    const { id } = await clientOf(0).make(
      names.map((name) => chatLine(name, 'm')),
      { metadata: {} },
    )
    const isOver = async (): Promise<boolean> => ENDS.has((await clientOf(1).batch(id)).status)
    const nodeWithBatch = async (): Promise<number> => {
      const pages = await Promise.all(gateways.map(({ url }) => metricsOf(url)))
      return pages.findIndex((page) => page.sum('sluice_batches_open') > 0)
    }
    let before: readonly number[] = []
    for (const step of KILLS) {
      if (step === undefined) await sleep(randomInt(BETWEEN_MS))
      else await momentOfStep(urls, step, before, isOver)
      const holder = await nodeWithBatch()
      const killed = step === undefined || holder < 0 ? randomInt(NODES) : holder
      await gateways[killed]?.kill()
      // As far as time would before the lease ends.
      if (killed === holder)
        await database.sql(
          `update idempotent_calls set until_ms = until_ms - ${LEASE_MS} where lookup = 'batch ${id}'`,
        )
      before = await requestsSoFar(urls)
      await gateways[killed]?.restart()
    }
    await expect.poll(isOver, { timeout: byTier(90_000, 1_200_000), interval: 500 }).toBe(true)
    const ended: BatchBody = await clientOf(1).batch(id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: LINES, completed: LINES, failed: 0 },
    })
    const results = await clientOf(NODES - 1).lines(ended.output_file_id)
    expect(results.map(({ custom_id }) => custom_id)).toEqual(names)
    const invoices = await invoicesOf(simulator.chatUrl)
    expect(invoices.map(({ billed_lines: billed }) => billed)).toEqual([LINES])
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    const billed = invoices.reduce((sum, invoice) => sum + quotaOfInvoice(invoice), 0)
    expect(
      await database.sql('select count(*)::int as lines, sum(quota)::bigint as quota from usage_log'),
    ).toEqual([{ lines: LINES, quota: billed }])
    expect(await database.sql(`select remain_quota as remain from tokens where name = 'token-ann'`)).toEqual([
      { remain: QUOTA - billed },
    ])
    expect(gateways.flatMap(({ dataDir }) => databaseOf(dataDir).openHolds())).toEqual([])
  })
})
