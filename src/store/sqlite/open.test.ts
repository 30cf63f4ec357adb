import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import {
  holdOf,
  newToken,
  newUser,
  openedStore,
  SECRETS,
  settledCall,
  storeWithAccount,
  temporaryFolder,
} from '../../../test/stores/rows.ts'
import { GatewayError } from '../../errors.ts'
import { deriveSecrets, hashKey } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { openSqliteStore } from './open.ts'

/**
 * Counts the commits in the write-ahead log: frames that end a transaction (they state the size of the
 * database) and carry the log's current salt.
 * https://sqlite.org/fileformat2.html#walformat
 */
function commitsIn(path: string): number {
  const log = readFileSync(`${path}-wal`)
  // Nothing was written since the file was created.
  if (log.length === 0) return 0
  const pageSize = log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let frame = 32; frame < log.length; frame += 24 + pageSize) {
    if (log.readUInt32BE(frame + 4) > 0 && log.subarray(frame + 8, frame + 16).equals(salt)) commits += 1
  }
  return commits
}

// Operations queued in a turn of the event loop are posted after it.
const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

describe('group commit', () => {
  test('database writes that arrive during a commit share the next commit', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const before = commitsIn(path)
    const first = store.write('hold', holdOf(who, 'first'))
    await endOfTurn()
    const later = Array.from({ length: 100 }, (_, index) => store.write('hold', holdOf(who, `id-${index}`)))
    await Promise.all([first, ...later])
    // One batch is in flight; the hundred operations that arrive during it form the next.
    expect(commitsIn(path) - before).toBe(2)
  })

  test('a single database write is committed alone, without waiting for others', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const before = commitsIn(path)
    for (let index = 0; index < 5; index += 1) await store.write('hold', holdOf(who, `id-${index}`))
    expect(commitsIn(path) - before).toBe(5)
  })

  test('a batch of database writes has at most 500 operations', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const before = commitsIn(path)
    await Promise.all(
      Array.from({ length: 1202 }, (_, index) => store.write('hold', holdOf(who, `id-${index}`))),
    )
    // Batches of 500, 500 and 202.
    expect(commitsIn(path) - before).toBe(3)
  })

  test('an acknowledged write is visible to another connection at once', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const other = new DatabaseSync(path, { readOnly: true })
    const count = other.prepare('SELECT count(*) AS n FROM holds')
    for (let index = 1; index <= 20; index += 1) {
      await store.write('hold', holdOf(who, `id-${index}`))
      expect(count.get()).toEqual({ n: index })
    }
    other.close()
  })
})

