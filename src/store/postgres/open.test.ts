import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  ENGINES,
  openedRows,
  PATIENCE_MS,
  rowsWithAccount,
  type TestDatabase,
} from '../../../test/stores/engines.ts'
import { keptEntry, keptStore } from '../../../test/stores/kept.ts'
import { newToken, newUser, SECRETS } from '../../../test/stores/rows.ts'
import { GatewayError } from '../../errors.ts'
import { deriveSecrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { RowStore } from '../store.ts'
import { openPostgresStore } from './open.ts'

/** Repeats a write that a busy machine gave no connection in time. */
async function withConnection<Result>(write: () => Promise<Result>): Promise<Result> {
  for (;;)
    try {
      return await write()
    } catch (error) {
      const isBusy =
        error instanceof StoreUnavailable && /timeout exceeded when trying to connect/.test(error.message)
      if (!isBusy) throw error
    }
}

/** Runs `work` while a transaction such as a report of a node has changed all users and has not ended. */
async function withTablesInUse({ place }: TestDatabase, work: () => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: place })
  await client.connect()
  try {
    await client.query('begin; update users set used_quota = used_quota')
    await work()
  } finally {
    await client.end()
  }
}

/** Two nodes on a database, which wait for locks as long as a slow machine may take. */
async function nodesOn({ place }: TestDatabase): Promise<readonly RowStore[]> {
  const url = `${place}?lock_timeout=${PATIENCE_MS}&statement_timeout=${PATIENCE_MS}`
  const open = () => openPostgresStore({ url, secrets: SECRETS, timeoutMs: PATIENCE_MS })
  const nodes = await Promise.all([open(), open()])
  onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))))
  return nodes
}

/** A connection like that of a node that changes keys of a user, until it ends. */
async function changingKeysOf(userId: number, { place }: TestDatabase): Promise<Client> {
  const client = new Client({ connectionString: place })
  await client.connect()
  await client.query(`select pg_advisory_lock(hashtextextended('sluice keys of user ${userId}', 0))`)
  return client
}

const HERE = ENGINES.filter(({ name }) => name === 'PostgreSQL')

