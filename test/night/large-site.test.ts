import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { ask } from '../fixtures/fixture.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import {
  configurationOfUsers,
  keyOf,
  measuredReloads,
  measuredRestart,
  measuredStart,
} from '../load/large-site.ts'
import { SHARED } from '../nodes/fixture.ts'

const IN_FILE = 10_000
const IN_STORE = 100_000
const ROUNDS = 5

/** Adds keys of the first user that the file does not declare. */
function fillStore(dataDir: string): void {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'))
  database.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${IN_STORE})
    INSERT INTO tokens (user_id, name, key_hash, key_cipher, status, created_time, accessed_time, expired_time,
      remain_quota, unlimited_quota, used_quota, model_limits_enabled, model_limits, group_name, vendor_routes)
    SELECT 1, 'stored-' || i, 'hash-' || i, '', 1, 0, 0, -1, 1000, 0, 0, 0, '', '', '' FROM n`)
  database.close()
}

test(`a start of the gateway with ${IN_STORE} keys in its database takes little more CPU time than one without keys`, async () => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const config = configurationOfUsers(10, upstream.baseUrl('m'))
  const [{ gateway: empty }, { gateway: full }] = [
    await measuredStart({ config }),
    await measuredStart({ config }),
  ]
  onTestFinished(() => empty.discard())
  onTestFinished(() => full.discard())
  await full.stop()
  fillStore(full.dataDir)
  await full.restart()
  const costs: (readonly [number, number])[] = []
  for (let round = 0; round < ROUNDS; round++)
    costs.push([(await measuredRestart(empty)).cpuMs, (await measuredRestart(full)).cpuMs])
  console.info(`CPU milliseconds of starts, without and with ${IN_STORE} keys: ${JSON.stringify(costs)}`)
  const least = (which: 0 | 1): number => Math.min(...costs.map((pair) => pair[which]))
  expect(least(1)).toBeLessThanOrEqual(1.25 * least(0))
  expect((await call(full.url, ask('m'), { key: keyOf(9) })).status).toBe(200)
})

describe.each(SHARED)(`${IN_FILE} keys in gateway.yaml, on $name`, (engine) => {
  test('many keys in gateway.yaml are created with a few SQL statements, and calls continue during a reload', async () => {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const start = async (count: number): Promise<Awaited<ReturnType<typeof measuredStart>>> => {
      const { place } = await engine.database()
      const config = configurationOfUsers(count, upstream.baseUrl('m'))
      const started = await measuredStart({ config, env: { DATABASE_URL: place } })
      onTestFinished(() => started.gateway.discard())
      return started
    }
    const few = await start(10)
    const fewAgain = await measuredRestart(few.gateway)
    await few.gateway.stop()
    const many = await start(IN_FILE)
    expect((await call(many.gateway.url, ask('m'), { key: keyOf(IN_FILE - 1) })).status).toBe(200)
    const manyAgain = await measuredRestart(many.gateway)
    const reloads = await measuredReloads(many.gateway)
    const starts = [few, fewAgain, many, manyAgain].map(({ cpuMs, tookMs }) => [cpuMs, Math.round(tookMs)])
    console.info(JSON.stringify({ starts, reloads }))
    expect(many.cpuMs / fewAgain.cpuMs).toBeLessThanOrEqual(24)
    expect(manyAgain.cpuMs / fewAgain.cpuMs).toBeLessThanOrEqual(16)
    expect(reloads.longestTurnMs).toBeLessThanOrEqual(reloads.tookMs / 3)
    expect(reloads.longestWaitMs).toBeLessThanOrEqual(reloads.probedMs / 3)
  })
})
