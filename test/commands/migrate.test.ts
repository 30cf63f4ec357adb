import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { COPIED_TABLES, TABLES_NOT_COPIED } from '../../src/transfer/migrate/tables.ts'
import { lockDataFolder } from '../../src/store/data-folder.ts'
import { deriveSecrets, hashKey, unseal } from '../../src/store/secrets.ts'
import { call } from '../fixtures/client.ts'
import { type Outcome, sluice } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { BASE_ENVIRONMENT, programFolder } from '../fixtures/program.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { type Filling, filledFolder, SECRET } from '../stores/filled-store.ts'
import { ENGINES, type TestDatabase } from '../stores/engines.ts'
import { newToken } from '../stores/rows.ts'
import { embeddedRows } from './embedded-rows.ts'

const SECRETS = deriveSecrets(SECRET)
const FEW: Filling = { users: 3, tokensEach: 2, charges: [100, 250, 7, 0, 31, 900, 12], openHolds: 2 }

/** The output of `--json`. */
interface MigrationReport {
  readonly open_calls: { readonly count: number; readonly quota: number }
  readonly before: readonly { readonly table: string; readonly rows: number }[]
  readonly tables: readonly { readonly table: string; readonly here: number; readonly there: number }[]
  readonly sums: { readonly here: Record<string, string>; readonly there: Record<string, string> | null }
  readonly users: readonly { readonly id: number; readonly remain: number; readonly used: number }[]
  readonly verified: boolean
  readonly differences: readonly string[]
}

function migrate(folder: string, to: string, ...more: string[]): Promise<Outcome> {
  return sluice(['migrate', '--to', to, ...more], { DATA_DIR: folder, GATEWAY_SECRET: SECRET })
}

