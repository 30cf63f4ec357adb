import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../test/stores/engines.ts'
import { failingWrites, keptEntry, keptStore, partsIn } from '../../test/stores/kept.ts'
import { byTier } from '../../test/runner/tier.ts'
import { holdOf, newUser, preparedFile, settledCall, storeWithAccount } from '../../test/stores/rows.ts'
import {
  KEPT_KINDS,
  KEPT_PART_BYTES,
  KEPT_SHARES,
  type KeptKind,
  KINDS_OF_OPEN_BATCHES,
  rulesOf,
} from '../domain/kept.ts'
import { batchPage } from './operations/read-kept.ts'
import { createKysely } from './sqlite/dialect.ts'
import { pruneKeptOfDeleted, removeKeptOfUser } from './kept-of-deleted.ts'
import { type KeptStore } from './kept-store.ts'
import { pruneExpired } from './prune.ts'
import type { RowStore } from './store.ts'

const HOUR_MS = 3_600_000
const MIB = 1_048_576
const KINDS = (Object.keys(KEPT_KINDS) as KeptKind[]).filter((kind) => rulesOf(kind).share !== null)

/** One kind for each share and its readers; kinds with equal rules are stored alike. */
function kindsByRules(): readonly KeptKind[] {
  const rules = (kind: KeptKind): string => `${rulesOf(kind).share} ${rulesOf(kind).readers}`
  return [...Map.groupBy(KINDS, rules).values()].flatMap(([kind]) => kind ?? [])
}

/** Bytes without a pattern of the length of a part. */
const bytesOf = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => (index * 7919) % 251))

/** The content that is found under a key; undefined if nothing is found, or not all of the content. */
async function contentOf(kept: KeptStore, kind: KeptKind, key: string, userId = 2) {
  const entry = await kept.find(kind, key, userId)
  if (!entry) return undefined
  const parts: Buffer[] = []
  try {
    for await (const part of kept.stream(entry)) parts.push(part)
  } catch {
    return undefined
  }
  return Buffer.concat(parts)
}

/** Another kind, which has the same readers if there is one. */
function otherKind(kind: KeptKind): KeptKind {
  const others = KINDS.filter((other) => other !== kind)
  return others.find((other) => rulesOf(other).readers === rulesOf(kind).readers) ?? others[0] ?? kind
}

/** Changes of the row of the entry `mine` in the database, and how the entry is then looked up. */
const MOVED_ROWS: readonly {
  readonly what: string
  readonly set: (kind: KeptKind) => string
  readonly find?: (kind: KeptKind) => {
    readonly kind?: KeptKind
    readonly key?: string
    readonly userId?: number
  }
}[] = [
  { what: 'user', set: () => 'user_id = 3, owner_id = 3', find: () => ({ userId: 3 }) },
  { what: 'key', set: () => "key = 'moved'", find: () => ({ key: 'moved' }) },
  { what: 'kind', set: (kind) => `kind = '${otherKind(kind)}'`, find: (kind) => ({ kind: otherKind(kind) }) },
  { what: 'content', set: () => "content_id = (select content_id from kept as other where key = 'other')" },
  { what: 'number of parts', set: () => 'parts = 0' },
  { what: 'number of bytes', set: () => 'bytes = bytes + 1' },
  { what: 'facts', set: () => "cipher = (select cipher from kept as other where key = 'other')" },
]

const mine = "(select content_id from kept where key = 'mine')"
/** Changes in the database that replace the parts of the entry `mine` with those of another place. */
const MOVED_PARTS: readonly { readonly what: string; readonly statements: readonly string[] }[] = [
  {
    what: 'another entry',
    statements: [
      `delete from kept_parts where content_id = ${mine}`,
      `update kept_parts set content_id = ${mine} where content_id = (select content_id from kept where key = 'other')`,
    ],
  },
  {
    what: 'another index',
    statements: [
      `delete from kept_parts where content_id = ${mine} and part = 0`,
      `update kept_parts set part = 0 where content_id = ${mine} and part = 1`,
    ],
  },
]

