import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { SECRET as COMMANDS_SECRET, sluice } from '../fixtures/command.ts'
import { channel, priced, ROOT } from '../fixtures/configuration.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import { familyDatabase } from '../stores/family-database.ts'
import { filledFolder, SECRET } from '../stores/filled-store.ts'
import { temporaryFolder } from '../stores/rows.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

/** A new-api with one user, one key, and one channel that leads to this port. */
async function newApi(port: number, key: string): Promise<string> {
  const source = await familyDatabase('new-api', 'SQLite')
  await source.insert('options', { key: 'ModelRatio', value: '{"m":0.5}' })
  await source.insert('users', {
    id: 7,
    username: 'ann',
    password: 'x',
    status: 1,
    role: 1,
    group: 'default',
    quota: 5_000_000,
  })
  await source.insert('tokens', {
    id: 3,
    user_id: 7,
    key,
    name: 'laptop',
    status: 1,
    expired_time: -1,
    unlimited_quota: true,
    remain_quota: 0,
  })
  await source.insert('channels', {
    id: 1,
    type: 1,
    key: 'upstream-key',
    status: 1,
    name: 'main',
    base_url: `http://127.0.0.1:${port}/main`,
    models: 'm',
    group: 'default',
  })
  return source.place
}

describe.each(SHARED)('moving to nodes whose database is $name', (engine) => {
  const NAME = 'an import that nodes hear of over Redis'
  test.each([
    ['PostgreSQL', undefined],
    ...(withoutRedis(NAME) ? [] : [['Redis', startRedisServer] as const]),
  ] as const)(
    'users and keys that are imported while nodes run are accepted by all nodes within a second, announced over %s',
    async (_, start) => {
      const key = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'
      const redis = await start?.()
      onTestFinished(() => redis?.stop())
      const env = { GATEWAY_SECRET: COMMANDS_SECRET, ...(redis && { REDIS_URL: redis.url }) }
      const { upstream, database, chat } = await setNodes(engine, 2, () => ({ users: [ROOT] }), { env })
      const statuses = async (): Promise<number[]> =>
        Promise.all([0, 1].map(async (node) => (await chat(node, key, ask('m', { max_tokens: 5 }))).status))
      expect(await statuses()).toEqual([401, 401])
      const source = await newApi(upstream.port, key)
      const orders = ['import', source, '--apply', '--json']
      const imported = await sluice(orders, {
        ...env,
        DATA_DIR: temporaryFolder(),
        DATABASE_URL: database.place,
      })
      expect(imported).toMatchObject({ code: 0, err: '' })
      expect(imported.json()).toMatchObject({
        applied: true,
        told_nodes: true,
        summary: { channel: { left: 0 } },
      })
      await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200]), {
        timeout: 30_000,
        interval: 20,
      })
    },
    60_000,
  )

  test('an import on the command line reports that running nodes cannot be notified if Redis is unreachable', async () => {
    const database = await engine.database()
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const imported = await sluice(['import', await newApi(upstream.port, 'akey'), '--apply'], {
      DATA_DIR: temporaryFolder(),
      DATABASE_URL: database.place,
      GATEWAY_SECRET: SECRET,
      REDIS_URL: 'redis://127.0.0.1:1',
    })
    expect(imported).toMatchObject({ code: 0, err: '' })
    expect(imported.out).toContain('could not be notified: they see it within a minute')
  }, 300_000)

  test('a gateway on a PostgreSQL database filled by a migration charges calls; a second migration to the database is refused', async () => {
    const folder = await filledFolder({ users: 2, tokensEach: 1, charges: [100], openHolds: 0 })
    const database = await engine.database()
    const migrate = () =>
      sluice(['migrate', '--to', database.place], { DATA_DIR: folder, GATEWAY_SECRET: SECRET })
    expect(await migrate()).toMatchObject({ code: 0, err: '' })
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const gateway = await startGateway({
      config: { models: priced(['m']), channels: [channel('m', upstream.baseUrl('m'))] },
      env: { DATABASE_URL: database.place, GATEWAY_SECRET: SECRET },
    })
    onTestFinished(() => gateway.discard())
    expect((await call(gateway.url, ask('m', { max_tokens: 10 }), { key: 'key1x0' })).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    // Ten tokens of the prompt at one unit each, and five of output at four.
    expect(await database.sql('SELECT used_quota, remain_quota, leased FROM tokens WHERE id = 2')).toEqual([
      { used_quota: 30, remain_quota: 499_970, leased: 0 },
    ])
    const again = await migrate()
    expect(again).toMatchObject({ code: 1 })
    expect(again.err).toContain('is not empty, and not a copy of the present database:')
    expect(again.err).toContain('  users 2 has another quota (1000000 here, 999970 there)\n')
    expect(again.err).toMatch(/ usage_log "[0-9a-f-]{36}" exists in the target alone\n/)
  }, 300_000)
})
