import { expect, test } from 'vitest'
import { booksOfBank } from '../fixtures/bank.ts'
import { BatchClient, bodyOf, chatLine } from '../fixtures/batches.ts'
import { startCluster } from '../fixtures/cluster.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

const CHARGE = 30
const QUOTA = 1_000_000
const LINES = 40

test('another node continues with the batch of a dead one, and each line is charged once', async () => {
  const copy = await patchedProgram([
    { file: 'src/features/batches/batch-leases.ts', text: 'LEASE_MS = 90_000', by: 'LEASE_MS = 3_000' },
    { file: 'src/features/batches/batch-runs.ts', text: 'RENEW_MS = 20_000', by: 'RENEW_MS = 0' },
  ])
  const cluster = await startCluster({
    nodes: 2,
    root: copy.root,
    hasProxies: false,
    configure: (upstream) => ({
      options: { batches: { parallel: 4 } },
      rate_limits: { relay: { requests: 0 } },
      models: priced(['m', 'gated']),
      channels: ['m', 'gated'].map((name) => channel(name, upstream.baseUrl(name))),
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
    }),
  })
  try {
    const { fleet, upstream } = cluster
    const gate = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: gate.promise })
    const [first, second] = [0, 1].map((at) => new BatchClient(fleet.node(at).url, 'ann')) as [
      BatchClient,
      BatchClient,
    ]
    const lines = Array.from({ length: LINES }, (_, at) => chatLine(`l${at}`, at < 20 ? 'm' : 'gated'))
    const { id } = await first.make(lines)
    await upstream.receivedAtLeast('gated', 4)
    await fleet.node(0).kill()
    gate.resolve()
    const ended = await second.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: LINES, completed: LINES } })
    await fleet.node(0).restart()
    expect(await first.lines(ended.output_file_id)).toHaveLength(LINES)
    // A batch of one node is cancelled through another.
    const again = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: again.promise })
    const other = await first.make(Array.from({ length: 10 }, (_, at) => chatLine(`c${at}`, 'gated')))
    await upstream.receivedAtLeast('gated', 4)
    expect(bodyOf(await second.ask(`/v1/batches/${other.id}/cancel`, 'POST')).status).toBe('cancelling')
    again.resolve()
    const cancelled = await second.ended(other.id)
    expect(['cancelled', 'completed']).toContain(cancelled.status)
    const sent = Number(cancelled.request_counts['completed'])
    await fleet.stop()
    const books = await booksOfBank(cluster)
    expect(books.usage.map(({ quota }) => quota)).toEqual(Array.from({ length: LINES + sent }, () => CHARGE))
    expect(books.tokens.find(({ name }) => name === 'token-ann')?.remain_quota).toBe(
      QUOTA - (LINES + sent) * CHARGE,
    )
    expect(books.openHolds).toEqual([])
  } finally {
    await cluster.clear()
    copy.discard()
  }
})
