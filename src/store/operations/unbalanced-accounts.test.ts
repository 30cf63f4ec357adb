import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount, type TestDatabase } from '../../../test/stores/engines.ts'
import { insertion } from '../../../test/stores/usage-log-rows.ts'
import { addSums } from '../../../test/stores/usage-sums-rows.ts'

/** A usage row of day 0 and token 1, and a daily sum with the same key. */
const logged = (id: string, quota: number) =>
  insertion('usage_log', {
    id,
    ended_ms: 5,
    user_id: 1,
    token_id: 1,
    model: 'm',
    requested_model: 'm',
    upstream_model: 'm',
    channel: 'c',
    group_name: 'g',
    input_tokens: 1,
    output_tokens: 1,
    quota,
    price_version: 'v',
    duration_ms: 1,
    first_byte_ms: 1,
    stream: 0,
    reason: 'complete',
    kind: 'chat',
  })
const summed = (tokens: number, quota: number) =>
  addSums('day', 0, { group_name: 'g' }, { requests: 1, input_tokens: tokens, output_tokens: tokens, quota })

async function charge({ sql }: TestDatabase, quota: number): Promise<void> {
  await sql(`UPDATE tokens SET used_quota = ${quota}`)
  await sql(`UPDATE users SET used_quota = ${quota}`)
}

describe.each(ENGINES)('conservation on $name', (engine) => {
  test('the audit of the books finds nothing wrong where charges, daily sums and usage log agree', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const nothing = { tokens: [], users: [], days: [], openHolds: { count: 0, amount: 0 } }
    expect(await store.read('findUnbalancedAccounts')).toEqual(nothing)
    await charge(database, 12)
    await database.sql(summed(2, 12))
    await database.sql(logged('a', 5))
    await database.sql(logged('b', 7))
    expect(await store.read('findUnbalancedAccounts')).toEqual(nothing)
    await database.sql("DELETE FROM usage_log WHERE id = 'a'")
    expect(await store.read('findUnbalancedAccounts')).toEqual(nothing)
  })

  test('the audit of the books names a token and a user whose charges differ from their daily sums', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await charge(database, 12)
    await database.sql(summed(2, 11))
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [1], users: [1], days: [] })
  })

  test('the audit of the books names a day for which the usage log has more than the daily sum', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await database.sql(logged('a', 5))
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ days: [0] })
    await database.sql(summed(1, 4))
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ days: [0] })
    await database.sql('UPDATE usage_sums SET quota = 5')
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ days: [] })
    await database.sql('UPDATE usage_sums SET input_tokens = 0')
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ days: [0] })
  })

  test('the audit of the books reports the number and the sum of the open holds', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const held = (id: string, amount: number) =>
      insertion('holds', {
        id,
        owner: 'o',
        token_id: 1,
        user_id: 1,
        amount,
        prompt_amount: 0,
        started_ms: 0,
        model: 'm',
        channel: 'c',
        group_name: 'g',
        stream: 0,
        price_version: 'v',
        kind: 'chat',
        budgets: '',
        requested_model: 'm',
      })
    await database.sql(held('a', 1000))
    await database.sql(held('b', 500))
    expect((await store.read('findUnbalancedAccounts')).openHolds).toEqual({ count: 2, amount: 1500 })
  })
})
