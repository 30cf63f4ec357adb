import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { booksOfBank } from '../fixtures/bank.ts'
import { batchesOf, invoicesOf, quotaOfInvoice, simulateBatches } from '../fixtures/batch-provider.ts'
import { BatchClient, type BatchBody, chatLine, sharedFolder } from '../fixtures/batches.ts'
import { startCluster } from '../fixtures/cluster.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { byTier } from '../runner/tier.ts'

const NODES = 3
const LINES = byTier(600, 50_000)
const KILLS = byTier(4, 20)
/** Longest time in milliseconds between two kills. */
const BETWEEN_MS = byTier(2_000, 15_000)
const QUOTA = 2_000_000_000
const ENDS: ReadonlySet<string> = new Set(['completed', 'expired', 'cancelled'])

test('with kills of nodes at any moment, each line of a batch at a provider has one result, and the ledger has what the provider bills', {
  timeout: byTier(240_000, 1_800_000),
}, async () => {
  const shared = sharedFolder()
  const copy = await patchedProgram([
    { file: 'src/features/batches/batch-leases.ts', text: 'LEASE_MS = 90_000', by: 'LEASE_MS = 3_000' },
    { file: 'src/features/batches/batch-runs.ts', text: 'RENEW_MS = 20_000', by: 'RENEW_MS = 0' },
  ])
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  const cluster = await startCluster({
    nodes: NODES,
    root: copy.root,
    hasProxies: false,
    configure: () => ({
      options: { batches: { poll: '50ms', poll_most: '500ms' }, files: { store: shared.path } },
      ...batchesOf('ann', simulator.chatUrl, QUOTA),
    }),
  })
  try {
    const { fleet } = cluster
    const behaviour = { running_ms: 2_000, shuffled: true, duplicates: 3, unknown: 3 }
    await simulateBatches(simulator.chatUrl, { behaviour })
    const clientOf = (node: number): BatchClient => new BatchClient(fleet.node(node).url, 'ann')
    const names = Array.from({ length: LINES }, (_, at) => `l${at}`)
    const { id } = await clientOf(0).make(
      names.map((name) => chatLine(name, 'm')),
      { metadata: {} },
    )
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(randomInt(BETWEEN_MS))
      const node = fleet.node(randomInt(NODES))
      await node.kill()
      await node.restart()
    }
    const isOver = async (): Promise<boolean> => ENDS.has((await clientOf(1).batch(id)).status)
    await expect.poll(isOver, { timeout: byTier(90_000, 1_200_000), interval: 500 }).toBe(true)
    const ended: BatchBody = await clientOf(1).batch(id)
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: LINES, completed: LINES, failed: 0 },
    })
    const results = await clientOf(2).lines(ended.output_file_id)
    expect(results.map(({ custom_id }) => custom_id)).toEqual(names)
    const invoices = await invoicesOf(simulator.chatUrl)
    expect(invoices.map(({ billed_lines: billed }) => billed)).toEqual([LINES])
    await fleet.stop()
    const books = await booksOfBank(cluster)
    const billed = invoices.reduce((sum, invoice) => sum + quotaOfInvoice(invoice), 0)
    expect(books.usage).toHaveLength(LINES)
    expect(books.usage.reduce((sum, { quota }) => sum + quota, 0)).toBe(billed)
    expect(books.tokens.find(({ name }) => name === 'token-ann')?.remain_quota).toBe(QUOTA - billed)
    expect(books.openHolds).toEqual([])
  } finally {
    await cluster.clear()
    await simulator.close()
    copy.discard()
    shared.remove()
  }
})