describe.each(HERE)('the store on $name', (engine) => {
  test('simultaneous writes to PostgreSQL have the effect of consecutive ones: no id twice, no name twice', async () => {
    const { store } = await openedRows(engine)
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        withConnection(() => store.write('createUser', newUser({ username: `user-${index}` }))),
      ),
    )
    expect(made.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, index) => index + 1),
    )
    const results = await Promise.allSettled(
      Array.from({ length: 6 }, () =>
        withConnection(() => store.write('createUser', newUser({ username: 'wanted by all' }))),
      ),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(GatewayError)
    }
  })

  test('an empty PostgreSQL database can be opened by several processes at once', async () => {
    const database = await engine.database()
    const stores = await Promise.all([database.open(), database.open(), database.open()])
    for (const store of stores) {
      expect(await store.read('countUsers')).toBe(0)
      await store.close()
    }
  })

  test('a quota in PostgreSQL above 2^53 is refused when it is read, and not rounded', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await database.sql('UPDATE users SET quota = 9007199254740993')
    await expect(store.read('userByName', 'ada')).rejects.toThrow(/9007199254740993.*2\^53/)
    // The connection can still be used.
    expect(await store.read('countUsers')).toBe(1)
  })

  test('a database operation that waits too long for a lock in PostgreSQL fails, and later operations succeed', async () => {
    const { database, tokenId } = await rowsWithAccount(engine)
    const store = await openPostgresStore({
      url: `${database.place}?statement_timeout=300`,
      secrets: SECRETS,
    })
    onTestFinished(() => store.close())
    const other = new Client({ connectionString: database.place })
    onTestFinished(() => other.end())
    await other.connect()
    await other.query('begin')
    await other.query('update tokens set name = name')
    const change = { tokenId, status: 2, onlyFrom: 1 } as const
    const error: unknown = await store.write('setTokenStatus', change).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(error).toMatchObject({ message: expect.stringMatching(/took too long/) as unknown })
    await other.query('rollback')
    expect(await store.write('setTokenStatus', change)).toBe(true)
  })

  test('a change of a user or token succeeds although nodes update the same row all the time', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const over = new AbortController()
    const reporting = Array.from({ length: 4 }, async () => {
      const client = new Client({ connectionString: database.place })
      await client.connect()
      while (!over.signal.aborted) {
        await client.query('update users set used_quota = used_quota')
        await client.query('update tokens set used_quota = used_quota')
      }
      await client.end()
    })
    const writes = Array.from({ length: 20 }, (_, index) =>
      withConnection(() =>
        store.write('changeUser', { userId, quota: { mode: 'override', value: index, maxQuota: 1000 } }),
      ),
    )
    const status = withConnection(() => store.write('setTokenStatus', { tokenId, status: 2, onlyFrom: 1 }))
    const results = await Promise.allSettled([...writes, status])
    over.abort()
    await Promise.all(reporting)
    expect(results.filter(({ status: ended }) => ended === 'rejected')).toEqual([])
  })

  test('an entry is kept although other nodes update the size of its share all the time', async () => {
    const { store, database } = await openedRows(engine)
    const kept = keptStore(store)
    await kept.write(keptEntry('cache', 'first'))
    const over = new AbortController()
    const updating = Array.from({ length: 4 }, async () => {
      const client = new Client({ connectionString: database.place })
      await client.connect()
      while (!over.signal.aborted) await client.query('update kept_sums set bytes = bytes')
      await client.end()
    })
    const writes = Array.from({ length: 20 }, (_, index) =>
      withConnection(() => kept.write(keptEntry('cache', `entry ${index}`))),
    )
    const results = await Promise.allSettled(writes)
    over.abort()
    await Promise.all(updating)
    expect(results).toEqual(writes.map(() => ({ status: 'fulfilled', value: true })))
  })

  test('keys that one user makes and deletes at once, on two nodes, wait for no report of a node and lock no table', async () => {
    const { database, userId } = await rowsWithAccount(engine)
    const nodes = await nodesOn(database)
    await withTablesInUse(database, async () => {
      const changes = Array.from({ length: 30 }, async (_, index) => {
        const node = nodes[index % 2]!
        const token = newToken(userId, { key: `atOnce${index}` })
        const { id } = await withConnection(() => node.write('createUserToken', { token, maxTokens: 100 }))
        return withConnection(() => node.write('deleteTokens', { userId, tokenIds: [id], nowSeconds: 1 }))
      })
      const results = await Promise.allSettled(changes)
      expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
    })
  })

  test('key changes of one user that wait for another node leave the connections to the writes of others', async () => {
    const { database, userId } = await rowsWithAccount(engine)
    const [node] = await nodesOn(database)
    const other = await node!.write('createUser', newUser({ username: 'other' }))
    const elsewhere = await changingKeysOf(userId, database)
    const create = (user: number, key: string): Promise<unknown> =>
      node!.write('createUserToken', { token: newToken(user, { key }), maxTokens: 100 })
    const waiting = Array.from({ length: 10 }, (_, index) => create(userId, `waiting${index}`))
    await create(other.id, 'notWaiting')
    await elsewhere.end()
    expect(await Promise.all(waiting)).toHaveLength(10)
  })

  test('a key change that waits too long for another node goes on, because it is right in any order', async () => {
    const { database, userId } = await rowsWithAccount(engine)
    const node = await openPostgresStore({ url: `${database.place}?lock_timeout=50`, secrets: SECRETS })
    onTestFinished(() => node.close())
    const elsewhere = await changingKeysOf(userId, database)
    onTestFinished(() => elsewhere.end())
    const token = newToken(userId, { key: 'inAnyOrder' })
    expect(await node.write('createUserToken', { token, maxTokens: 100 })).toMatchObject({ user_id: userId })
  })

  test('what is kept at once, on two nodes, for one user and in the cache of all, locks no table that reports of nodes need', async () => {
    const { database } = await rowsWithAccount(engine)
    const nodes = (await nodesOn(database)).map((node) => keptStore(node))
    await withTablesInUse(database, async () => {
      const writes = Array.from({ length: 60 }, (_, index) => {
        const entry = keptEntry(index % 4 < 2 ? 'response' : 'cache', `at once ${index}`)
        return withConnection(() => nodes[index % 2]!.write(entry))
      })
      expect(await Promise.allSettled(writes)).toEqual(
        writes.map(() => ({ status: 'fulfilled', value: true })),
      )
    })
  })

  test('each of many refused sign-ins at once, on two nodes, is recorded in the audit log, and locks no table', async () => {
    const { database } = await rowsWithAccount(engine)
    const nodes = await nodesOn(database)
    const origin = { actorId: 0, actor: '', via: 'api', address: '192.0.2.1', atMs: Date.now() } as const
    await withTablesInUse(database, async () => {
      const refusals = Array.from({ length: 60 }, (_, index) => {
        const node = nodes[index % 2]!
        return withConnection(() => node.write('recordRefusedSignIn', { username: 'ada', origin }))
      })
      const results = await Promise.allSettled(refusals)
      expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
    })
    const count = "select count(*) as count from audit_log where action = 'session.refuse'"
    expect(await database.sql(count)).toEqual([{ count: 60 }])
  })

  test('a PostgreSQL connection lost within a transaction fails only that transaction', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const ending = new Client({ connectionString: database.place })
    await ending.connect()
    onTestFinished(() => ending.end())
    const over = new AbortController()
    const ended = (async () => {
      while (!over.signal.aborted) {
        await ending.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'sluice'",
        )
      }
    })()
    for (let round = 0; round < 60; round += 1) {
      const change = { userId, quota: { mode: 'override', value: round, maxQuota: 1000 } } as const
      const error: unknown = await store.write('changeUser', change).catch((reason: unknown) => reason)
      if (error instanceof Error) expect(error).toBeInstanceOf(StoreUnavailable)
    }
    over.abort()
    await ended
  })

  test('database operations succeed again after all connections to PostgreSQL were lost', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await database.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sluice'",
    )
    await expect.poll(() => store.read('countUsers')).toBe(1)
  })

  test('the error for a PostgreSQL database that cannot be reached names its address, and not the password', async () => {
    const { place } = await engine.database()
    const url = new URL(place)
    url.pathname = '/no_such_database'
    await expect(openPostgresStore({ url: url.href, secrets: SECRETS })).rejects.toThrow(
      /no_such_database.*not exist/,
    )
    const nobody = openPostgresStore({ url: 'postgres://me:hush@127.0.0.1:1/db', secrets: SECRETS })
    const error: unknown = await nobody.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(String(error)).toMatch(/cannot be reached.*127\.0\.0\.1:1/)
    expect(String(error)).not.toMatch(/hush/)
  })
})

