import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { readEnvironment } from '../../src/config/environment.ts'
import { changeSecretOf } from '../../src/gateway/control/change-secret.ts'
import { SEALED_TABLES } from '../../src/store/secret-change/sealed-tables.ts'
import { sealLookupKey } from '../../src/store/secret-state.ts'
import { deriveSecrets, hashKey, seal } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { TABLES } from '../../src/store/tables.ts'
import { type Outcome, sluice } from '../fixtures/command.ts'
import { startGateway } from '../fixtures/gateway.ts'
import {
  columnsSealedWith,
  dataKey,
  expectReadable,
  expectSignedOut,
  fillWithSealed,
  NEW_SECRET,
  OLD_SECRET,
} from '../stores/secret-change.ts'
import { ENGINES, type Engine, type TestDatabase } from '../stores/engines.ts'
import { familyDatabase } from '../stores/family-database.ts'
import { temporaryFolder } from '../stores/rows.ts'

const TOKENS = 3
const OLD = deriveSecrets(OLD_SECRET)
const NEW = deriveSecrets(NEW_SECRET)
const BOTH = { GATEWAY_SECRET: OLD_SECRET, GATEWAY_SECRET_NEW: NEW_SECRET }

async function filled(engine: Engine): Promise<{ database: TestDatabase; dataDir: string }> {
  const database = await engine.database()
  const store = await database.open(deriveSecrets(OLD_SECRET))
  await fillWithSealed(store, TOKENS)
  await store.close()
  return { database, dataDir: temporaryFolder() }
}

type Filled = Awaited<ReturnType<typeof filled>>

const urlOf = (database: TestDatabase): string =>
  database.place.startsWith('postgres') ? database.place : `sqlite:${database.place}`

function change(
  { database, dataDir }: Filled,
  env: Record<string, string>,
  ...args: string[]
): Promise<Outcome> {
  return sluice(['secret', 'change', ...args], { DATA_DIR: dataDir, DATABASE_URL: urlOf(database), ...env })
}

/** Begins a change, of which nothing is encrypted anew yet, as if the command was killed then. */
async function begin({ database }: Filled): Promise<void> {
  const cipher = sealLookupKey(OLD, NEW)
  await database.sql(
    `insert into secret_state (id, next_check, lookup_cipher) values (1, '${NEW.check}', '${cipher}')`,
  )
}

