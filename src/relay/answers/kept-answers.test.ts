import { describe, expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { ENGINES, openedRows, rowsWithAccount, type TestDatabase } from '../../../test/stores/engines.ts'
import { type AnswerKind, dayOf } from '../../domain/kept-answer.ts'
import { StoreReads } from '../../limits/store-reads.ts'
import { pruneExpired } from '../../store/prune.ts'
import type { AnswerToStore } from '../../store/answer-contents.ts'
import { pruneStoredDataOfDeleted, removeStoredDataOfUser } from '../../store/stored-data-of-user.ts'
import type { RowStore } from '../../store/store.ts'
import { StorageLimit } from '../responses/storage-limit.ts'
import { KeptAnswers } from './kept-answers.ts'

const MIB = 1_048_576
const HOUR_MS = 3_600_000

function answer(of: Partial<AnswerToStore> = {}): AnswerToStore {
  return {
    kind: 'idempotency',
    lookup: 'first',
    userId: 2,
    tokenId: 7,
    model: 'm',
    head: { status: 200, headers: { 'content-type': 'application/json' } },
    facts: '{"form":"body"}',
    pieces: [Buffer.from('{"answer":'), Buffer.from('"secret words"}')],
    createdMs: Date.now(),
    expiresMs: Date.now() + HOUR_MS,
    ...of,
  }
}

function keptAnswers(
  rows: Pick<RowStore, 'read' | 'write'>,
  maxBytes: Partial<Record<AnswerKind, number>> = {},
): KeptAnswers {
  const bound = (kind: AnswerKind): StorageLimit =>
    new StorageLimit({ rows, maxBytes: () => maxBytes[kind] ?? Number.POSITIVE_INFINITY, room: undefined })
  return new KeptAnswers({ rows, bounds: { idempotency: bound('idempotency'), cache: bound('cache') } })
}

async function contentOf(
  answers: KeptAnswers,
  kind: AnswerKind,
  lookup: string,
): Promise<Buffer | undefined> {
  const found = await answers.find(kind, lookup)
  if (!found) return undefined
  const read = new StoreReads(requestMemory()).of(2)
  const parts: Buffer[] = []
  for await (const part of answers.parts(found, read)) parts.push(part)
  read.end()
  return Buffer.concat(parts)
}

async function partsIn({ sql }: TestDatabase): Promise<number> {
  return Number((await sql('select count(*) as count from answer_parts'))[0]?.['count'])
}

describe.each(ENGINES)('kept answers on $name', (engine) => {
  test('a stored answer has its headers, details and bytes after the database was closed and opened again', async () => {
    const { store, database } = await openedRows(engine)
    expect(await keptAnswers(store).keep(answer())).toBe(true)
    const reopened = await database.open()
    const answers = keptAnswers(reopened)
    expect(await answers.find('idempotency', 'first')).toMatchObject({
      userId: 2,
      tokenId: 7,
      model: 'm',
      head: { status: 200, headers: { 'content-type': 'application/json' } },
      facts: '{"form":"body"}',
      bytes: 25,
      parts: 1,
    })
    expect(String(await contentOf(answers, 'idempotency', 'first'))).toBe('{"answer":"secret words"}')
    expect(await answers.find('cache', 'first')).toBeUndefined()
    await reopened.close()
  })

  test('a stored answer is encrypted: neither its text nor its headers are readable in the database', async () => {
    const { store, database } = await openedRows(engine)
    await keptAnswers(store).keep(answer())
    const rows = [
      ...(await database.sql('select * from kept_answers')),
      ...(await database.sql('select * from answer_parts')),
    ]
    expect(rows).toHaveLength(2)
    expect(JSON.stringify(rows)).not.toMatch(/secret|words|content-type|form/)
  })

  test("a large answer is stored in parts, and reading it takes memory of its client's share", async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const bytes = Buffer.from(Array.from({ length: 700_001 }, (_, index) => (index * 7919) % 256))
    const pieces = [bytes.subarray(0, 5), bytes.subarray(5, 600_000), bytes.subarray(600_000)]
    await answers.keep(answer({ pieces }))
    expect(await database.sql('select count(*) as count from answer_parts')).toEqual([{ count: 3 }])
    expect((await contentOf(answers, 'idempotency', 'first'))?.equals(bytes)).toBe(true)
    const memory = requestMemory()
    const release = usedUp(memory, 2)
    const found = await answers.find('idempotency', 'first')
    const read = new StoreReads(memory).of(2)
    const first = found && answers.parts(found, read).next()
    read.end()
    await expect(first).rejects.toThrow('too much is being read')
    release()
  })

  test.each([
    ['content', 'answer_id', "(select answer_id from kept_answers where lookup = 'other')"],
    ['number of bytes', 'bytes', '1'],
    ['number of parts', 'parts', '0'],
  ])(
    'a stored answer to which somebody gives another %s in the database is not found',
    async (_, column, value) => {
      const { store, database } = await openedRows(engine)
      const answers = keptAnswers(store)
      await answers.keep(answer())
      await answers.keep(answer({ lookup: 'other', pieces: [Buffer.from('words of another')] }))
      await database.sql(`update kept_answers set ${column} = ${value} where lookup = 'first'`)
      expect(await answers.find('idempotency', 'first')).toBeUndefined()
      expect(String(await contentOf(answers, 'idempotency', 'other'))).toBe('words of another')
    },
  )

  test('an answer with an empty body can be stored, and a later answer under the same key replaces it', async () => {
    const { store } = await openedRows(engine)
    const answers = keptAnswers(store)
    await answers.keep(answer({ pieces: [] }))
    expect(await contentOf(answers, 'idempotency', 'first')).toEqual(Buffer.alloc(0))
    await answers.keep(answer({ pieces: [Buffer.from('second')] }))
    expect(String(await contentOf(answers, 'idempotency', 'first'))).toBe('second')
  })

  test('the oldest cached answers and their parts are removed when all cached answers together exceed the maximum size', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store, { cache: 3 * MIB })
    const pieces = [Buffer.alloc(MIB)]
    for (const [index, lookup] of ['a', 'b', 'c', 'd'].entries()) {
      const createdMs = Date.now() + index
      await answers.keep(answer({ kind: 'cache', lookup, pieces, createdMs, userId: index + 2 }))
      await answers.keep(answer({ lookup, pieces, createdMs }))
    }
    await expect
      .poll(() => database.sql('select count(*) as count from answer_parts'))
      .toEqual([{ count: 24 }])
    const lookups = await database.sql("select lookup from kept_answers where kind = 'cache' order by lookup")
    expect(lookups).toEqual([{ lookup: 'c' }, { lookup: 'd' }])
    expect(await answers.keep(answer({ kind: 'cache', pieces: [Buffer.alloc(4 * MIB)] }))).toBe(false)
  })

  test('users take turns in writing the parts of their answers, however many answers one of them keeps', async () => {
    const { store } = await openedRows(engine)
    const writers: number[] = []
    const rows: Pick<RowStore, 'read' | 'write'> = {
      read: store.read.bind(store),
      write: (...write) => {
        const [name, input] = write
        if (name === 'storeAnswer' || name === 'storeAnswerPart')
          writers.push((input as { readonly userId: number }).userId)
        return store.write(...write)
      },
    }
    const answers = keptAnswers(rows)
    const keep = (lookup: string, userId: number): Promise<boolean> =>
      answers.keep(answer({ lookup, userId, pieces: [Buffer.alloc(300_000)] }))
    const many = Array.from({ length: 20 }, (_, index) => keep(`large ${index}`, 2))
    const isKept = await keep('of another', 3)
    const before = writers.filter((userId) => userId === 2).length
    expect([isKept, ...(await Promise.all(many))]).not.toContain(false)
    // One write is under way. Then each of the other's three writes waits for at most one.
    expect(before).toBeLessThanOrEqual(4)
  })

  test('a user whose answers fill more than half of the answer cache displaces no answers of others', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store, { cache: 4 * MIB })
    const keep = (lookup: string, userId: number, createdMs: number): Promise<boolean> =>
      answers.keep(answer({ kind: 'cache', lookup, userId, createdMs, pieces: [Buffer.alloc(MIB - 512)] }))
    const kept = async (): Promise<string> =>
      (await database.sql('select lookup from kept_answers order by lookup'))
        .map(({ lookup }) => String(lookup))
        .join(' ')
    const now = Date.now()
    await keep('of another', 3, now)
    await keep('of a third', 4, now + 1)
    for (const [index, lookup] of ['a', 'b', 'c', 'd', 'e'].entries()) await keep(lookup, 2, now + 2 + index)
    await expect.poll(kept).toBe('d e of a third of another')
    // Those of users with less give way by their age.
    await keep('of a third, later', 4, now + 9)
    await expect.poll(kept).toBe('d e of a third of a third, later')
  })

  test('stored answers can be removed by any combination of user, API key and model', async () => {
    const { store } = await openedRows(engine)
    const answers = keptAnswers(store)
    for (const [lookup, userId, tokenId, model] of [
      ['a', 2, 7, 'm'],
      ['b', 2, 8, 'm'],
      ['c', 3, 9, 'm'],
      ['d', 3, 9, 'n'],
    ] as const)
      await answers.keep(answer({ kind: 'cache', lookup, userId, tokenId, model }))
    await answers.keep(answer())
    expect(await answers.remove({ kind: 'cache', userId: 2, tokenId: 8 })).toBe(1)
    expect(await answers.remove({ kind: 'cache', model: 'n' })).toBe(1)
    expect(await answers.find('cache', 'a')).toBeDefined()
    expect(await answers.remove({ kind: 'cache' })).toBe(2)
    expect(await answers.find('idempotency', 'first')).toBeDefined()
  })

  test('the answer of a call in flight is not stored if answers of its user, key or model were removed meanwhile', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const like = { kind: 'cache', userId: 2, tokenId: 7, model: 'm' } as const
    const stored = answer({ ...like })
    for (const filter of [{}, { userId: 2 }, { userId: 2, tokenId: 7, model: 'm' }]) {
      const call = await answers.begin(like)
      await answers.remove({ kind: 'cache', ...filter })
      expect(await answers.keep(stored, call)).toBe(false)
    }
    const late = await answers.begin(like)
    const storing = answers.keep(stored, late)
    await answers.remove({ kind: 'cache', model: 'm' })
    expect(await storing).toBe(false)
    expect([await answers.find('cache', 'first'), await partsIn(database)]).toEqual([undefined, 0])
    for (const filter of [{ userId: 3 }, { tokenId: 8 }, { userId: 2, model: 'n' }]) {
      const call = await answers.begin(like)
      await answers.remove({ kind: 'cache', ...filter })
      expect(await answers.keep(stored, call)).toBe(true)
    }
  })

  test('a removal of cached answers by another process also applies to matching calls in flight, and to no others', async () => {
    const { store, database } = await openedRows(engine)
    const like = { kind: 'cache', userId: 2, tokenId: 7, model: 'm' } as const
    // No process hears of the removals of the other.
    const [here, elsewhere] = [keptAnswers(store), keptAnswers(store)]
    const stored = answer({ ...like, pieces: [Buffer.alloc(MIB)] })
    for (const filter of [{}, { userId: 2 }, { tokenId: 7 }, { model: 'm' }]) {
      const call = await here.begin(like)
      await elsewhere.remove({ kind: 'cache', ...filter })
      expect(await here.keep(stored, call)).toBe(false)
      expect(await here.keep(stored, await here.begin(like))).toBe(true)
    }
    await elsewhere.remove({ kind: 'cache' })
    expect(await partsIn(database)).toBe(0)
    for (const filter of [{ userId: 3 }, { tokenId: 8 }, { userId: 2, model: 'n' }]) {
      const call = await here.begin(like)
      await elsewhere.remove({ kind: 'cache', ...filter })
      expect(await here.keep(stored, call)).toBe(true)
    }
  })

  test('a removal of cached answers also removes or prevents answers that are being stored by calls that began before it', async () => {
    const { store, database } = await openedRows(engine)
    const [here, elsewhere] = [keptAnswers(store), keptAnswers(store)]
    for (let round = 0; round < 10; round += 1) {
      const calls = await Promise.all(
        Array.from({ length: 8 }, async (_, token) => {
          const like = { kind: 'cache', userId: 2, tokenId: token, model: 'm' } as const
          return { like, call: await here.begin(like) }
        }),
      )
      await Promise.all([
        ...calls.map(({ like, call }, index) =>
          here.keep(answer({ ...like, lookup: `${round} ${index}` }), call),
        ),
        elsewhere.remove({ kind: 'cache', userId: 2 }),
      ])
      expect(await database.sql('select lookup from kept_answers')).toEqual([])
    }
  })

  test("an answer is not stored if removals after its call's beginning may be unknown, because their records were pruned", async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const like = { kind: 'cache', userId: 2, tokenId: 7, model: 'm' } as const
    const long = await answers.begin(like)
    for (const model of ['m', 'n', 'o']) await answers.remove({ kind: 'cache', model })
    const tomorrow = Date.now() + 25 * HOUR_MS
    expect(await pruneExpired(store, 'pruneAnswerRemovals', Date.now())).toBe(0)
    expect(await pruneExpired(store, 'pruneAnswerRemovals', tomorrow)).toBe(2)
    expect(await database.sql('select id, model from answer_removals')).toEqual([{ id: 3, model: 'o' }])
    expect(await keptAnswers(store).keep(answer(like), long)).toBe(false)
    expect(await answers.keep(answer(like), await answers.begin(like))).toBe(true)
  })

  test('an interrupted removal of the stored answers of a deleted user is finished later', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    for (let index = 0; index < 45; index += 1)
      await keptAnswers(store).keep(answer({ kind: 'cache', userId, lookup: `of ann ${index}` }))
    expect(await pruneStoredDataOfDeleted(store)).toBe(0)
    await store.write('deleteUser', { userId, deleted_time: 1 })
    const failing = { write: () => Promise.reject(new Error('stopped')) }
    await expect(removeStoredDataOfUser(failing, userId)).rejects.toThrow('stopped')
    expect(await pruneStoredDataOfDeleted(store)).toBe(1)
    expect([await partsIn(database), await pruneStoredDataOfDeleted(store)]).toEqual([0, 0])
  })

  test('an expired stored answer is not found, and is pruned with its parts', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    await answers.keep(answer({ expiresMs: Date.now() - 1, pieces: [Buffer.alloc(MIB)] }))
    expect(await answers.find('idempotency', 'first')).toBeUndefined()
    expect(await pruneExpired(store, 'pruneAnswers', Date.now())).toBe(1)
    expect(await partsIn(database)).toBe(0)
    expect(await database.sql('select user_id from kept_sums where bytes <> 0')).toEqual([])
  })

  test('a stored answer that is replaced or removed leaves no parts in the database', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const pieces = [Buffer.alloc(MIB)]
    for (const size of [MIB, 2 * MIB, 1])
      await answers.keep(answer({ kind: 'cache', pieces: [Buffer.alloc(size)] }))
    expect(await partsIn(database)).toBe(1)
    // More than one write removes.
    for (let index = 0; index < 9; index += 1)
      await answers.keep(answer({ kind: 'cache', lookup: `${index}`, pieces }))
    expect(await answers.remove({ kind: 'cache' })).toBe(10)
    expect(await partsIn(database)).toBe(0)
  })

  test("deleting a user removes the user's stored answers, and those that are still being written", async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const answers = keptAnswers(store)
    const pieces = [Buffer.alloc(MIB)]
    for (const kind of ['cache', 'idempotency'] as const)
      await answers.keep(answer({ kind, userId, pieces: [Buffer.alloc(9 * MIB)] }))
    await answers.keep(answer({ kind: 'cache', lookup: 'of another', userId: userId + 1 }))
    const storing = answers.keep(answer({ lookup: 'late', userId, pieces }))
    await store.write('deleteUser', { userId, deleted_time: 1 })
    await storing
    await removeStoredDataOfUser(store, userId)
    expect(await database.sql(`select * from kept_sums where user_id = ${userId}`)).toEqual([])
    expect(await answers.keep(answer({ lookup: 'late', userId, pieces }))).toBe(false)
    expect(await answers.keep(answer({ lookup: 'small', userId }))).toBe(false)
    expect(await partsIn(database)).toBe(1)
    expect(await database.sql('select lookup from kept_answers')).toEqual([{ lookup: 'of another' }])
  })

  test('the stored answers of a deleted user are removed in several writes of limited size', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const answers = keptAnswers(store)
    for (const kind of ['cache', 'idempotency'] as const)
      for (let index = 0; index < 15; index += 1)
        await answers.keep(answer({ kind, userId, lookup: String(index), pieces: [Buffer.alloc(MIB)] }))
    await store.write('deleteUser', { userId, deleted_time: 1 })
    let left = await partsIn(database)
    expect(left).toBe(2 * 15 * 4)
    const removed: number[] = []
    const counting: Pick<RowStore, 'write'> = {
      async write(...write) {
        const result = await store.write(...write)
        const before = left
        left = await partsIn(database)
        removed.push(before - left)
        return result
      },
    }
    await removeStoredDataOfUser(counting, userId)
    expect([left, Math.max(...removed)]).toEqual([0, 32])
  })

  test("an answer whose storing fails leaves no parts, or leaves parts that are pruned a day after the answer's expiry", async () => {
    const { store, database } = await openedRows(engine)
    const failing = (name: string): RowStore => ({
      ...store,
      read: store.read.bind(store),
      write: (...write) => (write[0] === name ? Promise.reject(new Error('stopped')) : store.write(...write)),
    })
    const large = answer({ pieces: [Buffer.alloc(MIB)] })
    await expect(keptAnswers(failing('storeAnswer')).keep(large)).rejects.toThrow('stopped')
    expect(await partsIn(database)).toBe(0)
    const { expiresMs } = large
    const left = { day: dayOf(expiresMs), answerId: 'left', part: 0, bytes: Buffer.from('left') }
    await store.write('storeAnswerPart', { ...left, userId: 2 })
    expect(await pruneExpired(store, 'pruneAnswerParts', expiresMs)).toBe(0)
    expect(await pruneExpired(store, 'pruneAnswerParts', expiresMs + 24 * HOUR_MS)).toBe(1)
  })
})