describe.each(ENGINES)('on $name', (engine) => {
  test('text with the character NUL is refused on PostgreSQL with the error invalid_request', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const error: unknown = await store
      .write('createToken', newToken(userId, { name: 'n\0', key: 'k2' }))
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({
      code: 'invalid_request',
      message: 'text may not contain the character NUL (U+0000)',
    })
    await expect(store.read('userByName', 'a\0')).rejects.toThrow(/NUL/)
    expect(await store.read('listTokensWithKeys', { userId })).toHaveLength(1)
  })

  test('two user names that differ only in case are two users in PostgreSQL', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('createUser', newUser({ username: 'Ada' }))
    await store.write('createUser', newUser({ username: 'another' }))
    // Inserted directly, because such names are refused now.
    await database.sql("UPDATE users SET username = 'ada' WHERE id = 2")
    expect((await store.read('userByName', 'Ada'))?.id).toBe(1)
    expect((await store.read('userByName', 'ada'))?.id).toBe(2)
  })

  test('users of gateway.yaml without an id get ids above all ids that other users of the file state', async () => {
    const { store } = await openedRows(engine)
    const seed = {
      role: 1,
      status: undefined,
      group: 'default',
      quota: 0,
      access_token: undefined,
      tokens: [],
    } as const
    const seeds = [
      { ...seed, id: 1, username: 'a' },
      { ...seed, id: 2, username: 'b' },
      { ...seed, id: 30, username: 'c' },
      { ...seed, id: undefined, username: 'd' },
    ]
    const { users } = await store.write('seedUsers', { seeds, nowSeconds: 1 })
    expect(users.map(({ id }) => id)).toEqual([1, 2, 30, 31])
    expect((await store.write('createUser', newUser({ username: 'e' }))).id).toBe(32)
  })

  test('a PostgreSQL database is refused with advice if GATEWAY_SECRET is another one, and still opens with the right one', async () => {
    const database = await engine.database()
    await (await database.open()).close()
    const other = deriveSecrets('not the secret it was made with')
    await expect(database.open(other)).rejects.toThrow(/another secret.*GATEWAY_SECRET/)
    await (await database.open()).close()
  })

  test('a PostgreSQL database that a newer version has changed is refused, with advice', async () => {
    const database = await engine.database()
    await (await database.open()).close()
    await database.sql(
      "INSERT INTO kysely_migration VALUES ('9999-from-the-future', '2030-01-01T00:00:00.000Z')",
    )
    await expect(database.open()).rejects.toThrow(/newer version of sluice.*9999-from-the-future/)
  })
})