/** Rows of all copied columns, from both databases; columns that only the target has are left out. */
async function both(
  folder: string,
  { sql }: TestDatabase,
): Promise<{ here: Record<string, unknown>; there: Record<string, unknown> }> {
  const here: Record<string, unknown> = {}
  const there: Record<string, unknown> = {}
  for (const { name, key } of COPIED_TABLES) {
    const columns = embeddedRows(folder, `SELECT name FROM pragma_table_info('${name}')`).map(
      (row) => row['name'],
    )
    const select = `SELECT ${columns.join(', ')} FROM ${name}`
    here[name] = embeddedRows(folder, `${select} ORDER BY ${key.join(', ')}`)
    const collated = key.map((column) =>
      /^(?:id|kind|start|slot|part|percent|(?:user|token)_id)$/.test(column)
        ? column
        : `${column} collate "C"`,
    )
    there[name] = await sql(`${select} ORDER BY ${collated.join(', ')}`)
  }
  return { here, there }
}

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))('sluice migrate, to $name', (engine) => {
  test('sluice migrate copies everything, settles open calls, and reports it in tables', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    const outcome = await migrate(folder, database.place)
    expect(outcome).toMatchObject({ code: 0, err: '' })
    expect(outcome.out).toContain('Settled 2 calls that an earlier run left open: 200 quota units ($0.0004).')
    // Three users with 1,000,000 each, of which 1,300 were charged and 200 settled.
    expect(outcome.out).toMatch(/^quota of users +2998500 \(\$5\.997\) +2998500 \(\$5\.997\)$/m)
    expect(outcome.out).toMatch(/^rows of usage_log +9 +9$/m)
    expect(outcome.out).toContain('and the sums of 3 users and 6 tokens.')
    expect(outcome.out).toContain('1. Set DATABASE_URL')
    const { here, there } = await both(folder, database)
    expect(there).toEqual(here)
    expect(embeddedRows(folder, 'SELECT * FROM holds')).toEqual([])
  })

  test('a gateway on the migrated database finds and decrypts its keys, and new ids follow the old ones', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    const store = await database.open(SECRETS)
    try {
      const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'key1x0'))
      expect(found).toMatchObject({ token: { name: 't0' }, user: { username: "o'user 😀 1" } })
      const [row] = await database.sql(`SELECT id, key_cipher FROM tokens WHERE id = ${found?.token.id}`)
      expect(
        unseal(SECRETS, String(row?.['key_cipher']), { table: 'tokens', row: Number(row?.['id']) }),
      ).toBe('key1x0')
      const made = await store.write('createToken', newToken(1, { key: 'another' }))
      expect(made.id).toBe(7)
      const text = { name: 'third', declared: {}, keys: [], status: 1, family: {} } as const
      // The second channel was deleted; its id is not reused.
      expect(await store.write('createChannels', { channels: [text], created_time: 1 })).toEqual([3])
      expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    } finally {
      await store.close()
    }
  })

  test('new rows of every table whose ids are generated follow the highest id that was ever given, after sluice migrate', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    const generated = embeddedRows(
      folder,
      "SELECT name FROM sqlite_schema WHERE sql LIKE '%autoincrement%' ORDER BY name",
    ).map(({ name }) => String(name))
    const given = new Map(
      embeddedRows(folder, 'SELECT name, seq FROM sqlite_sequence').map(({ name, seq }) => [name, seq]),
    )
    expect(generated).toContain('invitations')
    for (const name of generated) {
      const [row] = await database.sql(`SELECT nextval(pg_get_serial_sequence('${name}', 'id'))::int AS next`)
      // A table without a row here would prove nothing: add one to the filled folder.
      expect(row?.['next'], name).toBe(Number(given.get(name)) + 1)
    }
  })

  test('what began before sluice migrate is not reported again after it, and a sign-in that was used cannot be used again', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    const store = await database.open(SECRETS)
    try {
      const later = { nowMs: 1_760_000_001_000, backAtMs: 4_000_000_000_001, overload: undefined }
      const alerts = () => database.sql("SELECT id FROM alert_outbox WHERE type = 'channel.resting'")
      const before = await alerts()
      expect(before).toHaveLength(1)
      await store.write('reportConditions', { ...later, opened: ['kept'] })
      expect(await alerts()).toEqual(before)
      const state = { expiresTime: 4_000_000_000, nowSeconds: 1_760_000_001 }
      expect(await store.write('consumeState', { ...state, state: 'used' })).toBe(false)
      expect(await store.write('consumeState', { ...state, state: 'new' })).toBe(true)
    } finally {
      await store.close()
    }
  })

  test('a call that is repeated with its idempotency key after sluice migrate is not made again, unless it was under way at a crash', async () => {
    const database = await engine.database()
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const config = {
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
    const root = await patientProgram()
    const start = async (env: Record<string, string>): Promise<RunningGateway> => {
      const gateway = await startGateway({ config, env: { ...env, GATEWAY_SECRET: SECRET }, root })
      onTestFinished(() => gateway.discard())
      return gateway
    }
    const withKey = (key: string) => ({ key: 'ann', headers: { 'idempotency-key': key } })
    const earlier = await start({})
    const first = await call(earlier.url, ask('m'), withKey('over'))
    expect(first.status, first.text).toBe(200)
    upstream.script('m', { kind: 'silence' })
    const broken = call(earlier.url, ask('m'), withKey('under way')).catch(() => undefined)
    await upstream.receivedAtLeast('m', 1)
    await earlier.kill()
    await broken
    const moved = await migrate(earlier.dataDir, database.place)
    expect(moved, moved.err).toMatchObject({ code: 0 })

    upstream.script('m', { kind: 'whole' })
    const { url } = await start({ DATABASE_URL: database.place })
    const again = await call(url, ask('m'), withKey('over'))
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(upstream.received('m')).toHaveLength(0)
    const other = await call(url, ask('m', { max_tokens: 7 }), withKey('over'))
    expect(other.status).toBe(422)
    const retried = await call(url, ask('m'), withKey('under way'))
    expect(retried.status, retried.text).toBe(200)
    expect(retried.headers).not.toHaveProperty('idempotency-replayed')
    expect(upstream.received('m')).toHaveLength(1)
  })

  test('a second run of sluice migrate completes missing rows, and changes nothing else', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    await database.sql('DELETE FROM usage_log WHERE quota = 250')
    await database.sql('DELETE FROM usage_sums')
    const again = await migrate(folder, database.place, '--json')
    expect(again.code).toBe(0)
    const told = again.json() as MigrationReport
    expect(told.before).toContainEqual({ table: 'usage_log', rows: 8 })
    expect(told.tables).toContainEqual({ table: 'usage_log', here: 9, there: 9 })
    expect(told).toMatchObject({ verified: true, differences: [], open_calls: { count: 0 } })
    const { here, there } = await both(folder, database)
    expect(there).toEqual(here)
  })

  test('a dry run of sluice migrate reports the rows to copy, and changes nothing', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    const before = readFileSync(join(folder, 'sluice.db'))
    const outcome = await migrate(folder, database.place, '--dry-run', '--json')
    expect(outcome.code).toBe(0)
    const told = outcome.json() as MigrationReport
    expect(told.open_calls).toEqual({ count: 2, quota: 2000 })
    expect(told.tables).toContainEqual({ table: 'tokens', here: 6, there: 0 })
    expect(told.sums).toMatchObject({ here: { 'charged in the usage log': '1300' }, there: null })
    expect(told.verified).toBe(false)
    expect(readFileSync(join(folder, 'sluice.db')).equals(before)).toBe(true)
    expect(
      await database.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'public'"),
    ).toEqual([])
    const plain = await migrate(folder, database.place, '--dry-run')
    expect(plain.out).toContain('2 calls that an earlier run left open would be settled first.')
    expect(plain.out).toContain('A dry run: nothing was written to the database')
    expect(plain.out).not.toContain('tests only')
  })

  test('sluice migrate --dry-run adds up open calls that hold more than a number states exactly', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    const file = new DatabaseSync(join(folder, 'sluice.db'))
    file.exec(`UPDATE holds SET amount = ${Number.MAX_SAFE_INTEGER}`)
    file.close()
    const outcome = await migrate(folder, database.place, '--dry-run', '--json')
    expect(outcome, outcome.err).toMatchObject({ code: 0 })
    expect((outcome.json() as MigrationReport).open_calls).toEqual({
      count: 2,
      quota: 2 * Number.MAX_SAFE_INTEGER,
    })
  })

  test('sluice migrate refuses a target with other rows, and names them', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    await database.sql('UPDATE tokens SET remain_quota = 1 WHERE id = 2')
    await database.sql("UPDATE users SET password_hash = 'theirs' WHERE id = 3")
    await database.sql("INSERT INTO stored_settings VALUES ('options', 'hold_tokens', '1')")
    for (const more of [[], ['--dry-run']]) {
      const { code, err } = await migrate(folder, database.place, ...more)
      expect(code).toBe(1)
      expect(err).toContain('is not empty, and not a copy of the present database:')
      // 500,000, of which the second of the six tokens was charged 250, and 100 for its open call.
      expect(err).toContain('  tokens 2 has another remain_quota (499650 here, 1 there)\n')
      expect(err).toContain('  users 3 has another password_hash\n')
      expect(err).toContain('  stored_settings "options", "hold_tokens" exists in the target alone\n')
    }
    expect(await database.sql('SELECT remain_quota FROM tokens WHERE id = 2')).toEqual([{ remain_quota: 1 }])
  })

  test('sluice migrate fails with the differences if the copy differs from the source, and leaves the source unchanged', async () => {
    const folder = await filledFolder({ ...FEW, openHolds: 0 })
    const database = await engine.database()
    expect((await migrate(folder, database.place)).code).toBe(0)
    await database.sql('DELETE FROM usage_log')
    await database.sql(`CREATE FUNCTION skim() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF NEW.quota = 900 THEN NEW.quota := 899; END IF; RETURN NEW; END'`)
    await database.sql('CREATE TRIGGER skim BEFORE INSERT ON usage_log FOR EACH ROW EXECUTE FUNCTION skim()')
    const before = embeddedRows(folder, 'SELECT * FROM users')
    const { code, err, out } = await migrate(folder, database.place)
    expect(code).toBe(1)
    expect(out).not.toContain('All rows are equal')
    expect(err).toMatch(/ usage_log "[0-9a-f-]{36}" has another quota \(900 here, 899 there\)\n/)
    expect(err).toContain('  charged in the usage log: 1300 here, 1299 there\n')
    expect(err).toMatch(
      / user 3: \d+ left and 931 used \(931 in the log, 931 in daily sums\) here, .*930 in the log/,
    )
    expect(err).toContain('The source is unchanged')
    expect(embeddedRows(folder, 'SELECT * FROM users')).toEqual(before)
  })

  test('sluice migrate is refused if source or target has another secret', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    const to = ['migrate', '--to', database.place]
    const other = await sluice(to, { DATA_DIR: folder, GATEWAY_SECRET: 'not-the-secret-of-this' })
    expect(other).toMatchObject({ code: 1 })
    expect(other.err).toContain('was made with another secret')
    const none = await sluice(to, { DATA_DIR: folder })
    expect(none.err).toContain('holds no file "secret": set GATEWAY_SECRET')
    expect(existsSync(join(folder, 'secret'))).toBe(false)
    await (await database.open(deriveSecrets('the-secret-of-somebody-else'))).close()
    const there = await migrate(folder, database.place)
    expect(there).toMatchObject({ code: 1 })
    expect(there.err).toContain('was made with another GATEWAY_SECRET than this gateway')
  })

  test('sluice migrate takes a target for empty that has only views and what a killed first start left', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    await database.sql('CREATE VIEW sizes AS SELECT 1 AS size')
    await database.sql(
      'CREATE TABLE kysely_migration (name varchar(255) PRIMARY KEY, timestamp varchar(255))',
    )
    expect(await migrate(folder, database.place)).toMatchObject({ code: 0, err: '' })
  })

  test('sluice migrate refuses a running gateway, a target with tables of another program, and an invalid URL with a message', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    const lock = lockDataFolder(folder, 'gateway')
    const running = await migrate(folder, database.place)
    lock.release()
    expect(running).toMatchObject({ code: 1, out: '' })
    expect(running.err).toContain(`a gateway or a command runs on ${folder}: stop it first`)
    await database.sql('CREATE TABLE users (id integer)')
    const theirs = await migrate(folder, database.place)
    expect(theirs).toMatchObject({ code: 1 })
    expect(theirs.err).toContain("holds tables that are not Sluice's (users): name an empty database")
    for (const url of ['db.example.com', 'mysql://a/b', 'postgres://host']) {
      expect((await migrate(folder, url)).err).toContain('--to: expected a URL such as postgres://')
    }
    const nobody = await migrate(folder, 'postgres://nobody:hidden@127.0.0.1:1/sluice')
    expect(nobody).toMatchObject({ code: 1 })
    expect(nobody.err).toMatch(/^sluice: the database cannot be reached: /)
    expect(nobody.err).not.toContain('hidden')
    expect(embeddedRows(folder, 'SELECT count(*) AS open FROM holds')).toEqual([{ open: 2 }])
  })
})

