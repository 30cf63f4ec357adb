import { afterAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { BatchClient, bodyOf, chatLine, sharedFolder } from '../fixtures/batches.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { lockTable } from '../stores/locked-row.ts'
import { SHARED, sharedNodes } from './fixture.ts'

const CHARGE = 30
const QUOTA = 1_000_000
/** Less than eight times what a batch holds, so that a node has to borrow what it takes over. */
const SMALL_QUOTA = 100_000
/** The lease of a batch, which a dead node leaves behind. */
const LEASE_MS = 90_000
const CID = { id: 4, accessToken: 'the-access-token-of-cid' }
const FAY = 7
const EVA = { id: 6, accessToken: 'the-access-token-of-eva' }

const folder = sharedFolder()
afterAll(() => folder.remove())

function configuration(upstream: ScriptedUpstream, options: Record<string, unknown>): Configuration {
  return {
    options,
    rate_limits: { relay: { requests: 0 } },
    models: priced(['m', 'gated', 'held']),
    channels: ['m', 'gated', 'held'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA }),
      user(3, 'bea', [token('bea', { remain_quota: SMALL_QUOTA })], { quota: SMALL_QUOTA }),
      user(CID.id, 'cid', [token('cid', { remain_quota: SMALL_QUOTA }), token('other')], {
        quota: SMALL_QUOTA,
        access_token: CID.accessToken,
      }),
      user(5, 'dan', [token('dan')]),
      user(EVA.id, 'eva', [token('eva', { remain_quota: QUOTA }), token('eva2')], {
        quota: QUOTA,
        access_token: EVA.accessToken,
      }),
      user(FAY, 'fay', [token('fay', { remain_quota: QUOTA })], { quota: QUOTA }),
    ],
  }
}

