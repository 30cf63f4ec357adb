import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { preparedFile } from '../../../test/stores/rows.ts'
import type { RefusalCount } from '../../domain/records/refusal.ts'
import { createKysely } from '../sqlite/dialect.ts'
import { refusedCalls } from './refusals.ts'

const SLOT = 980_000

describe.each(ENGINES)('counters of refused calls on $name', (engine) => {
  test('refused calls are counted by half hour, error code, key and user, and can be summed up by each of these', async () => {
    const { store } = await openedRows(engine)
    const count = (of: Partial<RefusalCount>): RefusalCount => ({
      slot: SLOT,
      code: 'rate_limited',
      token_id: 5,
      user_id: 2,
      calls: 1,
      ...of,
    })
    await store.write('addRefusals', { counts: [count({}), count({ calls: 3 }), count({ user_id: 3 })] })
    await store.write('addRefusals', {
      counts: [
        count({ code: 'budget_exceeded', calls: 7 }),
        count({ slot: SLOT + 1 }),
        count({ token_id: 6 }),
      ],
    })
    const read = async (by: 'code' | 'token' | 'user' | 'none', code?: string) => {
      const query = { filter: { code }, by, top: 9, first: SLOT, end: SLOT + 1 }
      const { all, ofLines } = await store.read('refusedCalls', query)
      return [
        all.map(({ calls }) => calls),
        Object.fromEntries(ofLines.map(({ key, calls }) => [key, calls])),
      ]
    }
    // Without the next half hour: 1 + 3 + 1 + 7 + 1.
    expect(await read('none')).toEqual([[13], {}])
    expect(await read('code')).toEqual([[13], { rate_limited: 6, budget_exceeded: 7 }])
    expect(await read('token')).toEqual([[13], { 5: 12, 6: 1 }])
    expect(await read('user', 'rate_limited')).toEqual([[6], { 2: 5, 3: 1 }])
  })
})

test('the refused calls of a user are summed up without reading those of other users', async () => {
  const file = new DatabaseSync(await preparedFile())
  const asked: { readonly sql: string; readonly parameters: readonly unknown[] }[] = []
  const db = createKysely(file, ({ query: { sql, parameters } }) => void asked.push({ sql, parameters }))
  file.exec(`INSERT INTO usage_refusals VALUES (${SLOT}, 'rate_limited', 5, 2, 1)`)
  await refusedCalls(db, { filter: { user_id: 2 }, by: 'code', top: 9, first: SLOT, end: SLOT + 1 })
  const ofCounters = asked.filter(({ sql }) => sql.includes('usage_refusals'))
  expect(ofCounters).toHaveLength(3)
  for (const { sql, parameters } of ofCounters) {
    const plan = file.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(parameters as string[]))
    expect(plan[0]?.['detail']).toMatch(
      /^SEARCH usage_refusals USING INDEX usage_refusals_by_user \(user_id=\? AND slot>\? AND slot<\?\)/,
    )
  }
  file.close()
})
