import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BANKS } from '../../test/ledger/bank-fixture.ts'
import type { ContentEntry } from './entries.ts'
import { PostgresContentDatabase } from './postgres-content-database.ts'
import { DAY_MS, dayOf } from './retention.ts'

const NOW_MS = Date.now()

/** An entry that is removed in so many days. */
function entry(days: number): ContentEntry {
  const time = NOW_MS.toString(16).padStart(12, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(days).padStart(12, '0')}`
  const facts = {
    what: 'full',
    bytes: 1,
    sha256: '',
    lengths: '[]',
    sealed: Buffer.from(`sealed ${days}`),
    keyId: `k${days}`,
  }
  const place = { object: '', objectAt: 0, objectBytes: 0 }
  const call = { id, userId: 1, tokenId: 1, startedMs: NOW_MS, expiresMs: NOW_MS + DAY_MS }
  return { ...call, ...facts, ...place, dropDay: dayOf(NOW_MS) + days }
}

describe.each(BANKS)('the content log in $name', (engine) => {
  test('the PostgreSQL partition of contents that expire on a day is dropped on that day, and their keys are erased', async () => {
    const database = await engine.database(onTestFinished)
    const [first, other] = [
      PostgresContentDatabase.open(database.place),
      PostgresContentDatabase.open(database.place),
    ]
    expect(await first.prune(dayOf(NOW_MS), 0)).toBe(0)
    const [soon, later] = [entry(2), entry(8)]
    await other.write(async (writer) => {
      await writer.addKeys(
        [soon, later].map(({ keyId, dropDay }) => ({
          id: keyId,
          userId: 1,
          day: dayOf(NOW_MS),
          endDay: dropDay,
          cipher: `the cipher of ${keyId}`,
        })),
      )
      await writer.append([soon, later])
    })
    const partitions = async (): Promise<number> =>
      (await database.sql("select inhrelid from pg_inherits where inhparent = 'content_entries'::regclass"))
        .length
    const fileHas = async (text: string): Promise<boolean> => {
      await database.sql('checkpoint')
      const [row] = await database.sql(
        `select position('${text}'::bytea in pg_read_binary_file(pg_relation_filepath('content_keys'))) > 0 as found`,
      )
      return Boolean(row?.['found'])
    }
    const before = await partitions()
    expect(await fileHas('the cipher of k2')).toBe(true)
    expect(await first.prune(soon.dropDay - 1, 0)).toBe(0)
    // Whoever has an old view of the database delays nothing.
    const reader = new Client({ connectionString: database.place })
    await reader.connect()
    await reader.query('begin isolation level repeatable read')
    await reader.query('select count(*) from pg_class')
    expect(await first.prune(soon.dropDay, 0)).toBe(2)
    expect(await partitions()).toBe(before - 1)
    expect((await first.keys(['k2', 'k8'])).map(({ id }) => id)).toEqual(['k8'])
    expect((await other.heads([soon.id, later.id])).map(({ id }) => id)).toEqual([later.id])
    expect([await fileHas('the cipher of k2'), await fileHas('the cipher of k8')]).toEqual([false, true])
    await reader.end()
    // What is added later has a partition again.
    await first.write((writer) => writer.append([{ ...later, id: soon.id, keyId: 'k8' }]))
    expect((await other.heads([soon.id])).map(({ id }) => id)).toEqual([soon.id])
    for (const database of [first, other]) await database.close()
  })
})