describe.each(SHARED)('batches of two nodes on $name', (engine) => {
  const options = { batches: { parallel: 8 }, local_batches: true, files: { store: folder.path } }
  const shared = sharedNodes(engine, 2, (upstream) => configuration(upstream, options), patientProgram)
  const node = (index: 0 | 1) => {
    const gateway = shared.nodes.gateways[index]
    if (!gateway) throw new Error('the nodes are not started')
    return gateway
  }
  const clients = (key: string, other = key): [BatchClient, BatchClient] => [
    new BatchClient(node(0).url, key),
    new BatchClient(node(1).url, other),
  ]
  const sql = (statement: string) => shared.nodes.database.sql(statement)
  const leaseOf = async (id: string) =>
    (await sql(`select node, until_ms as until from idempotent_calls where lookup = 'batch ${id}'`))[0]
  /** Kills the first node, and ends its leases, as time would. No other node takes over its batches before that. */
  const killFirst = async (id: string, before?: () => Promise<unknown>): Promise<void> => {
    await node(0).kill()
    await before?.()
    const { node: name, until } = (await leaseOf(id)) ?? {}
    expect(Number(until)).toBeGreaterThan(Date.now())
    await sql(`update idempotent_calls set until_ms = until_ms - ${LEASE_MS} where node = '${String(name)}'`)
  }
  const openHolds = () => shared.nodes.gateways.flatMap(({ dataDir }) => databaseOf(dataDir).openHolds())
  const firstHasNone = async (): Promise<void> => {
    const open = async (): Promise<number> => (await metricsOf(node(0).url)).sum('sluice_batches_open')
    await expect.poll(open).toBe(0)
  }
  /** Number of stored results of batches of a user that are not removed yet. */
  const resultsOf = async (userId: number): Promise<number> =>
    (await sql(`select 1 from kept where kind = 'batch_line' and user_id = ${userId}`)).length
  const chargesOf = async (userId: number): Promise<unknown[]> =>
    (await sql(`select quota from usage_log where user_id = ${userId}`)).map(({ quota }) => quota)
  const disable = async (name: string, owner: typeof CID): Promise<void> => {
    const [row] = await sql(`select id from tokens where name = 'token-${name}'`)
    const change = { id: Number(row?.['id']), status: 2 }
    expect(await manage(node(1).url, owner, 'PUT /api/token/?status_only=1', change)).toMatchObject({
      success: true,
    })
  }
  /** Waits until this number of lines was charged to a key and its user, each once. */
  const areCharged = async (name: string, userId: number, quota: number, lines: number): Promise<void> => {
    await expect
      .poll(() => shared.nodes.token(`token-${name}`))
      .toMatchObject({ remain: quota - lines * CHARGE, used: lines * CHARGE })
    expect(await chargesOf(userId)).toEqual(Array.from({ length: lines }, () => CHARGE))
    await expect.poll(openHolds).toEqual([])
  }

  test('another node continues with the batch of a dead one, and each line is charged once', async () => {
    const { upstream } = shared.nodes
    const [first, second] = clients('ann')
    const gate = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: gate.promise })
    const lines = Array.from({ length: 40 }, (_, at) => chatLine(`l${at}`, at < 20 ? 'm' : 'gated'))
    const { id } = await first.make(lines)
    await upstream.receivedAtLeast('gated', 4)
    await killFirst(id)
    gate.resolve()
    const ended = await second.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: 40, completed: 40 } })
    await node(0).restart()
    expect(await first.lines(ended.output_file_id)).toHaveLength(40)
    await areCharged('ann', 2, QUOTA, 40)
  })

  test('a batch of one node is cancelled through another, and what was sent of it is charged', async () => {
    const { upstream } = shared.nodes
    const [first, second] = clients('ann')
    const gate = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: gate.promise })
    const { used: before } = await shared.nodes.token('token-ann')
    const { id } = await first.make(Array.from({ length: 10 }, (_, at) => chatLine(`c${at}`, 'gated')))
    await upstream.receivedAtLeast('gated', 4)
    expect(bodyOf(await second.ask(`/v1/batches/${id}/cancel`, 'POST')).status).toBe('cancelling')
    gate.resolve()
    const cancelled = await second.ended(id)
    expect(['cancelled', 'completed']).toContain(cancelled.status)
    const sent = Number(cancelled.request_counts['completed'])
    await areCharged('ann', 2, QUOTA, before / CHARGE + sent)
  })

  test('what a dead node has finished of a batch is kept and charged, although the key was disabled since', async () => {
    const { upstream } = shared.nodes
    upstream.script('gated', { kind: 'whole', after: new Promise(() => {}) })
    const [first, second] = clients('cid', 'other')
    const lines = Array.from({ length: 9 }, (_, at) => chatLine(`l${at}`, at < 5 ? 'm' : 'gated'))
    const { id } = await first.make(lines)
    const stored = `from kept where kind = 'batch' and key = '${id}'`
    const [created] = await sql(`select cipher, content_id ${stored}`)
    await upstream.receivedAtLeast('gated', 4)
    await expect.poll(() => resultsOf(CID.id)).toBe(5)
    await killFirst(id, async () => {
      // The counts that a dead node has stored may be older than its results.
      await sql(
        `update kept set cipher = '${String(created?.['cipher'])}', content_id = '${String(created?.['content_id'])}'
         where kind = 'batch' and key = '${id}'`,
      )
      await disable('cid', CID)
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
    await node(0).restart()
    await areCharged('cid', CID.id, SMALL_QUOTA, 5)
  })

  test('a node that takes long to end a batch renews its lease, and leaves the batch alone once another one has it', async () => {
    const { upstream, database } = shared.nodes
    upstream.script('gated', { kind: 'whole', after: new Promise(() => {}) })
    const [first, second] = clients('eva', 'eva2')
    const lines = Array.from({ length: 4 }, (_, at) => chatLine(`l${at}`, at < 3 ? 'm' : 'gated'))
    const { id } = await first.make(lines)
    await expect.poll(() => resultsOf(EVA.id)).toBe(3)
    await expect.poll(async () => (await second.batch(id)).request_counts['completed']).toBe(3)
    // The end of a batch whose key is disabled is a part of the takeover, and reads and writes contents.
    const contents = await lockTable(database.place, 'kept_parts')
    const { node: dead } = (await leaseOf(id)) ?? {}
    await killFirst(id, () => disable('eva', EVA))
    await expect.poll(async () => (await leaseOf(id))?.['node']).not.toBe(dead)
    const { until } = (await leaseOf(id)) ?? {}
    await expect
      .poll(async () => (await leaseOf(id))?.['until'], { interval: 200 })
      .toBeGreaterThan(Number(until))
    await sql(`update idempotent_calls set node = 'other', claim = 'other' where lookup = 'batch ${id}'`)
    await contents.unlock()
    await expect.poll(() => node(1).logs().includes('another node has taken')).toBe(true)
    expect(await second.batch(id)).toMatchObject({ status: 'finalizing' })
    expect(
      await sql(`select 1 from kept where kind = 'file' and key like 'file-%' and user_id = ${EVA.id}`),
    ).toHaveLength(1)
    expect(await leaseOf(id)).toMatchObject({ node: 'other' })
    await sql(`update idempotent_calls set until_ms = 0 where lookup = 'batch ${id}'`)
    const ended = await second.ended(id)
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 4, completed: 3 } })
    expect(await second.lines(ended.output_file_id)).toHaveLength(3)
    await node(0).restart()
    await areCharged('eva', EVA.id, QUOTA, 3)
  })

  test('a node that has lost a batch without knowing changes nothing of its end', async () => {
    const { upstream } = shared.nodes
    const [first, second] = clients('fay')
    const [gate, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const gates = [gate, last, undefined, undefined, last]
    upstream.decide('gated', () => ({ kind: 'whole', after: gates.shift()?.promise ?? Promise.resolve() }))
    const received = upstream.received('gated').length
    const { id } = await first.make([chatLine('a', 'gated'), chatLine('b', 'gated')])
    await upstream.receivedAtLeast('gated', received + 2)
    await sql(
      `update idempotent_calls set node = 'dead', claim = 'dead', until_ms = 0 where lookup = 'batch ${id}'`,
    )
    const ended = await second.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 2 } })
    gate.resolve()
    await expect.poll(() => resultsOf(FAY)).toBe(1)
    // The node stores the progress of its batches in the order in which it was made.
    const { id: later } = await first.make([chatLine('c'), chatLine('d', 'gated')])
    await expect.poll(async () => (await second.batch(later)).request_counts['completed']).toBe(1)
    expect(await second.batch(id)).toEqual(ended)
    last.resolve()
    expect(await second.ended(later)).toMatchObject({ status: 'completed' })
    await firstHasNone()
    await areCharged('fay', FAY, QUOTA, 4)
  })

  test('an answer that could not be stored until the batch was lost costs nothing', async () => {
    const { upstream } = shared.nodes
    const [first, second] = clients('fay')
    const gate = Promise.withResolvers<void>()
    upstream.script('gated', { kind: 'whole', after: gate.promise })
    const received = upstream.received('gated').length
    const { id } = await first.make([chatLine('a', 'gated')])
    await upstream.receivedAtLeast('gated', received + 1)
    await second.ask(`/v1/batches/${id}/cancel`, 'POST')
    await sql('create sequence tries')
    await sql(`create function refuse() returns trigger language plpgsql security definer as $$ begin
      perform nextval('public.tries'); raise exception 'refused'; end $$`)
    await sql(`create trigger refuse before insert on kept for each row
      when (new.kind = 'batch_line' and new.user_id = ${FAY}) execute function refuse()`)
    gate.resolve()
    await expect
      .poll(async () => (await sql('select is_called as tried from tries'))[0])
      .toEqual({ tried: true })
    await sql(`update idempotent_calls set node = 'other', claim = 'other' where lookup = 'batch ${id}'`)
    await sql('drop trigger refuse on kept')
    await firstHasNone()
    await sql(`update idempotent_calls set until_ms = 0 where lookup = 'batch ${id}'`)
    const ended = await second.ended(id)
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 1, completed: 0 } })
    await areCharged('fay', FAY, QUOTA, 4)
  })

  test('a node that is only slow leaves a batch to the node that has taken it over', async () => {
    const { upstream } = shared.nodes
    const count = 80
    // Both nodes make calls before the slow one looks at its lease, and the others after it.
    const both = Promise.withResolvers<void>()
    const seen = Promise.withResolvers<void>()
    let calls = 0
    upstream.decide('m', () => ({ kind: 'whole', after: ((calls += 1) <= 24 ? both : seen).promise }))
    upstream.script('held', { kind: 'whole', after: seen.promise })
    const [, slow] = clients('bea')
    const [, other] = clients('dan')
    const { id: renewed } = await other.make([chatLine('a', 'held')])
    await upstream.receivedAtLeast('held', 1)
    const { id } = await slow.make(Array.from({ length: count }, (_, at) => chatLine(`l${at}`)))
    await upstream.receivedAtLeast('m', 4)
    // As if the node had not renewed its lease, and another one had taken the batch over and died.
    await sql(
      `update idempotent_calls set node = 'dead', claim = 'dead', until_ms = 0 where lookup = 'batch ${id}'`,
    )
    const { until } = (await leaseOf(renewed)) ?? {}
    await upstream.receivedAtLeast('m', 8)
    both.resolve()
    // A node renews all of its leases together.
    await expect
      .poll(async () => (await leaseOf(renewed))?.['until'], { interval: 200 })
      .toBeGreaterThan(Number(until))
    seen.resolve()
    const ended = await slow.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: count, completed: count } })
    expect(await slow.lines(ended.output_file_id)).toHaveLength(count)
    // What both have made are the calls of which some answers were awaited when the slow node looked.
    expect(upstream.received('m').length).toBeLessThanOrEqual(count + 24)
    await areCharged('bea', 3, SMALL_QUOTA, count)
  })

  test('after the nodes have stopped, no quota of a batch is held or lent', async () => {
    expect(await Promise.all(shared.nodes.gateways.map((gateway) => gateway.stop()))).toEqual([0, 0])
    expect(openHolds()).toEqual([])
    expect(await sql('select * from leases')).toEqual([])
    expect(
      await sql(`select username, used_quota as used, (select sum(quota)::bigint from usage_log l where l.user_id = u.id) as charged
        from users u where used_quota <> coalesce((select sum(quota) from usage_log l where l.user_id = u.id), 0)`),
    ).toEqual([])
  })

  test('several nodes that do not share files refuse files and batches, and one node alone serves them', async () => {
    const config = configuration(shared.nodes.upstream, {})
    await Promise.all(shared.nodes.gateways.map((gateway) => gateway.restart(config)))
    const [first, second] = clients('other')
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
    await node(1).stop()
    await expect.poll(async () => (await first.ask('/v1/files')).status, { timeout: 60_000 }).toBe(200)
    const { id } = await first.make([chatLine('a')])
    const { input_file_id: file, ...ended } = await first.ended(id)
    expect(ended).toMatchObject({ status: 'completed' })
    // A node that is alone does not know what the other one keeps.
    await node(0).stop()
    await node(1).restart()
    await expect.poll(async () => (await second.ask('/v1/files')).status, { timeout: 60_000 }).toBe(200)
    const again: Request = [
      '/v1/batches',
      'POST',
      { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' },
    ]
    for (const request of [again, [`/v1/files/${file}/content`]] as Request[])
      expect(await answerTo(...request)).toEqual(refused)
    const request = `GET /api/batches/${id}/results` as const
    const managed = await manage(node(1).url, CID, request)
    expect(managed.status).toBe(503)
  })
})