describe('the queue', () => {
  test('database operations of all kinds, even failing ones, are answered in the order in which they were requested', async () => {
    const { store, userId, tokenId, who } = await storeWithAccount(undefined, 'own')
    const order: number[] = []
    const note = (place: number) => () => void order.push(place)
    await Promise.all([
      store.write('hold', holdOf(who, 'a')).then(note(0)),
      store.write('createToken', newToken(userId, { name: 'n', key: 'k2' })).then(note(1)),
      store.write('hold', holdOf(who, 'a')).catch(note(2)),
      store.write('settle', settledCall(who, 'a')).then(note(3)),
      store.write('createUser', newUser()).catch(note(4)),
      store.write('loadAccount', { tokenId }).then(note(5)),
      store.write('markProgress', { id: 'a', user_id: 1, amount: 1 }).then(note(6)),
    ])
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6])
  })

  test('the store counts the queued writes that are not on the disk yet', async () => {
    const { store, who } = await storeWithAccount(undefined, 'own')
    expect(store.queued).toBe(0)
    const writes = [store.write('hold', holdOf(who, 'a')), store.write('hold', holdOf(who, 'b'))]
    expect(store.queued).toBe(2)
    await Promise.all(writes)
    expect(store.queued).toBe(0)
  })

  test('a failing database operation writes nothing, and operations in the same batch succeed', async () => {
    const { store, userId, who } = await storeWithAccount(undefined, 'own')
    const results = await Promise.allSettled([
      store.write('hold', holdOf(who, 'first')),
      store.write('hold', holdOf(who, 'a')),
      store.write('hold', holdOf(who, 'a')),
      store.write('hold', holdOf({ userId, tokenId: 99 }, 'b')),
      // The user is created before its tokens are refused; neither may remain.
      store.write('seedUsers', {
        nowSeconds: 1,
        seeds: [
          {
            id: undefined,
            username: 'eve',
            role: 1,
            status: undefined,
            group: 'default',
            quota: 5,
            access_token: undefined,
            tokens: [newToken(0, { key: 'k1' }) as never],
          },
        ],
      }),
      store.write('hold', holdOf(who, 'c')),
    ])
    expect(results.map((result) => result.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect(await store.read('userByName', 'eve')).toBeNull()
    expect((await store.read('findUnbalancedAccounts')).openHolds).toEqual({ count: 3, amount: 3000 })
  })

  test('a database operation whose input cannot be sent to the database thread is rejected, and later operations succeed', async () => {
    const { store, who } = await storeWithAccount(undefined, 'own')
    const uncloneable = { ...holdOf(who, 'a'), id: (() => 'a') as never }
    await expect(store.write('hold', uncloneable)).rejects.toThrow(/could not be cloned/)
    await store.write('hold', holdOf(who, 'b'))
  })

  test('an error in the database thread reaches the caller with its class and code', async () => {
    const { store } = await storeWithAccount(undefined, 'own')
    const error: unknown = await store.write('createUser', newUser()).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ code: 'invalid_request', message: 'there is a user "ada" already' })
  })

  test('text with the character NUL is refused in all database operations', async () => {
    const { store, userId, who } = await storeWithAccount(undefined, 'own')
    await expect(store.write('hold', holdOf(who, 'a', { model: 'm\0x' }))).rejects.toThrow(/NUL/)
    await expect(store.write('createToken', newToken(userId, { name: 'n\0', key: 'k2' }))).rejects.toThrow(
      /NUL/,
    )
    expect(await store.read('listTokensWithKeys', { userId })).toHaveLength(1)
  })
})

describe('a database that cannot be written', () => {
  test('a database that cannot be written rejects writes with StoreUnavailable, until it can be written again', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    const refused = store.write('hold', holdOf(who, 'a')).catch((error: unknown) => error)
    await endOfTurn()
    const waiting = store.write('hold', holdOf(who, 'b'))
    const error = await refused
    other.exec('ROLLBACK')
    other.close()
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect((error as Error).message).toMatch(/locked by another program/)
    expect((error as Error).cause).toBeInstanceOf(Error)
    await waiting
    expect((await store.read('findUnbalancedAccounts')).openHolds.count).toBe(1)
  })

  test('a database cannot be opened without its folder, and the error says why', async () => {
    const path = join(temporaryFolder(), 'none', 'sluice.db')
    await expect(openSqliteStore({ path, secrets: SECRETS })).rejects.toThrow(/ENOENT.*none/)
  })
})

describe('closing', () => {
  test('closing the database waits for all queued operations, and refuses later ones', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    const writes = Array.from({ length: 700 }, (_, index) => store.write('hold', holdOf(who, `id-${index}`)))
    const closed = store.close()
    await expect(store.write('hold', holdOf(who, 'late'))).rejects.toBeInstanceOf(StoreUnavailable)
    await closed
    await Promise.all(writes)
    await expect(store.read('countUsers')).rejects.toBeInstanceOf(StoreUnavailable)
    // The log was merged into the file.
    expect(readdirSync(dirname(path))).toEqual(['sluice.db'])
    const again = await openedStore(path, 'own')
    expect((await again.read('findUnbalancedAccounts')).openHolds.count).toBe(700)
  })
})

