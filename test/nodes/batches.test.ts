import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { booksOfBank } from '../fixtures/bank.ts'
import { BatchClient, bodyOf, chatLine, sharedFolder } from '../fixtures/batches.ts'
import { startCluster } from '../fixtures/cluster.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

const CHARGE = 30
const QUOTA = 1_000_000
const LINES = 40

test('another node continues with the batch of a dead one, and each line is charged once', async () => {
  const shared = sharedFolder()
  const copy = await patchedProgram([
    { file: 'src/features/batches/batch-leases.ts', text: 'LEASE_MS = 90_000', by: 'LEASE_MS = 3_000' },
    { file: 'src/features/batches/batch-runs.ts', text: 'RENEW_MS = 20_000', by: 'RENEW_MS = 0' },
  ])
  const cluster = await startCluster({
    nodes: 2,
    root: copy.root,
    hasProxies: false,
    configure: (upstream) => ({
      options: { batches: { parallel: 8 }, files: { store: shared.path } },
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
    shared.remove()
  }
})

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

/** Less than eight times what the batches below hold, so that a node has to borrow what it takes over. */
const SMALL_QUOTA = 100_000

/** Two nodes on a program with these patches. */
async function twoNodes(patches: Parameters<typeof patchedProgram>[0]) {
  const shared = sharedFolder()
  const copy = await patchedProgram(patches)
  const cluster = await startCluster({
    nodes: 2,
    root: copy.root,
    hasProxies: false,
    configure: (upstream) => ({
      options: { batches: { parallel: 8 }, local_batches: true, files: { store: shared.path } },
      rate_limits: { relay: { requests: 0 } },
      models: priced(['m', 'gated']),
      channels: ['m', 'gated'].map((name) => channel(name, upstream.baseUrl(name))),
      users: [
        ROOT,
        user(2, 'ann', [token('ann', { remain_quota: SMALL_QUOTA }), token('other')], {
          quota: SMALL_QUOTA,
          access_token: ANN.accessToken,
        }),
      ],
    }),
  }).catch((error: unknown) => {
    copy.discard()
    shared.remove()
    throw error
  })
  const close = async (): Promise<void> => {
    await cluster.clear()
    copy.discard()
    shared.remove()
  }
  return { ...cluster, cluster, close }
}

test('a node that is only slow leaves a batch to the node that has taken it over', async () => {
  const { fleet, upstream, postgres, cluster, close } = await twoNodes([
    { file: 'src/features/batches/batch-runs.ts', text: 'RENEW_MS = 20_000', by: 'RENEW_MS = 0' },
  ])
  try {
    const lines = 80
    const gate = Promise.withResolvers<void>()
    upstream.decide('m', () => ({ kind: 'whole', after: gate.promise.then(() => sleep(400)) }))
    const first = new BatchClient(fleet.node(0).url, 'ann')
    const { id } = await first.make(Array.from({ length: lines }, (_, at) => chatLine(`l${at}`)))
    await upstream.receivedAtLeast('m', 4)
    // As if the first node had not renewed its lease, and another one had taken the batch over and died.
    await postgres.sql(`update idempotent_calls set node = 'dead', claim = 'dead', until_ms = 0`)
    await upstream.receivedAtLeast('m', 8)
    gate.resolve()
    const ended = await first.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: lines, completed: lines } })
    expect(await first.lines(ended.output_file_id)).toHaveLength(lines)
    // What both have made are the calls that were under way, and those before the first node looked at its lease.
    expect(upstream.received('m').length).toBeLessThan(lines * 1.6)
    await fleet.stop()
    const books = await booksOfBank(cluster)
    expect(books.usage.map(({ quota }) => quota)).toEqual(Array.from({ length: lines }, () => CHARGE))
    expect(books.tokens.find(({ name }) => name === 'token-ann')?.remain_quota).toBe(
      SMALL_QUOTA - lines * CHARGE,
    )
    expect(books.openHolds).toEqual([])
  } finally {
    await close()
  }
})

