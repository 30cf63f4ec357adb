import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../test/fixtures/random.ts'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import type { AnswerKind } from '../../domain/kept-answer.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import type { RowStore } from '../store.ts'
import { removeStoredDataOfUser } from '../stored-data-of-user.ts'

const NOW = 1_760_000_000_000

function response(id: string, of: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id,
    userId: 2,
    model: 'm',
    group: 'default',
    channel: 'c',
    keyTag: 'tag',
    upstreamId: '',
    tokens: 1,
    previousId: null,
    createdMs: NOW,
    expiresMs: NOW + 1_000,
    content: null,
    callId: null,
    rate: null,
    ...of,
  }
}
const kept = (id: string, bytes: number, of: Partial<StoredResponse> = {}): StoredResponse =>
  response(id, { content: { input: 'i'.repeat(bytes - 2), response: '{}' }, ...of })
const signature = (userId: number, hash: string, bytes: number, storedMs = NOW) => ({
  userId,
  signatures: [{ hash, content: 's'.repeat(bytes) }],
  storedMs,
  expiresMs: storedMs + 1_000,
})

const answer = (
  userId: number,
  lookup: string,
  bytes: number,
  createdMs = NOW,
  kind: AnswerKind = 'idempotency',
) => ({
  kind,
  lookup,
  answerId: `${lookup} ${createdMs}`,
  userId,
  tokenId: 1,
  model: 'm',
  head: { status: 200, headers: {} },
  facts: '',
  parts: 1,
  bytes,
  createdMs,
  expiresMs: createdMs + 1_000,
  content: Buffer.alloc(bytes),
})

type Database = Awaited<ReturnType<typeof openedRows>>['database']

/** The stored sums, and those computed from the rows: 512 bytes for each row, in addition to its content. */
async function sums({ sql }: Database): Promise<[stored: object, counted: object]> {
  const stored = await sql('select user_id, bytes from kept_sums where bytes <> 0 order by user_id')
  const counted = await sql(`
    select user_id, cast(sum(bytes) as bigint) as bytes from (
      select user_id, kept_bytes + 512 as bytes from stored_responses where content_cipher is not null
      union all select user_id, length(content_cipher) + 512 as bytes from kept_signatures
      union all select owner_id, bytes + 512 as bytes from kept_answers
      union all select -user_id, bytes + 512 as bytes from kept_answers where owner_id = 0
    ) as rows group by user_id order by user_id`)
  const numbers = (rows: readonly Readonly<Record<string, unknown>>[]): object =>
    Object.fromEntries(rows.map((row) => [String(row['user_id']), Number(row['bytes'])]))
  return [numbers(stored), numbers(counted)]
}

/** Ids of the answers that have a row, and of those that have a part. */
async function answerIds({ sql }: Database): Promise<[rows: object, parts: object]> {
  const rows = await sql('select answer_id from kept_answers order by answer_id')
  return [rows, await sql('select distinct answer_id from answer_parts order by answer_id')]
}

/** Drops responses until the maximum is met; resolves to the dropped ones, in order. */
async function dropped(store: Pick<RowStore, 'write'>, userId: number, maxBytes: number): Promise<string[]> {
  const ids: string[] = []
  for (let more = true; more; ) {
    const done = await store.write('removeOldestStoredData', { userId, maxBytes, limit: 2 })
    ids.push(...done.responseIds)
    more = done.more
  }
  return ids
}

describe.each(ENGINES)('what is kept for a user, on $name', (engine) => {
  test("the sums of a user's stored bytes are exact after any writes, replacements and removals", async () => {
    const { store, database } = await openedRows(engine)
    const random = randomFrom(7)
    const below = (count: number): number => Math.floor(random() * count)
    const among = (names: string): string => names[below(names.length)] ?? ''
    for (let step = 0; step < 250; step += 1) {
      const userId = 2 + below(3)
      const id = `${userId}${among('abcd')}`
      const atMs = NOW + below(2_000)
      const expiresMs = atMs + 1_000
      const act = [
        () => store.write('storeResponse', kept(id, 10 + below(90), { userId, createdMs: atMs, expiresMs })),
        () => store.write('storeResponse', response(id, { userId, createdMs: atMs, expiresMs })),
        () =>
          store.write('storeSignatures', {
            replies: [signature(userId, among('efgh'), 9, atMs), signature(2, 'e', 20)],
          }),
        () => store.write('deleteResponse', { userId, id, nowMs: atMs }),
        () => store.write('pruneResponses', { nowMs: atMs, limit: 2 }),
        () => store.write('pruneSignatures', { nowMs: atMs, limit: 2 }),
        () => store.write('removeOldestStoredData', { userId, maxBytes: 1_500, limit: 2 }),
        () => store.write('storeAnswer', answer(userId, among('ijkl'), below(400), atMs)),
        () => store.write('storeAnswer', answer(userId, among('mn'), below(400), atMs, 'cache')),
        () => store.write('removeAnswers', { kind: 'cache', userId, limit: 1 }),
        () => store.write('pruneAnswers', { nowMs: atMs, limit: 2 }),
        () => store.write('removeOldestStoredData', { userId: 0, maxBytes: 1_000, limit: 2 }),
      ][below(12)]
      await act?.()
      const [stored, counted] = await sums(database)
      expect(stored, `after step ${step}`).toEqual(counted)
      const [rows, parts] = await answerIds(database)
      expect(parts, `after step ${step}`).toEqual(rows)
    }
  })

  test("the oldest stored responses and signatures of a user are removed when all together exceed the user's maximum size", async () => {
    const { store, database } = await openedRows(engine)
    await store.write('storeResponse', kept('second', 1_000, { createdMs: NOW + 1 }))
    await store.write('storeSignatures', { replies: [signature(2, 'first', 100, NOW)] })
    await store.write('storeResponse', kept('fourth', 1_000, { createdMs: NOW + 3 }))
    await store.write('storeResponse', kept('other', 1_000, { createdMs: NOW, userId: 3 }))
    await store.write('storeResponse', response('native', { createdMs: NOW }))
    await store.write('storeSignatures', { replies: [signature(2, 'third', 100, NOW + 2)] })
    const [before] = await sums(database)
    expect(await dropped(store, 2, (before as Record<string, number>)['2'] ?? 0)).toEqual([])
    // The two newest of the four responses fit.
    expect(await dropped(store, 2, 2_300)).toEqual(['second'])
    const rows = await database.sql('select id from stored_responses order by id')
    expect(rows.map(({ id }) => id)).toEqual(['fourth', 'native', 'other'])
    expect(await database.sql('select hash from kept_signatures')).toEqual([{ hash: 'third' }])
    expect(await dropped(store, 2, 0)).toEqual(['fourth'])
    const [stored, counted] = await sums(database)
    expect([stored, counted]).toEqual([{ 3: 1_512 }, { 3: 1_512 }])
  })

  test("the sums of a user's stored bytes are deleted with the user", async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    await store.write('storeResponse', kept('a', 100, { userId }))
    await store.write('storeSignatures', { replies: [signature(userId, 'a', 100)] })
    await store.write('storeAnswer', answer(userId, 'a', 100, NOW, 'cache'))
    await store.write('deleteUser', { userId, deleted_time: NOW / 1_000 })
    await removeStoredDataOfUser(store, userId)
    expect(await database.sql('select * from kept_sums where bytes <> 0 or user_id <> 0')).toEqual([])
  })
})
