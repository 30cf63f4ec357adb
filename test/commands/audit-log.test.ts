import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  commandOn,
  GATEWAY_STATES,
  inGatewayState,
  SECRET,
  sluice,
  untilItRuns,
} from '../fixtures/command.ts'
import { channel, priced, ROOT, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { familyDatabase } from '../stores/family-database.ts'
import { embeddedRows } from './embedded-rows.ts'

const QUERY =
  "select actor, via, action, object_name as name, changes from audit_log where actor <> 'gateway.yaml' order by id"
const QUERY_OF_FILE =
  "select via, action, object_name as name, changes from audit_log where actor = 'gateway.yaml' order by id"

const SECRET_OF_ALERTS = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

let fixture: Fixture
const configuration = (status: 1 | 2) => ({
  models: priced(['m']),
  channels: [channel('m', 'http://127.0.0.1:9/v1')],
  users: [ROOT, user(2, 'ann', [], { status })],
})
beforeAll(async () => {
  fixture = await startFixture(() => configuration(1), { env: { GATEWAY_SECRET: SECRET } })
})
afterAll(() => fixture.close())

describe.each(GATEWAY_STATES)('a command, %s', (manner) => {
  test('a change made by a sluice command is in the audit log, with the operator as its actor', async () => {
    const before = embeddedRows(fixture.gateway.dataDir, QUERY).length
    const name = manner.endsWith('not') ? 'kim' : 'bob'
    await inGatewayState(manner, fixture.gateway, async () => {
      for (const args of [
        ['user', 'create', name, '--quota', '7'],
        ['user', 'top-up', name, '5'],
        ['token', 'create', '--name', 'laptop', '--user', name, '--unlimited'],
      ])
        expect(await commandOn(fixture.gateway, ...args)).toMatchObject({ code: 0 })
    })
    const rows = embeddedRows(fixture.gateway.dataDir, QUERY).slice(before)
    expect(rows).toMatchObject([
      { actor: 'operator', via: 'command', action: 'user.create', name },
      { action: 'user.update', changes: '[{"field":"quota","before":7,"after":12}]' },
      { action: 'key.create', name: 'laptop' },
    ])
  })
})

test('a change of gateway.yaml is in the audit log when it is applied or at the next start', async () => {
  await untilItRuns(fixture.gateway)
  const since = async (act: () => Promise<void>) => {
    const before = embeddedRows(fixture.gateway.dataDir, QUERY_OF_FILE).length
    await act()
    return embeddedRows(fixture.gateway.dataDir, QUERY_OF_FILE).slice(before)
  }
  expect(await since(() => fixture.gateway.apply(configuration(2)))).toEqual([
    {
      via: 'file',
      action: 'user.update',
      name: 'ann',
      changes: '[{"field":"status","before":1,"after":2}]',
    },
  ])
  const secrets = ['sk-literal-key', 'header-of-the-file', SECRET_OF_ALERTS]
  const [key, header, alert] = secrets
  const next = {
    ...configuration(2),
    options: { hold_tokens: 77, metrics_token: 'token-of-metrics-of-the-file' },
    alerts: [{ url: 'http://127.0.0.1:9/', secret: alert, events: ['quota.low'] }],
    groups: { vip: { ratio: 0.5 } },
    models: {
      m: { price: { input: 3, output: 8 }, fallback: ['m2'] },
      m2: { price: { input: 1, output: 1 } },
    },
    channels: [
      channel('m', 'http://127.0.0.1:9/v1', { weight: 3, keys: [key], headers: { 'x-own': header } }),
      channel('m2', 'http://127.0.0.1:9/v1'),
    ],
  }
  const entries = await since(() => fixture.gateway.restart(next))
  const told = entries.map(({ action, name, changes }) => [
    action,
    name,
    (JSON.parse(changes as string) as { field: string; before: unknown; after: unknown }[])
      .map(({ field, before, after }) => `${field} ${JSON.stringify(before)} ${JSON.stringify(after)}`)
      .toSorted(),
  ])
  expect(told.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))).toEqual([
    ['channel.create', 'm2', expect.arrayContaining(['models null ["m2"]', 'keys null "changed"'])],
    ['channel.update', 'm', ['headers null "changed"', 'keys null "changed"', 'weight null 3']],
    ['group.update', 'vip', ['ratio null 0.5']],
    ['model.update', 'm', ['fallback null ["m2"]', 'vendor "acme" null']],
    ['option.update', 'alerts', ['value null "changed"']],
    ['option.update', 'hold_tokens', ['value null 77']],
    ['option.update', 'metrics_token', ['value null "changed"']],
    ['price.update', 'm', ['cache_read 0.5 null', 'input 2 3']],
    ['price.update', 'm2', ['input null 1', 'output null 1']],
  ])
  const bytes = JSON.stringify(
    ['audit_log', 'declared_settings'].map((table) =>
      embeddedRows(fixture.gateway.dataDir, `select * from ${table}`),
    ),
  )
  for (const secret of [...secrets, 'token-of-metrics-of-the-file']) expect(bytes).not.toContain(secret)
  expect(await since(() => fixture.gateway.restart(next))).toEqual([])
  expect(await since(() => fixture.gateway.apply({ ...next, groups: {} }))).toMatchObject([
    { action: 'group.update', name: 'vip', changes: '[{"field":"ratio","before":0.5,"after":null}]' },
  ])
})

test('the audit log has an entry for an import, without the imported keys', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-audit-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const source = await familyDatabase('new-api', 'SQLite')
  const key = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'
  await source.insert('users', {
    id: 7,
    username: 'ann',
    password: 'x',
    status: 1,
    role: 1,
    group: 'default',
    quota: 9,
  })
  await source.insert('tokens', {
    id: 3,
    user_id: 7,
    key,
    name: 'laptop',
    status: 1,
    expired_time: -1,
    unlimited_quota: false,
    remain_quota: 5,
    used_quota: 0,
  })
  const outcome = await sluice(['import', source.place, '--apply'], {
    DATA_DIR: dataDir,
    GATEWAY_SECRET: SECRET,
  })
  expect(outcome).toMatchObject({ code: 0 })
  const rows = embeddedRows(dataDir, QUERY)
  expect(rows).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ actor: 'sluice import', via: 'command', action: 'user.create', name: 'ann' }),
      expect.objectContaining({ action: 'key.create', name: 'laptop' }),
    ]),
  )
  expect(JSON.stringify(rows)).not.toContain(key)
})
