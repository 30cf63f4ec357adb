import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { withoutComparableNames, withoutSeries } from '../../../test/former-schema.ts'
import { ENGINES } from '../../../test/store-engines.ts'
import { newUser, openedStore, temporaryFolder } from '../../../test/store-rows.ts'
import { openForWriting } from '../sqlite/connection.ts'
import { kyselyOver } from '../sqlite/dialect.ts'
import { accountsAndLedger } from './0001-accounts-and-ledger.ts'
import { SQLITE_TYPES } from './column-types.ts'
import { STEP_NAMES } from './step-names.ts'

/** Tables and columns of sessions that steps after 0005 make. */
const LATER_TABLES = [
  'stored_responses',
  'reasoning_origins',
  'kept_signatures',
  'response_parts',
  'alert_outbox',
  'alert_thresholds',
  'alert_conditions',
  'alert_sender',
  'identities',
  'used_states',
]
const SESSION_COLUMNS = ['address', 'user_agent', 'last_used', 'access_token_hash', 'logout_cipher']

const MEDIA_COLUMNS = [
  'audio_input_tokens',
  'image_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'seconds',
  'characters',
  'images',
]

const TERM_COLUMNS = [
  'budget',
  'budget_period',
  'rate_limit_requests',
  'rate_limit_tokens',
  'rate_limit_parallel',
  'rate_limit_window',
]

describe.each(ENGINES)('a migration on $name', (engine) => {
  test('runs once: a second start changes nothing', async () => {
    const database = await engine.database()
    for (let start = 0; start < 2; start += 1) await (await database.open()).close()
    expect(await database.sql('SELECT name FROM kysely_migration ORDER BY name')).toEqual(
      STEP_NAMES.map((name) => ({ name })),
    )
  })

  test('frees the names of users that were deleted before it, and leaves those of the others', async () => {
    const database = await engine.database()
    const store = await database.open()
    for (const username of ['ann', 'bob', 'eve']) await store.write('createUser', newUser({ username }))
    await store.close()
    await database.sql("DELETE FROM kysely_migration WHERE name >= '0006'")
    await database.sql(`DROP TRIGGER alert_quota_low${engine.name === 'SQLite' ? '' : ' ON users'}`)
    if (engine.name === 'SQLite') await database.sql('DROP TRIGGER alert_budget_used')
    await withoutSeries(engine, database)
    for (const table of LATER_TABLES) await database.sql(`DROP TABLE ${table}`)
    for (const name of SESSION_COLUMNS) await database.sql(`ALTER TABLE sessions DROP COLUMN ${name}`)
    for (const name of MEDIA_COLUMNS) {
      for (const table of ['usage_log', 'usage_days'])
        await database.sql(`ALTER TABLE ${table} DROP COLUMN ${name}`)
    }
    await database.sql('ALTER TABLE holds DROP COLUMN budgets')
    if (engine.name === 'PostgreSQL') {
      await database.sql('DROP TABLE lost_budgets')
      for (const table of ['users', 'tokens']) await database.sql(`DROP TRIGGER bank_heed ON ${table}`)
      await database.sql('DROP TABLE budget_periods')
      await database.sql('DROP FUNCTION budget_crossed')
    } else await database.sql('DROP TABLE budget_periods')
    await database.sql('DROP TABLE budget_crossings')
    for (const name of TERM_COLUMNS) {
      for (const table of ['users', 'tokens']) await database.sql(`ALTER TABLE ${table} DROP COLUMN ${name}`)
    }
    for (const table of ['usage_log', 'holds']) {
      for (const name of ['kind', 'requested_model'])
        await database.sql(`ALTER TABLE ${table} DROP COLUMN ${name}`)
    }
    await database.sql('UPDATE users SET deleted_time = 5 WHERE id < 3')
    const again = await database.open()
    expect(await again.write('createUser', newUser({ username: 'ann' }))).toMatchObject({ username: 'ann' })
    await again.close()
    expect(await database.sql('SELECT id, username, first_username FROM users ORDER BY id')).toEqual([
      { id: 1, username: 'ann (deleted 1)', first_username: 'ann' },
      { id: 2, username: 'bob (deleted 2)', first_username: 'bob' },
      { id: 3, username: 'eve', first_username: null },
      { id: 4, username: 'ann', first_username: null },
    ])
  })

  test('takes users whose quota is low by then for told of, and those of no others', async () => {
    const database = await engine.database()
    const store = await database.open()
    for (const [username, quota] of Object.entries({ low: 400, high: 600 }))
      await store.write('createUser', newUser({ username, quota }))
    await store.write('subscribeAlerts', {
      tags: ['one'],
      thresholds: [{ type: 'quota.low', threshold: 500 }],
    })
    await store.close()
    await withoutComparableNames(engine, database)
    await (await database.open()).close()
    await database.sql('UPDATE users SET quota = quota - 200')
    const told = await database.sql('SELECT data FROM alert_outbox')
    expect(told.map(({ data }) => JSON.parse(String(data)))).toMatchObject([{ username: 'high', quota: 400 }])
  })
})

test('the daily sums of a log that is older than they are are made from it', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const connection = openForWriting(path)
  const db = kyselyOver(connection)
  await accountsAndLedger(SQLITE_TYPES).up(db)
  connection.exec(`
    CREATE TABLE kysely_migration (name varchar(255) NOT NULL PRIMARY KEY, timestamp varchar(255) NOT NULL);
    INSERT INTO kysely_migration VALUES ('0001-accounts-and-ledger', '2026-01-01T00:00:00.000Z');
    INSERT INTO users VALUES (1, 'ada', 'ada', 1, 1, '', '', '', '', '', '', '', 'default', 90, 12, 2, '', 0, 0, 0, 0, '', '', '',
      NULL, NULL, 0, NULL);
    INSERT INTO tokens VALUES (1, 1, 'main', 'h', 'c', 1, 0, 0, -1, 90, 0, 12, 0, '', NULL, '', '', NULL);
    INSERT INTO usage_log VALUES ('a', 86399999, 1, 1, 'm', 'm', 'c', 'g', 1, 2, 3, 4, 5, 6, 7, 5, 'v', 1, 1, 0, 'complete');
    INSERT INTO usage_log VALUES ('b', 86400000, 1, 1, 'm', 'm', 'c', 'g', 1, 2, 3, 4, 5, 6, 7, 7, 'v', 1, 1, 0, 'cut');
    INSERT INTO usage_log VALUES ('c', 86400001, 1, 1, 'm', 'm', 'c', 'g', 0, 0, 0, 0, 0, 0, 0, 0, 'v', 1, NULL, 0, 'failed');
  `)
  connection.close()
  const store = await openedStore(path)
  expect(await store.read('conservation')).toMatchObject({ tokens: [], users: [], days: [] })
  const { entries } = await store.read('listUsage', { filter: { id: 'b' }, offset: 0, limit: 1 })
  expect(entries).toMatchObject([
    { kind: '', requested_model: '', quota: 7, usage: { input: 1, webSearches: 7, seconds: 0, images: 0 } },
  ])
  const file = new DatabaseSync(path, { readOnly: true })
  const days = file
    .prepare('SELECT day, requests, input_tokens, web_searches, quota FROM usage_days ORDER BY day')
    .all()
  file.close()
  expect(days.map((row) => ({ ...row }))).toEqual([
    { day: 0, requests: 1, input_tokens: 1, web_searches: 7, quota: 5 },
    { day: 1, requests: 1, input_tokens: 1, web_searches: 7, quota: 7 },
  ])
})