describe('keys at rest', () => {
  test('the database files contain no plain key or access token, and only their owner may read them', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const store = await openedStore(path, 'own')
    const user = await store.write('createUser', newUser({ accessToken: 'PlainAccessToken' }))
    const token = await store.write('createToken', newToken(user.id, { key: 'PlainKey0123456789' }))
    for (const name of readdirSync(dirname(path))) {
      const file = join(dirname(path), name)
      const bytes = readFileSync(file)
      expect(bytes.includes('PlainKey0123456789')).toBe(false)
      expect(bytes.includes('PlainAccessToken')).toBe(false)
      expect(statSync(file).mode & 0o077).toBe(0)
    }
    // The search finds other texts, so that it would find the keys, too.
    expect(readFileSync(`${path}-wal`).includes('ada')).toBe(true)
    expect(await store.read('revealKey', { tokenId: token.id, userId: user.id })).toBe('PlainKey0123456789')
  })

  test('a SQLite database is refused with advice if GATEWAY_SECRET is another one, and still opens with the right one', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    await (await openSqliteStore({ path, secrets: SECRETS })).close()
    const other = deriveSecrets('not the secret it was made with')
    await expect(openSqliteStore({ path, secrets: other })).rejects.toThrow(/another secret.*GATEWAY_SECRET/)
    const store = await openSqliteStore({ path, secrets: SECRETS })
    await store.close()
  })
})

const IMPORTS = `
  import { registerHooks } from 'node:module'
  const seen = []
  registerHooks({
    resolve(specifier, parent, next) {
      seen.push(specifier)
      return next(specifier, parent)
    },
  })
  await import(process.argv[1])
  console.log(JSON.stringify(seen))
`

test("the gateway's main thread loads neither Kysely nor node:sqlite", () => {
  const open = new URL('./open.ts', import.meta.url).href
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', IMPORTS, open], {
    encoding: 'utf8',
    timeout: 240_000,
  })
  const specifiers = JSON.parse(said) as string[]
  expect(specifiers).toContain('./database-thread.ts')
  expect(specifiers.filter((specifier) => /kysely|sqlite$|operations/.test(specifier))).toEqual([])
})

const CALLS = `
  import { registerHooks } from 'node:module'
  const seen = []
  registerHooks({
    resolve(specifier, parent, next) {
      seen.push(specifier)
      return next(specifier, parent)
    },
  })
  const [sources, path, operations] = process.argv.slice(1)
  const from = (file) => import(new URL(file, sources).href)
  const { openForWriting } = await from('sqlite/connection.ts')
  const { prepareDatabase } = await from('sqlite/prepare-database.ts')
  const { WriteBatches } = await from('sqlite/write-batch.ts')
  const { deriveSecrets } = await from('secrets.ts')
  const secrets = deriveSecrets('a secret that only tests know')
  const db = openForWriting(path)
  await prepareDatabase(db, secrets)
  const { outcomes } = await new WriteBatches(db, secrets).write(JSON.parse(operations))
  console.log(JSON.stringify({ seen, outcomes }))
`

test('a start on an up-to-date database and calls of existing users do not load Kysely', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const store = await openSqliteStore({ path, secrets: SECRETS })
  const seeds = [{ ...newUser(), tokens: [{ ...newToken(1), status: 1 }] }]
  await store.write('seedUsers', { seeds: seeds as never, nowSeconds: 1_760_000_000 })
  await store.close()
  const who = { userId: 1, tokenId: 1 }
  const operations = [
    ['countUsers', undefined],
    ['storedConfiguration', undefined],
    ['pendingDeclaredUsers', { seeds }],
    ['recover', { owner: 'now', nowMs: 1 }],
    ['tokenByKeyHash', hashKey(SECRETS, 'k1')],
    ['loadAccount', { tokenId: 1 }],
    ['hold', holdOf(who, 'a')],
    ['settle', settledCall(who, 'a')],
    ['prune', { beforeMs: 1, limit: 1 }],
  ]
  const sources = new URL('../', import.meta.url).href
  const said = execFileSync(
    process.execPath,
    ['--input-type=module', '-e', CALLS, sources, path, JSON.stringify(operations)],
    { encoding: 'utf8', timeout: 240_000 },
  )
  const { seen, outcomes } = JSON.parse(said) as { seen: string[]; outcomes: unknown[] }
  expect(outcomes).toMatchObject([
    { value: 1 },
    { value: { channels: [], entries: [] } },
    { value: [] },
    { value: { count: 0 } },
    { value: { token: { id: 1 }, user: { username: 'ada' } } },
    { value: { token: { id: 1 } } },
    null,
    null,
    { value: { rows: 0 } },
  ])
  expect(seen).toContain('./ledger-rows.ts')
  expect(seen.filter((specifier) => /kysely|operations/.test(specifier))).toEqual([])
})
