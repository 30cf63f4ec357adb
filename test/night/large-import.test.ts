import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { commandOn, SECRET } from '../fixtures/command.ts'
import { plainConfiguration, ROOT } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { startMariadbServer, withoutMariadb } from '../fixtures/mariadb-server.ts'
import { familyDatabase } from '../stores/family-database.ts'

const USERS = 10_000
const FIRST = 10
/** The number of keys that are tried after the import, spread over all keys. */
const TRIED = 200

const keyOf = (user: number): string => `Key${String(user).padStart(45, '0')}`

describe.skipIf(withoutMariadb('the import of many users'))('a new-api with 10,000 users on MariaDB', () => {
  test('importing a large new-api database keeps its keys working, shows progress, and names rows that are left out', async () => {
    const server = await startMariadbServer()
    onTestFinished(() => server.stop())
    const source = await familyDatabase('new-api', 'MariaDB', server)
    const numbers = `from seq_${FIRST}_to_${FIRST + USERS - 1}`
    await source.sql(
      `insert into users (id, username, password, role, status, quota, used_quota, "group")
         select seq, concat('user-', seq), '', 1, 1, 1000000, 0, 'default' ${numbers}`,
    )
    await source.sql(
      `insert into tokens (id, user_id, "key", status, name, expired_time, remain_quota, unlimited_quota, used_quota)
         select seq, seq, concat('Key', lpad(seq, 45, '0')), 1, 'main', -1, 500000, 0, 0 ${numbers}`,
    )
    await source.insert('options', { key: 'SomethingElse', value: '1' })
    const fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')), {
      env: { GATEWAY_SECRET: SECRET },
    })
    onTestFinished(() => fixture.close())
    const { gateway } = fixture
    await gateway.stop()
    const startMs = performance.now()
    const { code, out, err } = await commandOn(gateway, 'import', source.place, '--apply')
    console.info(`${USERS} users and as many keys in ${Math.round(performance.now() - startMs)} ms`)
    expect(code).toBe(0)
    expect(out).toMatch(new RegExp(`^users +${USERS} +0 +0 +0$`, 'm'))
    expect(out).toMatch(new RegExp(`^tokens +${USERS} +0 +0 +0$`, 'm'))
    expect(out).toMatch(/^option .* does not carry over: .*SomethingElse$/m)
    expect(err.match(/^\d+ of 10000 users \(\d+ %\)$/gm)).toHaveLength(10)
    await gateway.restart()
    for (let tried = 0; tried < TRIED; tried += 1) {
      const key = keyOf(FIRST + tried * Math.floor(USERS / TRIED))
      expect((await call(gateway.url, ask('m'), { key })).status, key).toBe(200)
    }
    expect((await call(gateway.url, ask('m'), { key: keyOf(FIRST + USERS - 1) })).status).toBe(200)
    expect((await call(gateway.url, ask('m'), { key: keyOf(FIRST + USERS) })).status).toBe(401)
  })
})

test('an upload to import that needs too much memory is refused with a sentence while calls continue', async () => {
  const fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')))
  onTestFinished(() => fixture.close())
  const { gateway, upstream } = fixture
  upstream.script('m', { kind: 'whole' })
  const source = await familyDatabase('new-api', 'SQLite')
  await source.sql(
    `insert into users (id, username, password, quota)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 499000) select i, 'u' || i, '', 0 from n`,
  )
  const uploads = () => readdirSync(gateway.dataDir).filter((name) => name.startsWith('.import-'))
  const sending = manage(
    gateway.url,
    { id: 1, accessToken: ROOT.access_token },
    'POST /api/import?name=one-api.db',
    readFileSync(source.place),
    { 'content-type': 'application/octet-stream' },
  )
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  const answer = await sending
  expect(answer).toMatchObject({ status: 400, success: false })
  expect(answer.message).toContain('needs more memory than')
  expect(uploads()).toEqual([])
})