describe.each(ENGINES)('what is kept, on $name', (engine) => {
  describe.each(byTier(kindsByRules(), KINDS))('of the kind %s', (kind) => {
    test('an entry is found with its facts and its content until it expires, also after the database was opened again', async () => {
      const { store, database } = await openedRows(engine)
      const content = bytesOf(2 * KEPT_PART_BYTES + 1)
      const pieces = [content.subarray(0, 5), content.subarray(5, 400_000), content.subarray(400_000)]
      const entry = keptEntry(kind, 'mine')
      expect(await store.read('hasKept', {})).toBe(false)
      expect(await keptStore(store).write(entry, pieces)).toBe(true)
      expect(await store.read('hasKept', {})).toBe(true)
      expect(await store.read('hasKept', { kinds: [kind] })).toBe(true)
      expect(await store.read('hasKept', { kinds: [otherKind(kind)] })).toBe(false)
      const reopened = await database.open()
      const kept = keptStore(reopened)
      expect(await kept.find(kind, 'mine', 2)).toMatchObject({ ...entry, bytes: content.length, parts: 3 })
      expect((await contentOf(kept, kind, 'mine'))?.equals(content)).toBe(true)
      const { expiresMs } = entry
      const late = await reopened.read('findKept', { kind, keys: ['mine'], userId: 2, nowMs: expiresMs })
      expect(late).toEqual([])
      await reopened.close()
    })

    test('facts and content are encrypted, so that the database reveals nothing of them', async () => {
      const { store, database } = await openedRows(engine)
      await keptStore(store).write(keptEntry(kind, 'mine', { facts: 'secret facts' }), [
        Buffer.from('secret words'),
      ])
      const rows = [
        ...(await database.sql('select * from kept')),
        ...(await database.sql('select * from kept_parts')),
      ]
      expect(rows.map(({ cipher }) => /^v1\.\w+\.[\w-]+$/.test(String(cipher)))).toEqual([true, true])
      expect(JSON.stringify(rows)).not.toMatch(/secret|facts|words/)
    })

    test('an entry is found by other users only if its kind is for everybody who can compute the key', async () => {
      const { store } = await openedRows(engine)
      const kept = keptStore(store)
      await kept.write(keptEntry(kind, 'mine'))
      expect(await kept.find(kind, 'mine', 2)).toBeDefined()
      expect((await kept.find(kind, 'mine', 3)) !== undefined).toBe(kind === 'cache')
    })

    test('an entry whose user, key, kind or content was changed in the database is not found', async () => {
      const { store, database } = await openedRows(engine)
      const kept = keptStore(store)
      for (const { what, set, find } of MOVED_ROWS) {
        for (const key of ['mine', 'other']) await kept.write(keptEntry(kind, key), [Buffer.from(key)])
        expect(await kept.find(kind, 'mine', 2)).toBeDefined()
        await database.sql(`update kept set ${set(kind)} where key = 'mine'`)
        const place = { kind, key: 'mine', userId: 2, ...find?.(kind) }
        const found = await database.sql(`select kind, user_id from kept where key = '${place.key}'`)
        expect(found, what).toEqual([{ kind: place.kind, user_id: place.userId }])
        expect(await kept.find(place.kind, place.key, place.userId), what).toBeUndefined()
        expect(String(await contentOf(kept, kind, 'other')), what).toBe('other')
        await database.sql(`delete from kept where key = '${place.key}'`)
      }
    })

    test('content whose parts were replaced in the database with those of another entry or index is not read', async () => {
      const { store, database } = await openedRows(engine)
      const kept = keptStore(store)
      for (const { what, statements } of MOVED_PARTS) {
        for (const key of ['mine', 'other']) await kept.write(keptEntry(kind, key), [bytesOf(300_000)])
        expect(await contentOf(kept, kind, 'mine')).toEqual(bytesOf(300_000))
        for (const statement of statements) await database.sql(statement)
        const entry = await kept.find(kind, 'mine', 2)
        expect(entry).toBeDefined()
        expect(entry && (await kept.part(entry, 0)), what).toBeUndefined()
      }
    })

    test('a part is not read as one of another kind', async () => {
      const { store } = await openedRows(engine)
      const kept = keptStore(store)
      await kept.write(keptEntry(kind, 'mine'), [Buffer.from('words')])
      const entry = await kept.find(kind, 'mine', 2)
      expect(String(entry && (await kept.part(entry, 0)))).toBe('words')
      expect(entry && (await kept.part({ ...entry, kind: otherKind(kind) }, 0))).toBeUndefined()
    })

    test('the bytes of an entry and 512 more count in the share of its kind, for its user', async () => {
      const { store, database } = await openedRows(engine)
      const kept = keptStore(store)
      await kept.write(keptEntry(kind, 'a'), [Buffer.alloc(300_000)])
      await kept.writeFacts([keptEntry(kind, 'b', { bytes: 100 })])
      const sums = (): Promise<object> =>
        database.sql('select share, user_id, bytes from kept_sums order by user_id')
      const bytes = 300_000 + 100 + 2 * 512
      const { share } = rulesOf(kind)
      const users = kind === 'cache' ? [0, 2] : [2]
      expect(await sums()).toEqual(users.map((user_id) => ({ share, user_id, bytes })))
      expect(await kept.remove({ kind, userId: 2 })).toBe(2)
      expect(await sums()).toEqual(users.map((user_id) => ({ share, user_id, bytes: 0 })))
    })

    test('an entry larger than its share is not admitted, and the oldest entries of the share are removed for the newest, or the newest is refused', async () => {
      const { store, database } = await openedRows(engine)
      const share = rulesOf(kind).share ?? 'user'
      const kept = keptStore(store, { [share]: 2_000 })
      expect([kept.admits(kind, 2_000), kept.admits(kind, 2_001)]).toEqual([true, false])
      if (KEPT_SHARES[share].refuses) {
        for (const key of ['a', 'b']) await kept.write(keptEntry(kind, key), [Buffer.alloc(400)])
        const third = kept.write(keptEntry(kind, 'c'), [Buffer.alloc(400)])
        await expect(third).rejects.toMatchObject({ code: 'files_full' })
        expect([await database.sql('select key from kept order by key'), await partsIn(database)]).toEqual([
          [{ key: 'a' }, { key: 'b' }],
          2,
        ])
        return
      }
      for (const [index, key] of ['a', 'b', 'c'].entries())
        await kept.write(keptEntry(kind, key, { createdMs: index }), [Buffer.alloc(400)])
      const keys = (): Promise<object> => database.sql('select key from kept order by key')
      await expect.poll(keys).toEqual([{ key: 'b' }, { key: 'c' }])
      expect(await partsIn(database)).toBe(2)
    })

    test('entries of a user are listed in pages in the order of their keys, without expired ones', async () => {
      const { store } = await openedRows(engine)
      const kept = keptStore(store)
      for (const key of ['b', 'a', 'c']) await kept.write(keptEntry(kind, key))
      await kept.write(keptEntry(kind, 'of another', { userId: 3 }))
      await kept.write(keptEntry(kind, 'expired', { expiresMs: Date.now() }))
      const keys = async (after: string | undefined, order: 'asc' | 'desc', limit: number) =>
        (await kept.list({ kind, userId: 2, after, order, limit })).map(({ key }) => key)
      expect(await keys(undefined, 'asc', 2)).toEqual(['a', 'b'])
      expect(await keys('b', 'asc', 2)).toEqual(['c'])
      expect(await keys('c', 'desc', 5)).toEqual(['b', 'a'])
      const { share } = rulesOf(kind)
      if (share !== null) expect(await kept.bytesOf(share, 3)).toBe(512)
    })

    test('an entry replaces an earlier one with its parts, and an expired one is pruned with its parts', async () => {
      const { store, database } = await openedRows(engine)
      const kept = keptStore(store)
      for (const size of [MIB, 2 * MIB, 1]) await kept.write(keptEntry(kind, 'a'), [Buffer.alloc(size)])
      expect([await contentOf(kept, kind, 'a'), await partsIn(database)]).toEqual([Buffer.alloc(1), 1])
      await kept.writeFacts([keptEntry(kind, 'a')])
      expect([await contentOf(kept, kind, 'a'), await partsIn(database)]).toEqual([Buffer.alloc(0), 0])
      await kept.write(keptEntry(kind, 'b', { expiresMs: Date.now() }), [Buffer.alloc(MIB)])
      expect(await pruneExpired(store, 'pruneKept', Date.now())).toBe(1)
      expect(await database.sql('select key from kept')).toEqual([{ key: 'a' }])
      expect(await partsIn(database)).toBe(0)
    })
  })

  // What open batches need stays until they have ended.
  const ofUsers = byTier(kindsByRules(), KINDS).filter((kind) => !KINDS_OF_OPEN_BATCHES.has(kind))
  describe.each(ofUsers)('of the kind %s', (kind) => {
    test('nothing is kept of a deleted user, nor of a content that was being written', async () => {
      const { store, database, userId } = await rowsWithAccount(engine)
      const kept = keptStore(store)
      await kept.write(keptEntry(kind, 'of another', { userId: userId + 1 }), [Buffer.alloc(1)])
      await kept.write(keptEntry(kind, 'a', { userId }), [Buffer.alloc(MIB)])
      const writing = kept.write(keptEntry(kind, 'b', { userId }), [Buffer.alloc(MIB)])
      await store.write('deleteUser', { userId, deleted_time: 1 })
      await removeKeptOfUser(store, userId)
      await writing
      expect(await kept.write(keptEntry(kind, 'c', { userId }), [Buffer.alloc(MIB)])).toBe(false)
      expect(await kept.write(keptEntry(kind, 'd', { userId }), [Buffer.alloc(1)])).toBe(false)
      await removeKeptOfUser(store, userId)
      expect(await database.sql('select key from kept')).toEqual([{ key: 'of another' }])
      expect(await partsIn(database)).toBe(1)
      expect(await database.sql(`select * from kept_sums where user_id = ${userId}`)).toEqual([])
    })
  })

  test('lines of batches that an earlier version counted in no share are listed, and removed without changing the share', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const kept = keptStore(store)
    await kept.writeFacts([keptEntry('batch_line', 'a', { userId, bytes: 100 })])
    await database.sql("update kept set share = ''; delete from kept_sums")
    await kept.writeFacts([keptEntry('batch_line', 'b', { userId, bytes: 100 })])
    const size = await kept.bytesOf('files', userId)
    const page = { kind: 'batch_line', userId, after: undefined, order: 'asc', limit: 9 } as const
    expect((await kept.list(page)).map(({ key }) => key)).toEqual(['a', 'b'])
    await kept.remove({ kind: 'batch_line', userId, keys: { from: 'a', to: 'a' } })
    expect((await kept.list(page)).map(({ key }) => key)).toEqual(['b'])
    expect(await kept.bytesOf('files', userId)).toBe(size)
  })

  test('entries of a key are found in one database operation, however many; of several with one key the last counts', async () => {
    const { store } = await openedRows(engine)
    const kept = keptStore(store)
    const keys = Array.from({ length: 2_500 }, (_, index) => `key ${index}`)
    const entries = keys.map((key) => keptEntry('signature', key))
    await kept.writeFacts([...entries, keptEntry('signature', 'key 0', { facts: 'later' })])
    const found = await kept.findAll('signature', [...keys, 'unknown'], 2)
    expect(found).toHaveLength(2_500)
    expect(found.find(({ key }) => key === 'key 0')?.facts).toBe('later')
  })

  test('a content is stored completely or not at all: what an interrupted write left is pruned an hour later', async () => {
    const { store, database } = await openedRows(engine)
    for (const [name, number] of [
      ['storeKeptPart', 3],
      ['storeKept', 1],
    ] as const) {
      const kept = keptStore(failingWrites(store, name, number))
      await expect(kept.write(keptEntry('cache', 'a'), [Buffer.alloc(MIB)])).rejects.toThrow('stopped')
      expect([await kept.find('cache', 'a', 2), await partsIn(database)]).toEqual([undefined, 0])
    }
    // A killed process removes nothing.
    const part = { kind: 'cache', contentId: 'left', userId: 2, bytes: Buffer.from('left') } as const
    const nowMs = Date.now()
    for (const index of [0, 1]) await store.write('storeKeptPart', { ...part, part: index, nowMs })
    const live = keptEntry('cache', 'live', { expiresMs: nowMs + 2 * HOUR_MS })
    expect(await keptStore(store).write(live, [Buffer.alloc(MIB)])).toBe(true)
    expect(await pruneExpired(store, 'pruneKept', nowMs + HOUR_MS - 1)).toBe(0)
    expect(await pruneExpired(store, 'pruneKept', nowMs + HOUR_MS)).toBe(1)
    expect([await partsIn(database), await database.sql('select key from kept')]).toEqual([
      4,
      [{ key: 'live' }],
    ])
  })

  test.each([
    ['storeKeptPart', 2],
    ['storeKeptPart', 3],
    ['storeKept', 1],
  ] as const)(
    'a write whose first parts were removed before %s number %i ends, and leaves nothing',
    async (name, number) => {
      const { store, database } = await openedRows(engine)
      let writes = 0
      const rows: RowStore = {
        ...store,
        read: store.read.bind(store),
        async write(...write) {
          if (write[0] === name && ++writes === number)
            await store.write('removeKept', { kind: 'incomplete', userId: 2, limit: 10 })
          return store.write(...write)
        },
      }
      const kept = keptStore(rows)
      expect(await kept.write(keptEntry('cache', 'a'), [Buffer.alloc(MIB)])).toBe(false)
      expect(writes).toBe(number)
      expect([await kept.find('cache', 'a', 2), await partsIn(database)]).toEqual([undefined, 0])
    },
  )

  test('a large content is removed in several writes, which another process continues after a crash', async () => {
    const { store, database } = await openedRows(engine)
    const removed: number[] = []
    const counting: RowStore = {
      ...store,
      read: store.read.bind(store),
      async write(...write) {
        const before = await partsIn(database)
        const result = await store.write(...write)
        removed.push(before - (await partsIn(database)))
        return result
      },
    }
    const content = [Buffer.alloc(70 * KEPT_PART_BYTES)]
    await keptStore(store).write(keptEntry('cache', 'a'), content)
    expect(await keptStore(counting).remove({ kind: 'cache', key: 'a' })).toBe(1)
    expect([removed.filter((count) => count > 0), await partsIn(database)]).toEqual([[32, 32, 6], 0])
    await keptStore(store).write(keptEntry('cache', 'a'), content)
    const dying = keptStore(failingWrites(store, 'pruneKept'))
    await expect(dying.remove({ kind: 'cache', key: 'a' })).rejects.toThrow('stopped')
    expect([await dying.find('cache', 'a', 2), await partsIn(database)]).toEqual([undefined, 38])
    expect(await pruneExpired(store, 'pruneKept', Date.now())).toBe(2)
    expect([await partsIn(database), await database.sql('select key from kept')]).toEqual([0, []])
  })

  test('a page of batches has those of its users that have not expired, the newest first, and counts all of them', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const { id: other } = await store.write('createUser', newUser({ username: 'bob' }))
    const nowMs = Date.now()
    const entry = (key: string, of: number, ageMs: number, expiresMs = nowMs + 60_000) =>
      keptEntry('batch', key, { userId: of, createdMs: nowMs - ageMs, expiresMs })
    const entries = [
      entry('batch_a', userId, 30),
      entry('msgbatch_b', userId, 20),
      entry('batch_c', other, 10),
      entry('batch_d', userId, 10),
      entry('batch_gone', userId, 5, nowMs - 1),
    ]
    for (const one of [...entries, keptEntry('batch_open', 'batch_a', { userId })])
      await keptStore(store).writeFacts([one])
    const page = (userIds: readonly number[] | undefined, offset = 0, limit = 2) =>
      store.read('batchPage', { userIds, offset, limit, nowMs })
    const of = (id: string, whose = userId) => ({ id, userId: whose })
    expect(await page([userId])).toEqual({ total: 3, ids: [of('batch_d'), of('msgbatch_b')] })
    expect(await page([userId], 2)).toEqual({ total: 3, ids: [of('batch_a')] })
    expect(await page([other])).toEqual({ total: 1, ids: [of('batch_c', other)] })
    expect(await page([userId, other], 2, 9)).toEqual({ total: 4, ids: [of('msgbatch_b'), of('batch_a')] })
    expect(await page([])).toEqual({ total: 0, ids: [] })
    expect(await page(undefined, 1, 1)).toEqual({ total: 4, ids: [of('batch_c', other)] })
  })

  test('nodes that write facts at the same time store as many entries of a user as are allowed', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const other = await database.open()
    const bound = { kind: 'batch_open', userId, most: 3 } as const
    const written = await Promise.all(
      Array.from({ length: 12 }, (_, at) => {
        const entry = keptEntry('batch_open', `batch ${at}`, { userId })
        return keptStore(at % 2 === 0 ? store : other).writeFacts([entry], bound)
      }),
    )
    expect(written.filter(Boolean)).toHaveLength(3)
    expect(await store.read('keysOfKind', { kind: 'batch_open' })).toHaveLength(3)
    await other.close()
  })

  test('an interrupted removal of what is kept for a deleted user is finished later', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    for (let index = 0; index < 45; index += 1)
      await keptStore(store).write(keptEntry('cache', `of ann ${index}`, { userId }), [Buffer.alloc(1)])
    expect(await pruneKeptOfDeleted(store)).toBe(0)
    await store.write('deleteUser', { userId, deleted_time: 1 })
    await expect(removeKeptOfUser(failingWrites(store, 'removeKept', 2), userId)).rejects.toThrow('stopped')
    expect(await pruneKeptOfDeleted(store)).toBe(1)
    expect([await partsIn(database), await pruneKeptOfDeleted(store)]).toEqual([0, 0])
  })

  test('users take turns in writing parts, however much one of them keeps', async () => {
    const { store } = await openedRows(engine)
    const writers: number[] = []
    const rows: RowStore = {
      ...store,
      read: store.read.bind(store),
      write: (...write) => {
        const [name, input] = write
        if (name === 'storeKept' || name === 'storeKeptPart')
          writers.push((input as { readonly userId: number }).userId)
        return store.write(...write)
      },
    }
    const kept = keptStore(rows)
    const keep = (key: string, userId: number): Promise<boolean> =>
      kept.write(keptEntry('cache', key, { userId }), [Buffer.alloc(300_000)])
    const many = Array.from({ length: 20 }, (_, index) => keep(`large ${index}`, 2))
    const isKept = await keep('of another', 3)
    const before = writers.filter((userId) => userId === 2).length
    expect([isKept, ...(await Promise.all(many))]).not.toContain(false)
    // One write is under way. Then each of the other's two writes waits for at most one.
    expect(before).toBeLessThanOrEqual(3)
  })
})

