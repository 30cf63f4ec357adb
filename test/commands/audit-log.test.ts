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
} from '../equipment/command.ts'
import { channel, priced, ROOT, user } from '../equipment/configuration.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'
import { familyDatabase } from '../family-database.ts'
import { embeddedRows } from './embedded-rows.ts'

const QUERY =
  "select actor, via, action, object_name as name, changes from audit_log where actor <> 'gateway.yaml' order by id"

let fixture: Fixture
const configuration = (status: 1 | 2) => ({
  models: priced(['m']),
  channels: [channel('m', 'http://127.0.0.1:9/v1')],
  users: [ROOT, user(2, 'ann', [], { status })],
})
beforeAll(async () => {
  fixture = await startFixture(() => configuration(1), { env: { GATEWAY_SECRET: SECRET } })
}, 60_000)
afterAll(() => fixture.close())

describe.each(GATEWAY_STATES)('a command, %s,', (manner) => {
  test('is in the audit log, with the operator as its actor', async () => {
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

test('a change of the file is in the audit log once it applies', async () => {
  await untilItRuns(fixture.gateway)
  await fixture.gateway.apply(configuration(2))
  const [last] = embeddedRows(
    fixture.gateway.dataDir,
    "select via, action, object_name as name, changes from audit_log where actor = 'gateway.yaml' order by id desc limit 1",
  )
  expect(last).toEqual({
    via: 'file',
    action: 'user.update',
    name: 'ann',
    changes: '[{"field":"status","before":1,"after":2}]',
  })
})

test('an import is in the audit log, without the keys that it brought', async () => {
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
