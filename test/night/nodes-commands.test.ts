import { describe, expect, test, vi } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { SECRET, sluice, sluiceProcess } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { temporaryFolder } from '../stores/rows.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

describe.each(SHARED)('commands on a gateway whose database is $name', (engine) => {
  test("commands work on a shared database in a running gateway's folder, in another folder, and without a gateway", async () => {
    const { gateways, database, upstream, chat } = await setNodes(
      engine,
      1,
      (to) => ({
        models: priced(['m']),
        channels: [channel('m', to.baseUrl('m'))],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { env: { GATEWAY_SECRET: SECRET } },
    )
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const elsewhere = temporaryFolder()
    const on = (folder: string, ...args: string[]) =>
      sluice(args, { DATA_DIR: folder, DATABASE_URL: database.place, GATEWAY_SECRET: SECRET })
    const beside = await on(gateways[0]?.dataDir ?? '', 'user', 'create', 'bob', '--json')
    expect(beside).toMatchObject({ code: 0 })
    expect((await on(elsewhere, 'user', 'create', 'eve', '--json')).json()).toMatchObject({ id: 4 })
    expect((await chat(0, 'ann', ask('m', { max_tokens: 10 }))).status).toBe(200)
    expect(await on(elsewhere, 'user', 'disable', 'ann')).toMatchObject({ code: 0 })
    await vi.waitFor(
      async () => expect((await chat(0, 'ann', ask('m', { max_tokens: 10 }))).status).toBe(403),
      { timeout: 30_000, interval: 20 },
    )
    await gateways[0]?.stop()
    const listed = await on(gateways[0]?.dataDir ?? '', 'user', 'list', '--json')
    expect(JSON.stringify(listed.json())).toMatch(/bob.*eve/s)
    expect(await on(elsewhere, 'check')).toMatchObject({ code: 0 })
  }, 300_000)

  test("a gateway with another GATEWAY_SECRET than its database's does not start, and says which variable to set", async () => {
    const { database } = await setNodes(engine, 1, () => ({ users: [ROOT] }), {
      env: { GATEWAY_SECRET: SECRET },
    })
    const started = await sluiceProcess(['start'], {
      DATA_DIR: temporaryFolder(),
      DATABASE_URL: database.place,
      GATEWAY_SECRET: `another-${SECRET}`,
      PORT: '0',
    })
    expect(started.code).toBe(1)
    expect(started.err).toMatch(/another secret.*GATEWAY_SECRET/)
  }, 300_000)
})