test('what a dead node has finished of a batch is kept and charged, although the key was disabled since', async () => {
  const { fleet, upstream, postgres, close } = await twoNodes([
    { file: 'src/features/batches/batch-leases.ts', text: 'LEASE_MS = 90_000', by: 'LEASE_MS = 3_000' },
    { file: 'src/features/batches/batch-runs.ts', text: 'RENEW_MS = 20_000', by: 'RENEW_MS = 0' },
    // The counts that a dead node has stored may be older than its results.
    { file: 'src/features/batches/batch-runs.ts', text: 'SAVE_MS = 1_000', by: 'SAVE_MS = 600_000' },
  ])
  try {
    upstream.script('gated', { kind: 'whole', after: new Promise(() => {}) })
    const [first, second] = [
      new BatchClient(fleet.node(0).url, 'ann'),
      new BatchClient(fleet.node(1).url, 'other'),
    ]
    const lines = Array.from({ length: 9 }, (_, at) => chatLine(`l${at}`, at < 5 ? 'm' : 'gated'))
    const { id } = await first.make(lines)
    await upstream.receivedAtLeast('gated', 4)
    const count = async (sql: string): Promise<number> => (await postgres.sql<{ n: number }>(sql))[0]?.n ?? 0
    await expect.poll(() => count(`select count(*)::int as n from kept where kind = 'batch_line'`)).toBe(5)
    await fleet.node(0).kill()
    const tokenId = await count(`select id::int as n from tokens where name = 'token-ann'`)
    const change = { id: tokenId, status: 2 }
    expect(await manage(fleet.node(1).url, ANN, 'PUT /api/token/?status_only=1', change)).toMatchObject({
      success: true,
    })
    const ended = await second.ended(id)
    expect(ended).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 9, completed: 5, failed: 0 },
    })
    expect((await second.lines(ended.output_file_id)).map(({ custom_id }) => custom_id)).toEqual([
      'l0',
      'l1',
      'l2',
      'l3',
      'l4',
    ])
    expect(await second.lines(ended.error_file_id)).toHaveLength(4)
    await expect
      .poll(() => count('select count(*)::int as n from usage_log where quota > 0'), { timeout: 20_000 })
      .toBe(5)
  } finally {
    await close()
  }
})

test('several nodes that do not share files refuse files and batches, and one node alone serves them', async () => {
  const cluster = await startCluster({
    nodes: 2,
    hasProxies: false,
    configure: (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')], { access_token: 'ann-access-token' })],
    }),
  })
  try {
    const { fleet } = cluster
    const [first, second] = [0, 1].map((at) => new BatchClient(fleet.node(at).url, 'ann')) as [
      BatchClient,
      BatchClient,
    ]
    const refused = [503, 'files_not_shared']
    type Request = Parameters<BatchClient['ask']>
    const answerTo = async (...request: Request): Promise<unknown[]> => {
      const answer = await second.ask(...request)
      return [answer.status, answer.json().error?.code]
    }
    await expect.poll(() => answerTo('/v1/files')).toEqual(refused)
    const requests: readonly Request[] = [
      ['/v1/files/file-1'],
      ['/v1/files/file-1/content'],
      ['/v1/files/file-1', 'DELETE'],
      ['/v1/batches'],
      ['/v1/batches', 'POST', {}],
      ['/v1/batches/batch_1'],
      ['/v1/batches/batch_1/cancel', 'POST'],
      ['/v1/messages/batches'],
      ['/v1/messages/batches', 'POST', {}],
      ['/v1/messages/batches/msgbatch_1/results'],
    ]
    for (const request of requests)
      expect([...request, ...(await answerTo(...request))]).toEqual([...request, ...refused])
    await expect(second.upload([chatLine('a')])).rejects.toThrow('files_not_shared')
    await fleet.node(1).stop()
    await expect.poll(async () => (await first.ask('/v1/files')).status, { timeout: 30_000 }).toBe(200)
    const { id } = await first.make([chatLine('a')])
    const { input_file_id: file, ...ended } = await first.ended(id)
    expect(ended).toMatchObject({ status: 'completed' })
    // A node that is alone does not know what the other one keeps.
    await fleet.node(0).stop()
    await fleet.node(1).restart()
    await expect.poll(async () => (await second.ask('/v1/files')).status, { timeout: 30_000 }).toBe(200)
    const again: Request = [
      '/v1/batches',
      'POST',
      { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' },
    ]
    for (const request of [again, [`/v1/files/${file}/content`]] as Request[])
      expect(await answerTo(...request)).toEqual(refused)
    const request = `GET /api/batches/${id}/results` as const
    const managed = await manage(fleet.node(1).url, { id: 2, accessToken: 'ann-access-token' }, request)
    expect(managed.status).toBe(503)
  } finally {
    await cluster.clear()
  }
})