test('charges are settled while a content of 32 MiB is being stored', async () => {
  const { store, who } = await storeWithAccount()
  const stored = { yet: false }
  const writing = keptStore(store)
    .write(keptEntry('cache', 'a'), [Buffer.alloc(32 * MIB)])
    .then(() => {
      stored.yet = true
    })
  let settled = 0
  for (; !stored.yet; settled += 1) {
    await store.write('hold', holdOf(who, `call ${settled}`))
    await store.write('settle', settledCall(who, `call ${settled}`))
  }
  await writing
  const parts = 32 * 4
  // Each of a call's two writes shares the commit of one part. If the content were stored in one piece,
  // hardly any call would end in time.
  expect(settled).toBeGreaterThanOrEqual(parts / 4)
})

test('a page of batches of a user is found by an index, without the batches of others', async () => {
  const file = new DatabaseSync(await preparedFile())
  onTestFinished(() => file.close())
  const asked: { sql: string; parameters: readonly unknown[] }[] = []
  const db = createKysely(file, ({ query: { sql, parameters } }) => void asked.push({ sql, parameters }))
  await batchPage(db, { userIds: [7], offset: 0, limit: 10, nowMs: 0 })
  expect(asked).toHaveLength(2)
  for (const { sql, parameters } of asked) {
    const plan = file.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(parameters as string[]))
    expect(plan[0]?.['detail']).toBe('SEARCH kept USING INDEX kept_by_age (share=? AND owner_id=?)')
    expect(plan.some(({ detail }) => String(detail).startsWith('SCAN'))).toBe(false)
  }
})