describe.each(ENGINES)('sluice secret change on $name', (engine) => {
  test('after the change, everything is readable with the new secret alone, and nothing is encrypted with the old one', async () => {
    const one = await filled(engine)
    const before = await columnsSealedWith(one.database, OLD)
    expect(before).toEqual(SEALED_TABLES.map(({ table, column }) => `${table}.${column}`).toSorted())
    const done = await change(one, BOTH, '--json')
    expect([done.code, done.err]).toEqual([0, ''])
    expect(done.json()).toMatchObject({ finished: true, unreadable: [], nodes: [] })
    expect(await columnsSealedWith(one.database, OLD)).toEqual([])
    expect(await columnsSealedWith(one.database, NEW)).toEqual(
      [...before, 'secret_state.lookup_cipher'].toSorted(),
    )
    const secrets = deriveSecrets(NEW_SECRET)
    const store = await one.database.open(secrets)
    await expectReadable(store, secrets, TOKENS)
    await expectSignedOut(store)
    expect(
      (await store.read('auditPage', { filter: { kind: 'secret' }, offset: 0, limit: 9 })).entries,
    ).toMatchObject([
      { action: 'secret.finish', via: 'command' },
      { action: 'secret.change', via: 'command' },
    ])
    await store.close()
    await expect(one.database.open(deriveSecrets(OLD_SECRET))).rejects.toThrow('another secret')
  })

  test('after two changes, access tokens and sessions from before the first one are still valid', async () => {
    const one = await filled(engine)
    expect((await change(one, BOTH)).code).toBe(0)
    const third = 'a-third-secret-0123456789'
    const again = { GATEWAY_SECRET: NEW_SECRET, GATEWAY_SECRET_NEW: third }
    expect((await change(one, again)).code).toBe(0)
    expect(await columnsSealedWith(one.database, NEW)).toEqual([])
    const secrets = deriveSecrets(third)
    const store = await one.database.open(secrets)
    await expectReadable(store, secrets, TOKENS)
    await store.close()
  })

  test('between the steps, an import reads with both secrets, and finds a key that the old one has encrypted', async () => {
    const one = await filled(engine)
    await begin(one)
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('users', {
      id: 7,
      username: 'zoe',
      password: 'x',
      status: 1,
      role: 1,
      group: 'default',
    })
    const token = { user_id: 7, status: 1, expired_time: -1, unlimited_quota: true }
    await source.insert('tokens', { ...token, id: 1, key: 'key0', name: 'known' })
    await source.insert('tokens', { ...token, id: 2, key: 'key9', name: 'unknown' })
    const env = { DATA_DIR: one.dataDir, DATABASE_URL: urlOf(one.database), ...BOTH }
    for (const order of [[], ['--apply']]) {
      const done = await sluice(['import', source.place, '--json', ...order], env)
      expect([done.code, done.err]).toEqual([0, ''])
      expect(done.json()).toMatchObject({ summary: { token: { there: 1, left: 0 } } })
    }
    expect((await change(one, BOTH)).code).toBe(0)
    expect(await columnsSealedWith(one.database, OLD)).toEqual([])
    const secrets = deriveSecrets(NEW_SECRET)
    const store = await one.database.open(secrets)
    expect((await store.read('tokenByKeyHash', hashKey(secrets, 'key9')))?.token.name).toBe('unknown')
    await store.close()
  })

  test('a value that could not be decrypted before is named, and does not stop the change', async () => {
    const one = await filled(engine)
    await one.database.sql("update channels set keys_cipher = 'v1.00000000.AAAA'")
    const done = await change(one, BOTH, '--json')
    expect([done.code, done.json()]).toMatchObject([0, { finished: true, unreadable: ['channels 1'] }])
  })

  test('a value that a suspended node wrote with the old secret after the change is encrypted anew by a second run', async () => {
    const one = await filled(engine)
    await change(one, BOTH)
    const late = seal(OLD, 'https://id.example.com/end', { table: 'sessions', row: 'h' })
    await one.database.sql(
      `update sessions set id_hash = 'h', logout_cipher = '${late}' where logout_cipher is not null`,
    )
    expect((await change(one, BOTH, '--json')).json()).toMatchObject({ finished: true, resealed: 1 })
    expect(await columnsSealedWith(one.database, OLD)).toEqual([])
  })

  test('a second run after the change has nothing to do, and --finish without a change is refused', async () => {
    const one = await filled(engine)
    expect((await change(one, BOTH, '--finish')).err).toContain('no change of the secret is under way')
    await change(one, BOTH)
    const done = await change(one, BOTH, '--json')
    expect([done.code, done.json()]).toEqual([0, { finished: true, resealed: 0, unreadable: [], nodes: [] }])
  })
})

