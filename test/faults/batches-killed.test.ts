import { expect, test } from 'vitest'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { audit } from '../fixtures/auditor.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

const CHARGE = 30
const QUOTA = 1_000_000
const LINES = 120
const KILLS = 4
const GRANTED = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }

test('a batch goes on after each kill, and each line is charged once, with one result', async () => {
  const fixture = await startFixture((upstream) => ({
    options: { batches: { parallel: 4 } },
    rate_limits: { relay: { requests: 0 } },
    models: priced(['m', 'bad']),
    channels: ['m', 'bad'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
  }))
  try {
    const { gateway, upstream } = fixture
    upstream.script('bad', { kind: 'status', status: 400, body: '{"error":{"message":"no"}}' })
    const ann = new BatchClient(gateway.url, 'ann')
    const lines = Array.from({ length: LINES }, (_, at) => chatLine(`l${at}`, at % 10 === 9 ? 'bad' : 'm'))
    const { id } = await ann.make(lines)
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await upstream.receivedAtLeast('m', Math.floor((kill * LINES * 0.8) / (KILLS + 1)))
      await gateway.kill()
      await gateway.restart()
    }
    const ended = await ann.ended(id)
    const failed = LINES / 10
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: LINES, completed: LINES - failed, failed },
    })
    const results = [...(await ann.lines(ended.output_file_id)), ...(await ann.lines(ended.error_file_id))]
    expect(new Set(results.map(({ custom_id }) => custom_id)).size).toBe(LINES)
    expect(results).toHaveLength(LINES)
    await gateway.stop()
    const database = databaseOf(gateway.dataDir)
    const charges = database.usage().map(({ quota }) => quota)
    expect(charges.filter((quota) => quota === CHARGE)).toHaveLength(LINES - failed)
    expect(charges.filter((quota) => quota === 0)).toHaveLength(failed)
    expect(charges).toHaveLength(LINES)
    expect(database.openHolds()).toEqual([])
    expect(database.token('token-ann').remain_quota).toBe(QUOTA - (LINES - failed) * CHARGE)
    expect(audit(gateway.dataDir, [], GRANTED)).toEqual([])
    // Only the calls that were under way at a kill were made again.
    expect(upstream.received('m').length - (LINES - failed)).toBeLessThanOrEqual(KILLS * 4)
  } finally {
    await fixture.close()
  }
})

test('a batch goes on although a full disk let its node neither take it over nor return its lease', async () => {
  const throwing = `if (this.#looks === 1) throw new Error('the disk is full')\n`
  const read = 'const batch = await store.find(one.userId, one.id)\n'
  const returned = 'if (!run) await releaseBatch(this.#services, one)\n'
  const copy = await patchedProgram(
    [read, returned].map((text) => ({
      file: 'src/features/batches/batch-runs.ts',
      text,
      by: `${throwing}${text}`,
    })),
  )
  const fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
  try {
    const { gateway, upstream } = fixture
    const gate = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'whole', after: gate.promise }, { kind: 'whole' })
    const ann = new BatchClient(gateway.url, 'ann')
    const { id } = await ann.make([chatLine('a')])
    await upstream.receivedAtLeast('m', 1)
    await gateway.kill()
    gate.resolve()
    await gateway.restart()
    expect(await ann.ended(id)).toMatchObject({ status: 'completed', request_counts: { completed: 1 } })
  } finally {
    await fixture.close()
    copy.discard()
  }
})

test('what has not ended after 24 hours expires, and is in the file with errors', async () => {
  const clock = dateClock()
  const fixture = await startFixture(
    (upstream) => ({
      options: { batches: { parallel: 1 } },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: clock.env },
  )
  try {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'whole', after: gate.promise })
    const ann = new BatchClient(fixture.gateway.url, 'ann')
    const { id } = await ann.make([chatLine('a'), chatLine('b')])
    await fixture.upstream.receivedAtLeast('m', 1)
    clock.move(24 * 3_600 + 1)
    await expect.poll(async () => (await ann.batch(id)).status).toBe('finalizing')
    gate.resolve()
    const ended = await ann.ended(id)
    expect(ended).toMatchObject({ status: 'expired', request_counts: { total: 2, completed: 1, failed: 0 } })
    expect(await ann.lines(ended.output_file_id)).toMatchObject([{ custom_id: 'a' }])
    expect(await ann.lines(ended.error_file_id)).toMatchObject([
      { custom_id: 'b', response: null, error: { code: 'batch_expired' } },
    ])
    expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([])
  } finally {
    await fixture.close()
  }
})
