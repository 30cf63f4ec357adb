import { copyFileSync, existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, retryWhileOverloaded } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { lockRow } from '../stores/locked-row.ts'
import type { TestDatabase } from '../stores/engines.ts'
import { SHARED } from './fixture.ts'

/** Maximum output of a call; at four units each it far outweighs the prompt. */
const MAXIMUM = 100_000
/** Ten holds and a margin below an eleventh. */
const QUOTA = 10 * (4 * MAXIMUM + 10_000)
/** Ten prompt and five output tokens. */
const COST = 30
const BALANCE =
  'select remain_quota as remain, used_quota as used, leased, (select count(*) from usage_log) as calls from tokens'
const TAKEN = 'another gateway runs as this node: one of their data folders is a copy of the other'

interface Site {
  readonly upstream: ScriptedUpstream
  readonly database: TestDatabase
  readonly start: (dataDir?: string) => Promise<RunningGateway>
}

describe.each(SHARED)('a copy of a data folder, with $name', (engine) => {
  async function site(): Promise<Site> {
    const database = await engine.database()
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const config = {
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [{ ...ROOT, tokens: [token('ann', { remain_quota: QUOTA })] }],
    }
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const start = async (dataDir?: string): Promise<RunningGateway> => {
      const gateway = await startGateway({
        config,
        env: { DATABASE_URL: database.place },
        ...(dataDir !== undefined && { dataDir }),
      })
      onTestFinished(() => gateway.discard())
      return gateway
    }
    return { upstream, database, start }
  }

  function copyOf({ dataDir }: RunningGateway): string {
    const copy = mkdtempSync(join(tmpdir(), 'sluice-copy-'))
    for (const name of ['node.db', 'node.db-wal', 'node.db-shm'])
      if (existsSync(join(dataDir, name))) copyFileSync(join(dataDir, name), join(copy, name))
    return copy
  }

  const chat = (gateway: RunningGateway): Promise<FullResponse> =>
    retryWhileOverloaded(() => call(gateway.url, ask('m', { max_tokens: MAXIMUM }), { key: 'ann' }))

  test("a copy of a running node's data folder does not start next to that node, and settles none of its calls", async () => {
    const { upstream, database, start } = await site()
    const node = await start()
    let release: (value?: unknown) => void = () => {}
    const after = new Promise((resolve) => (release = resolve))
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after })
    const calls = Array.from({ length: 4 }, () => chat(node))
    await expect.poll(() => upstream.received('m').length).toBe(4)
    // The node writes the holds after it has sent the calls. Its files are copied after that.
    await expect.poll(() => databaseOf(node.dataDir).openHolds()).toHaveLength(4)
    await expect(start(copyOf(node))).rejects.toThrow(TAKEN)
    release()
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    // A stop takes only two seconds for the last report.
    await expect.poll(async () => (await database.sql(BALANCE))[0]?.['used']).toBe(4 * COST)
    await node.stop()
    expect(await database.sql(BALANCE)).toEqual([
      { remain: QUOTA - 4 * COST, used: 4 * COST, leased: 0, calls: 4 },
    ])
  })

  test('of a node and its copied data folder, started together, only one runs, and the calls of both are charged once', async () => {
    const { database, start } = await site()
    const node = await start()
    expect((await chat(node)).status).toBe(200)
    const lock = await lockRow(database.place, 'select 1 from tokens')
    onTestFinished(() => lock.unlock())
    // This call cannot be reported while the row is locked.
    expect((await chat(node)).status).toBe(200)
    await node.kill()
    const copy = copyOf(node)
    await lock.unlock()
    const starts = await Promise.allSettled([node.restart(), start(copy)])
    expect(starts.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await database.sql(BALANCE)).toEqual([
      { remain: QUOTA - 2 * COST, used: 2 * COST, leased: 0, calls: 2 },
    ])
  })

  test('calls that a node reported last are charged once, also if an earlier copy of its data folder starts after their rows were removed', async () => {
    const { database, start } = await site()
    const node = await start()
    expect((await chat(node)).status).toBe(200)
    const used = async () => (await database.sql(BALANCE))[0]?.['used']
    await expect.poll(used).toBe(COST)
    const lock = await lockRow(database.place, 'select 1 from tokens')
    onTestFinished(() => lock.unlock())
    // This call cannot be reported while the row is locked.
    expect((await chat(node)).status).toBe(200)
    const copy = copyOf(node)
    await lock.unlock()
    await expect.poll(used).toBe(2 * COST)
    await node.kill()
    await database.sql('delete from usage_log')
    const later = await start(copy)
    expect((await chat(later)).status).toBe(200)
    await later.stop()
    expect(await database.sql(BALANCE)).toEqual([
      { remain: QUOTA - 3 * COST, used: 3 * COST, leased: 0, calls: 1 },
    ])
  })
})
