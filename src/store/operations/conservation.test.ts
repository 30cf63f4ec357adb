import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount, type TestDatabase } from '../../../test/store-engines.ts'

/** Usage row of day 0 and token 1, and a daily sum with the same key. */
const logged = (id: string, quota: number) =>
  `INSERT INTO usage_log VALUES ('${id}', 5, 1, 1, 'm', 'm', 'c', 'g', 1, 0, 0, 0, 1, 0, 0, ${quota}, 'v', 1, 1, 0, 'complete', 0, 0, 0, 0, 0, 0, 0, 'chat', 'm', NULL, NULL, 0, 0, '')`
const summed = (tokens: number, quota: number) =>
  `INSERT INTO usage_days VALUES (0, 1, 1, 'm', 'c', 'g', 1, ${tokens}, 0, 0, 0, ${tokens}, 0, 0, ${quota}, 0, 0, 0, 0, 0, 0, 0, 0, 0)`

async function charge({ sql }: TestDatabase, quota: number): Promise<void> {
  await sql(`UPDATE tokens SET used_quota = ${quota}`)
  await sql(`UPDATE users SET used_quota = ${quota}`)
}

describe.each(ENGINES)('conservation on $name', (engine) => {
  test('finds nothing wrong where charges, days and log agree, trimmed or not', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const nothing = { tokens: [], users: [], days: [], openHolds: { count: 0, amount: 0 } }
    expect(await store.read('conservation')).toEqual(nothing)
    await charge(database, 12)
    await database.sql(summed(2, 12))
    await database.sql(logged('a', 5))
    await database.sql(logged('b', 7))
    expect(await store.read('conservation')).toEqual(nothing)
    await database.sql("DELETE FROM usage_log WHERE id = 'a'")
    expect(await store.read('conservation')).toEqual(nothing)
  })

  test('names a token and a user who were charged otherwise than their days say', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await charge(database, 12)
    await database.sql(summed(2, 11))
    expect(await store.read('conservation')).toMatchObject({ tokens: [1], users: [1], days: [] })
  })

  test('names a day of which the log tells more quota, more tokens, or anything at all', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await database.sql(logged('a', 5))
    expect(await store.read('conservation')).toMatchObject({ days: [0] })
    await database.sql(summed(1, 4))
    expect(await store.read('conservation')).toMatchObject({ days: [0] })
    await database.sql('UPDATE usage_days SET quota = 5')
    expect(await store.read('conservation')).toMatchObject({ days: [] })
    await database.sql('UPDATE usage_days SET input_tokens = 0')
    expect(await store.read('conservation')).toMatchObject({ days: [0] })
  })

  test('sums up what is held', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const held = (id: string, amount: number) =>
      `INSERT INTO holds VALUES ('${id}', 'o', 1, 1, ${amount}, 0, 0, 0, 'm', 'c', 'g', 0, 'v', 'chat', '', 'm')`
    await database.sql(held('a', 1000))
    await database.sql(held('b', 500))
    expect((await store.read('conservation')).openHolds).toEqual({ count: 2, amount: 1500 })
  })
})