/** A moment during the copy: the table has at least this number of rows. */
interface Moment {
  readonly table: string
  readonly rows: number
}

const isReached = ({ table, rows }: Moment): string => `(SELECT count(*) >= ${rows} FROM ${table})`

/** Slows down every insertion after this moment, so that a kill happens then; the copy before it is fast. */
async function lingerFrom({ sql }: TestDatabase, moment: Moment): Promise<void> {
  await sql(`CREATE OR REPLACE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN IF ${isReached(moment)} THEN PERFORM pg_sleep(0.15); END IF; RETURN NULL; END'`)
}

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))(
  'a move to $name that is killed',
  (engine) => {
    const MANY: Filling = {
      users: 4,
      tokensEach: 3,
      charges: Array.from({ length: 2300 }, (_, index) => index % 97),
      openHolds: 3,
    }
    // The progress of the copy when it is killed: the last table is the sums, in pages of 100.
    const MOMENTS = [
      { table: 'users', rows: 1 },
      { table: 'sessions', rows: 1 },
      { table: 'usage_log', rows: 2000 },
      { table: 'usage_sums', rows: 100 },
    ] as const

    test('sluice migrate that is killed at any moment and run again has the same result', async () => {
      const folder = await filledFolder(MANY)
      const database = await engine.database()
      await (await database.open(SECRETS)).close()
      await lingerFrom(database, MOMENTS[0])
      for (const { name } of COPIED_TABLES) {
        await database.sql(`CREATE TRIGGER linger AFTER INSERT ON ${name} EXECUTE FUNCTION linger()`)
      }
      const left: unknown[] = []
      for (const moment of MOMENTS) {
        await lingerFrom(database, moment)
        const child = spawn(process.execPath, ['bin/sluice.mjs', 'migrate', '--to', database.place], {
          cwd: await programFolder(),
          stdio: 'ignore',
          env: { ...BASE_ENVIRONMENT, DATA_DIR: folder, GATEWAY_SECRET: SECRET },
        })
        const gone = once(child, 'exit')
        await expect
          .poll(() => database.sql(`SELECT ${isReached(moment)} AS is_reached`), {
            timeout: 60_000,
            interval: 10,
          })
          .toEqual([{ is_reached: true }])
        child.kill('SIGKILL')
        left.push(await gone)
      }
      expect(left).toEqual(MOMENTS.map(() => [null, 'SIGKILL']))
      for (const { name } of COPIED_TABLES) await database.sql(`DROP TRIGGER linger ON ${name}`)
      const outcome = await migrate(folder, database.place, '--json')
      expect(outcome).toMatchObject({ code: 0, err: '' })
      const told = outcome.json() as MigrationReport
      expect(told.verified).toBe(true)
      // Open calls were settled by the first run, before it was killed.
      expect(told.open_calls).toEqual({ count: 0, quota: 0 })
      const { here, there } = await both(folder, database)
      expect(there).toEqual(here)
    })
  },
)

test('every table of the database is either copied by sluice migrate or listed as not copied', async () => {
  const folder = await filledFolder({ users: 1, tokensEach: 1, charges: [], openHolds: 0 })
  const tables = embeddedRows(folder, "SELECT name FROM sqlite_schema WHERE type = 'table'")
  const ours = tables.map(({ name }) => String(name)).filter((name) => !/^(?:sqlite|kysely)_/.test(name))
  // PostgreSQL has no `unsummed_calls`: the sums are complete before a copy.
  expect(ours.toSorted()).toEqual(
    [
      ...COPIED_TABLES.map(({ name }) => name),
      ...TABLES_NOT_COPIED,
      'unsummed_calls',
      'sums_watermark',
    ].toSorted(),
  )
})
