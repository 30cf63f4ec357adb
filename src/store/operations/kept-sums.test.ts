import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../test/fixtures/random.ts'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { keptEntry, keptStore, responseRow } from '../../../test/stores/kept.ts'
import { byTier } from '../../../test/runner/tier.ts'
import type { RowStore } from '../store.ts'

const NOW = 1_760_000_000_000

type Database = Awaited<ReturnType<typeof openedRows>>['database']

/** The stored sums, and those computed from the rows: 512 bytes for each row, in addition to its content. */
async function sums({ sql }: Database): Promise<[stored: object, counted: object]> {
  const stored = await sql(
    'select share, user_id, bytes from kept_sums where bytes <> 0 order by share, user_id',
  )
  const counted = await sql(`
    select share, user_id, cast(sum(bytes) as bigint) as bytes from (
      select share, owner_id as user_id, bytes + 512 as bytes from kept
      union all select share, user_id, bytes + 512 as bytes from kept where share = 'cache'
    ) as rows group by share, user_id order by share, user_id`)
  const numbers = (rows: readonly Readonly<Record<string, unknown>>[]): object =>
    Object.fromEntries(
      rows.map((row) => [`${String(row['share'])} ${String(row['user_id'])}`, Number(row['bytes'])]),
    )
  return [numbers(stored), numbers(counted)]
}

/** Ids of the contents that have a row, and of those that have a part. */
async function contentIds({ sql }: Database): Promise<[rows: object, parts: object]> {
  const rows = await sql('select content_id from kept where parts > 0 order by content_id')
  return [rows, await sql('select distinct content_id from kept_parts order by content_id')]
}

/** Removes entries until the maximum is met; resolves to the keys that are left, in order. */
async function leftOf(store: Pick<RowStore, 'write'>, { sql }: Database, maxBytes: number): Promise<string> {
  for (let more = true; more; )
    ({ more } = await store.write('removeOldestKept', { share: 'user', userId: 2, maxBytes, limit: 2 }))
  const rows = await sql('select key from kept where user_id = 2 order by created_ms')
  return rows.map(({ key }) => String(key)).join(' ')
}

describe.each(ENGINES)('what is kept for a user, on $name', (engine) => {
  test("the sums of a user's stored bytes are exact after any writes, replacements and removals", async () => {
    const { store, database } = await openedRows(engine)
    const kept = keptStore(store)
    const random = randomFrom(7)
    const below = (count: number): number => Math.floor(random() * count)
    const among = (names: string): string => names[below(names.length)] ?? ''
    for (let step = 0; step < byTier(100, 250); step += 1) {
      const userId = 2 + below(3)
      const id = `${userId}${among('abcd')}`
      const atMs = NOW + below(2_000)
      const of = { userId, createdMs: atMs, expiresMs: atMs + 1_000 }
      const removeOldest = (share: 'user' | 'cache', owner: number, maxBytes: number) =>
        store.write('removeOldestKept', { share, userId: owner, maxBytes, limit: 2 })
      const act = [
        () => kept.write(keptEntry('response', id, { ...of, bytes: below(90), record: responseRow(id, of) })),
        () =>
          kept.write(keptEntry('response', id, { ...of, record: responseRow(id, of) }), [Buffer.alloc(9)]),
        () =>
          kept.writeFacts([
            keptEntry('signature', among('efgh'), { ...of, bytes: 9 }),
            keptEntry('signature', 'e', { ...of, userId: 2, bytes: 20 }),
          ]),
        () => kept.remove({ kind: 'response', userId, key: id }),
        () => store.write('pruneKept', { nowMs: atMs, limit: 2 }),
        () => removeOldest('user', userId, 1_500),
        () => removeOldest('cache', 0, 1_000),
        () => kept.write(keptEntry('idempotency', among('ijkl'), of), [Buffer.alloc(below(400))]),
        () => kept.write(keptEntry('cache', among('mn'), of), [Buffer.alloc(below(400))]),
        () => store.write('removeKept', { kind: 'cache', userId, limit: 1 }),
      ][below(10)]
      await act?.()
      const [stored, counted] = await sums(database)
      expect(stored, `after step ${step}`).toEqual(counted)
      const [rows, parts] = await contentIds(database)
      expect(parts, `after step ${step}`).toEqual(rows)
    }
  })

  test("the oldest entries of a user are removed, whatever their kind, when all together exceed the user's maximum size", async () => {
    const { store, database } = await openedRows(engine)
    const kept = keptStore(store)
    const response = (key: string, createdMs: number, userId = 2): Promise<boolean> => {
      const record = responseRow(key, { userId })
      return kept.write(keptEntry('response', key, { createdMs, userId, bytes: 1_000, record }))
    }
    await response('second', NOW + 1)
    await kept.writeFacts([keptEntry('signature', 'first', { createdMs: NOW, bytes: 100 })])
    await response('fifth', NOW + 4)
    await response('other', NOW, 3)
    await store.write('storeResponse', responseRow('native'))
    await kept.writeFacts([keptEntry('signature', 'fourth', { createdMs: NOW + 3, bytes: 100 })])
    await kept.write(keptEntry('idempotency', 'third', { createdMs: NOW + 2 }), [Buffer.alloc(100)])
    await kept.write(keptEntry('cache', 'cached', { createdMs: NOW, userId: 3 }), [Buffer.alloc(100)])
    const whole = 2 * 1_512 + 3 * 612
    expect(await leftOf(store, database, whole)).toBe('first second third fourth fifth')
    expect(await leftOf(store, database, whole - 1)).toBe('second third fourth fifth')
    expect(await leftOf(store, database, 1_512 + 2 * 612)).toBe('third fourth fifth')
    expect(await leftOf(store, database, 1_512)).toBe('fifth')
    const ids = await database.sql('select id from stored_responses order by id')
    expect(ids.map(({ id }) => id)).toEqual(['fifth', 'native', 'other'])
    expect(await leftOf(store, database, 0)).toBe('')
    const left = { 'cache 0': 612, 'cache 3': 612, 'user 3': 1_512 }
    expect(await sums(database)).toEqual([left, left])
  })
})
