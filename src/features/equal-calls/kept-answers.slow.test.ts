import { describe, expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { keptStore, partsIn } from '../../../test/stores/kept.ts'
import type { AnswerKind, KeptShareName } from '../../domain/kept.ts'
import { StoreReads } from '../../limits/store-reads.ts'
import { pruneExpired } from '../../store/prune.ts'
import { removeKeptOfUser } from '../../store/kept-of-deleted.ts'
import type { RowStore } from '../../store/store.ts'
import { type AnswerToKeep, KeptAnswers } from './kept-answers.ts'

const MIB = 1_048_576
const HOUR_MS = 3_600_000

function answer(of: Partial<AnswerToKeep> = {}): AnswerToKeep {
  return {
    kind: 'idempotency',
    key: 'first',
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
  maxBytes: Partial<Record<KeptShareName, number>> = {},
): KeptAnswers {
  return new KeptAnswers({ rows, kept: keptStore(rows, maxBytes) })
}

async function contentOf(answers: KeptAnswers, kind: AnswerKind, key: string): Promise<Buffer | undefined> {
  const found = await answers.find(kind, key, 2)
  if (!found) return undefined
  const read = new StoreReads(requestMemory()).of(2)
  const parts: Buffer[] = []
  for await (const part of answers.parts(found, read)) parts.push(part)
  read.end()
  return Buffer.concat(parts)
}

describe.each(ENGINES)('kept answers on $name', (engine) => {
  test('a stored answer has its headers, details and bytes after the database was closed and opened again', async () => {
    const { store, database } = await openedRows(engine)
    expect(await keptAnswers(store).keep(answer())).toBe(true)
    const reopened = await database.open()
    const answers = keptAnswers(reopened)
    expect(await answers.find('idempotency', 'first', 2)).toMatchObject({
      userId: 2,
      tokenId: 7,
      model: 'm',
      head: { status: 200, headers: { 'content-type': 'application/json' } },
      facts: '{"form":"body"}',
      bytes: 25,
      parts: 1,
    })
    expect(String(await contentOf(answers, 'idempotency', 'first'))).toBe('{"answer":"secret words"}')
    expect(await answers.find('cache', 'first', 2)).toBeUndefined()
    await reopened.close()
  })

  test('an answer that is replaced between the reads of its facts and its body is read as it is then', async () => {
    const { store } = await openedRows(engine)
    const answers = keptAnswers(store)
    const place = { kind: 'cache', key: 'first', userId: 2 } as const
    let isReplaced = false
    const replacing = keptAnswers({
      ...store,
      read: async (name, ...input) => {
        if (name === 'readKeptPart' && !isReplaced) {
          isReplaced = true
          await answers.keep(
            answer({ kind: 'cache', facts: '{"form":"new"}', pieces: [Buffer.from('newer')] }),
          )
        }
        return store.read(name, ...input)
      },
      write: store.write.bind(store),
    })
    await answers.keep(answer({ kind: 'cache', pieces: [Buffer.from('the older one')] }))
    const read = new StoreReads(requestMemory()).of(2)
    const found = await replacing.read(place, read, () => true)
    expect(isReplaced).toBe(true)
    expect(found?.answer).toMatchObject({ facts: '{"form":"new"}', bytes: 5 })
    expect(String(Buffer.concat(found?.pieces ?? []))).toBe('newer')
    await answers.remove({ kind: 'cache', userId: 2 })
    isReplaced = true
    expect(await replacing.read(place, read, () => true)).toBeUndefined()
    read.end()
  })

  test('a body that is not there is read once, and then counts as no answer', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    await answers.keep(answer())
    await database.sql('delete from kept_parts')
    const read = new StoreReads(requestMemory()).of(2)
    const place = { kind: 'idempotency', key: 'first', userId: 2 } as const
    expect(await answers.read(place, read, () => true)).toBeUndefined()
    expect(await answers.read(place, read, () => false)).toMatchObject({ answer: { bytes: 25 } })
    read.end()
  })

  test("a large answer is stored in parts, and reading it takes memory of its client's share", async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const bytes = Buffer.from(Array.from({ length: 700_001 }, (_, index) => (index * 7919) % 256))
    const pieces = [bytes.subarray(0, 5), bytes.subarray(5, 600_000), bytes.subarray(600_000)]
    await answers.keep(answer({ pieces }))
    expect(await database.sql('select count(*) as count from kept_parts')).toEqual([{ count: 3 }])
    expect((await contentOf(answers, 'idempotency', 'first'))?.equals(bytes)).toBe(true)
    const memory = requestMemory()
    const release = usedUp(memory, 2)
    const found = await answers.find('idempotency', 'first', 2)
    const read = new StoreReads(memory).of(2)
    const first = found && answers.parts(found, read).next()
    read.end()
    await expect(first).rejects.toThrow('too much is being read')
    release()
  })

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
    for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) {
      const createdMs = Date.now() + index
      await answers.keep(answer({ kind: 'cache', key, pieces, createdMs, userId: index + 2 }))
      await answers.keep(answer({ key, pieces, createdMs }))
    }
    await expect.poll(() => database.sql('select count(*) as count from kept_parts')).toEqual([{ count: 24 }])
    const keys = await database.sql("select key from kept where kind = 'cache' order by key")
    expect(keys).toEqual([{ key: 'c' }, { key: 'd' }])
    expect(await answers.keep(answer({ kind: 'cache', pieces: [Buffer.alloc(4 * MIB)] }))).toBe(false)
  })

  test('a user whose answers fill more than half of the answer cache displaces no answers of others', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store, { cache: 4 * MIB })
    const keep = (key: string, userId: number, createdMs: number): Promise<boolean> =>
      answers.keep(answer({ kind: 'cache', key, userId, createdMs, pieces: [Buffer.alloc(MIB - 512)] }))
    const kept = async (): Promise<string> =>
      (await database.sql('select key from kept order by key')).map(({ key }) => String(key)).join(' ')
    const now = Date.now()
    await keep('of another', 3, now)
    await keep('of a third', 4, now + 1)
    for (const [index, key] of ['a', 'b', 'c', 'd', 'e'].entries()) await keep(key, 2, now + 2 + index)
    await expect.poll(kept).toBe('d e of a third of another')
    // Those of users with less give way by their age.
    await keep('of a third, later', 4, now + 9)
    await expect.poll(kept).toBe('d e of a third of a third, later')
  })

  test('stored answers can be removed by any combination of user, API key and model', async () => {
    const { store } = await openedRows(engine)
    const answers = keptAnswers(store)
    for (const [key, userId, tokenId, model] of [
      ['a', 2, 7, 'm'],
      ['b', 2, 8, 'm'],
      ['c', 3, 9, 'm'],
      ['d', 3, 9, 'n'],
    ] as const)
      await answers.keep(answer({ kind: 'cache', key, userId, tokenId, model }))
    await answers.keep(answer())
    expect(await answers.remove({ kind: 'cache', userId: 2, tokenId: 8 })).toBe(1)
    expect(await answers.remove({ kind: 'cache', model: 'n' })).toBe(1)
    expect(await answers.find('cache', 'a', 2)).toBeDefined()
    expect(await answers.remove({ kind: 'cache' })).toBe(2)
    expect(await answers.find('idempotency', 'first', 2)).toBeDefined()
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
    expect([await answers.find('cache', 'first', 2), await partsIn(database)]).toEqual([undefined, 0])
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
          here.keep(answer({ ...like, key: `${round} ${index}` }), call),
        ),
        elsewhere.remove({ kind: 'cache', userId: 2 }),
      ])
      expect(await database.sql('select key from kept')).toEqual([])
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

  test('a stored answer that is replaced or removed leaves no parts in the database', async () => {
    const { store, database } = await openedRows(engine)
    const answers = keptAnswers(store)
    const pieces = [Buffer.alloc(MIB)]
    for (const size of [MIB, 2 * MIB, 1])
      await answers.keep(answer({ kind: 'cache', pieces: [Buffer.alloc(size)] }))
    expect(await partsIn(database)).toBe(1)
    // More than one write removes.
    for (let index = 0; index < 9; index += 1)
      await answers.keep(answer({ kind: 'cache', key: `${index}`, pieces }))
    expect(await answers.remove({ kind: 'cache' })).toBe(10)
    expect(await partsIn(database)).toBe(0)
  })

  test("deleting a user removes the user's stored answers, and those that are still being written", async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const answers = keptAnswers(store)
    const pieces = [Buffer.alloc(MIB)]
    for (const kind of ['cache', 'idempotency'] as const)
      await answers.keep(answer({ kind, userId, pieces: [Buffer.alloc(9 * MIB)] }))
    await answers.keep(answer({ kind: 'cache', key: 'of another', userId: userId + 1 }))
    const storing = answers.keep(answer({ key: 'late', userId, pieces }))
    await store.write('deleteUser', { userId, deleted_time: 1 })
    await storing
    await removeKeptOfUser(store, userId)
    expect(await database.sql(`select * from kept_sums where user_id = ${userId}`)).toEqual([])
    expect(await answers.keep(answer({ key: 'late', userId, pieces }))).toBe(false)
    expect(await answers.keep(answer({ key: 'small', userId }))).toBe(false)
    expect(await partsIn(database)).toBe(1)
    expect(await database.sql('select key from kept')).toEqual([{ key: 'of another' }])
  })

  test('the stored answers of a deleted user are removed in several writes of limited size', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const answers = keptAnswers(store)
    for (const kind of ['cache', 'idempotency'] as const)
      for (let index = 0; index < 15; index += 1)
        await answers.keep(answer({ kind, userId, key: String(index), pieces: [Buffer.alloc(MIB)] }))
    await store.write('deleteUser', { userId, deleted_time: 1 })
    let left = await partsIn(database)
    expect(left).toBe(2 * 15 * 4)
    const removed: number[] = []
    const counting: Pick<RowStore, 'read' | 'write'> = {
      read: (...read) => store.read(...read),
      async write(...write) {
        const result = await store.write(...write)
        const before = left
        left = await partsIn(database)
        removed.push(before - left)
        return result
      },
    }
    await removeKeptOfUser(counting, userId)
    expect([left, Math.max(...removed)]).toEqual([0, 32])
  })
})