describe('the secrets that sluice secret change accepts', () => {
  const [engine] = ENGINES as [Engine]

  test.each([
    ['without a new secret', { GATEWAY_SECRET: OLD_SECRET }, 'set GATEWAY_SECRET_NEW'],
    ['the same secret', { ...BOTH, GATEWAY_SECRET_NEW: OLD_SECRET }, 'is the present secret'],
    [
      'the same secret and a line break',
      { ...BOTH, GATEWAY_SECRET_NEW: `${OLD_SECRET}\n` },
      'only by white space at its end',
    ],
    [
      'a new secret that ends with a space',
      { ...BOTH, GATEWAY_SECRET_NEW: `${NEW_SECRET} ` },
      'ends with white space',
    ],
    [
      'a new secret of 15 characters',
      { ...BOTH, GATEWAY_SECRET_NEW: 'fifteen letters' },
      'at least 16 characters',
    ],
    ['another old secret', { ...BOTH, GATEWAY_SECRET: 'not the old secret' }, 'another secret'],
    [
      'the old secret and a line break',
      { ...BOTH, GATEWAY_SECRET: `${OLD_SECRET}\n` },
      'only by white space at its end',
    ],
  ])('%s is refused by name, and nothing changes', async (_, env, expected) => {
    const one = await filled(engine)
    const before = await columnsSealedWith(one.database, OLD)
    const { code, err } = await change(one, env)
    expect([code, err]).toEqual([1, expect.stringContaining(expected)])
    expect(await columnsSealedWith(one.database, OLD)).toEqual(before)
  })

  test.each(['\n', '\r\n', ' ', '\t'])(
    'a start with the secret of the database and %j at its end says so',
    async (space) => {
      const { database } = await filled(engine)
      await expect(database.open(deriveSecrets(OLD_SECRET + space))).rejects.toThrow(
        'only by white space at its end',
      )
    },
  )

  test('a database between two secrets is not migrated, with a sentence that says so', async () => {
    const [, postgres] = ENGINES
    if (!postgres) return
    const one = await filled(engine)
    await begin(one)
    const to = (await postgres.database()).place
    const env = { DATA_DIR: one.dataDir, DATABASE_URL: urlOf(one.database), ...BOTH }
    for (const order of [['--dry-run'], []]) {
      const { code, err } = await sluice(['migrate', '--to', to, ...order], env)
      expect([code, err]).toEqual([1, expect.stringContaining('is being changed: end the change first')])
    }
  })

  test('a secret in the data folder is replaced there, last, and data keys of the content log are encrypted anew', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
    const path = join(dataDir, 'sluice.db')
    const store = await openSqliteStore({ path, secrets: deriveSecrets(OLD_SECRET), onCallingThread: true })
    await fillWithSealed(store, 1)
    await store.close()
    mkdirSync(join(dataDir, 'content'))
    const keys = new DatabaseSync(join(dataDir, 'content', 'keys.db'))
    keys.exec('CREATE TABLE data_keys (id TEXT PRIMARY KEY, cipher TEXT)')
    keys.prepare("INSERT INTO data_keys VALUES ('k1', ?)").run(dataKey.cipher(OLD))
    const { code } = await sluice(['secret', 'change'], { DATA_DIR: dataDir, GATEWAY_SECRET_NEW: NEW_SECRET })
    expect(code).toBe(0)
    expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(NEW_SECRET)
    expect(existsSync(join(dataDir, 'secret.new'))).toBe(false)
    const cipher = String(keys.prepare('SELECT cipher FROM data_keys').get()?.['cipher'])
    keys.close()
    expect(dataKey.plain(deriveSecrets(NEW_SECRET), cipher)).toBe('the data key')
    expect(await sluice(['user', 'list'], { DATA_DIR: dataDir })).toMatchObject({ code: 0 })
  })

  test('secrets that were replaced in the data folder stay there, for the backups from before', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
    const path = join(dataDir, 'sluice.db')
    const store = await openSqliteStore({ path, secrets: deriveSecrets(OLD_SECRET), onCallingThread: true })
    await fillWithSealed(store, TOKENS)
    await store.close()
    const backup = join(temporaryFolder(), 'sluice.db')
    cpSync(path, backup)
    const kept = (secret: string) => join(dataDir, `secret.old-${deriveSecrets(secret).keyId}`)
    const env = { DATA_DIR: dataDir, GATEWAY_SECRET_NEW: NEW_SECRET }
    const done = await sluice(['secret', 'change'], env)
    expect([done.code, done.out]).toEqual([0, expect.stringContaining(kept(OLD_SECRET))])
    const again = { ...env, GATEWAY_SECRET_NEW: 'a-third-secret-0123456789' }
    const report = await sluice(['secret', 'change', '--json'], again)
    expect(report.json()).toMatchObject({ old_secret_file: kept(NEW_SECRET) })
    for (const secret of [OLD_SECRET, NEW_SECRET])
      expect([readFileSync(kept(secret), 'utf8'), statSync(kept(secret)).mode & 0o777]).toEqual([
        `${secret}\n`,
        0o600,
      ])
    expect(readdirSync(dataDir).filter((name) => name.startsWith('secret'))).toHaveLength(3)
    const secrets = deriveSecrets(readFileSync(kept(OLD_SECRET), 'utf8').trim())
    const before = await openSqliteStore({ path: backup, secrets, onCallingThread: true })
    await expectReadable(before, secrets, TOKENS)
    await before.close()
  })

  test('a start and a command do not fail where the end of an interrupted change does, and the start that ends it says where the old secret is', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
    writeFileSync(join(dataDir, 'secret.new'), `${NEW_SECRET}\n`, { mode: 0o600 })
    const path = join(dataDir, 'sluice.db')
    const store = await openSqliteStore({ path, secrets: NEW, onCallingThread: true })
    await fillWithSealed(store, TOKENS)
    await store.close()
    const kept = join(dataDir, `secret.old-${OLD.keyId}`)
    // A folder of that name cannot be replaced by a file.
    mkdirSync(kept)
    expect(await sluice(['user', 'list'], { DATA_DIR: dataDir })).toMatchObject({ code: 0, err: '' })
    const gateway = await startGateway({ config: {}, dataDir, env: { GATEWAY_SECRET: '' } })
    await expect.poll(() => gateway.logs()).toContain('the file of the secret cannot be replaced yet')
    await gateway.stop()
    rmdirSync(kept)
    await gateway.restart()
    await expect.poll(() => gateway.logs()).toContain(`which is in ${kept}`)
    expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(NEW_SECRET)
    await gateway.discard()
  })

  test('an interrupted change is not ended with another new secret, which would replace the only copy of the first, but without one', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
    const store = await openSqliteStore({
      path: join(dataDir, 'sluice.db'),
      secrets: OLD,
      onCallingThread: true,
    })
    await fillWithSealed(store, TOKENS)
    await store.close()
    const env = { DATA_DIR: dataDir, GATEWAY_SECRET_NEW: NEW_SECRET }
    const interrupt = () => {
      throw new Error('interrupted')
    }
    const interrupted = changeSecretOf({
      environment: readEnvironment(env),
      finish: false,
      onProgress: interrupt,
    })
    await expect(interrupted).rejects.toThrow('interrupted')
    const again = await sluice(['secret', 'change'], {
      ...env,
      GATEWAY_SECRET_NEW: 'a-third-secret-0123456789',
    })
    expect([again.code, again.err]).toEqual([
      1,
      expect.stringContaining('run the command without GATEWAY_SECRET_NEW'),
    ])
    expect(readFileSync(join(dataDir, 'secret.new'), 'utf8').trim()).toBe(NEW_SECRET)
    expect(await sluice(['secret', 'change'], { DATA_DIR: dataDir })).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(NEW_SECRET)
    const secrets = deriveSecrets(NEW_SECRET)
    const changed = await openSqliteStore({
      path: join(dataDir, 'sluice.db'),
      secrets,
      onCallingThread: true,
    })
    await expectReadable(changed, secrets, TOKENS)
    await changed.close()
  })

  test.each([
    ['made', () => {}],
    [
      'interrupted',
      () => {
        throw new Error('interrupted')
      },
    ],
  ])(
    'a change that was %s with GATEWAY_SECRET is brought to the data folder by a run without it',
    async (_, onProgress) => {
      const dataDir = temporaryFolder()
      writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
      const store = await openSqliteStore({
        path: join(dataDir, 'sluice.db'),
        secrets: OLD,
        onCallingThread: true,
      })
      await fillWithSealed(store, TOKENS)
      await store.close()
      const env = { DATA_DIR: dataDir, GATEWAY_SECRET_NEW: NEW_SECRET }
      const environment = readEnvironment({ ...env, GATEWAY_SECRET: OLD_SECRET })
      await changeSecretOf({ environment, finish: false, onProgress }).catch(() => {})
      expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(OLD_SECRET)
      expect((await sluice(['secret', 'change'], env)).code).toBe(0)
      expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(NEW_SECRET)
      expect(await sluice(['user', 'list'], { DATA_DIR: dataDir })).toMatchObject({ code: 0 })
    },
  )

  test('a change that is refused before it begins leaves no new secret in the data folder', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'secret'), 'not the old secret\n', { mode: 0o600 })
    const store = await openSqliteStore({
      path: join(dataDir, 'sluice.db'),
      secrets: OLD,
      onCallingThread: true,
    })
    await store.close()
    const { err } = await sluice(['secret', 'change'], { DATA_DIR: dataDir, GATEWAY_SECRET_NEW: NEW_SECRET })
    expect(err).toContain('another secret')
    expect(existsSync(join(dataDir, 'secret.new'))).toBe(false)
  })
})

test('every encrypted column of the schema belongs to those that a change of the secret encrypts anew', () => {
  const declared = Object.entries(TABLES).flatMap(([table, { columns }]) =>
    Object.keys(columns).flatMap((column) => (column.endsWith('_cipher') ? [`${table}.${column}`] : [])),
  )
  const known = new Set(SEALED_TABLES.map(({ table, column }) => `${table}.${column}`))
  expect(declared.filter((name) => !known.has(name))).toEqual(['secret_state.lookup_cipher'])
})
