import { expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'

const NOW = Date.UTC(2026, 10, 22, 12)

test.each(ENGINES)(
  'budget counters of periods that ended long ago are deleted with their recorded alert thresholds on $name',
  async (engine) => {
    const { store, database } = await openedRows(engine)
    const gone = ['b:day:2026-08-13:t:1', 'b:month:2026-07-01:g:sales', 'b:week:2026-08-03:u:1']
    const kept = ['b:day:2026-08-14:t:1', 'b:month:2026-08-01:g:sales', 'b:week:2026-08-10:u:1']
    for (const account of [...gone, ...kept])
      await database.sql(
        `insert into budget_periods (account, owner, amount, used) values ('${account}', 'u:1', 10, 9)`,
      )
    const isShared = engine.name !== 'SQLite'
    const operation = isShared ? 'pruneLentBudgets' : 'pruneBudgets'
    if (isShared) {
      kept.push('b:day:2026-01-01:t:2')
      await database.sql(
        "insert into budget_periods (account, owner, amount, used, leased) values ('b:day:2026-01-01:t:2', 't:2', 10, 9, 1)",
      )
    }
    const prune = (): Promise<number> => store.write(operation, { nowMs: NOW, limit: 100 })
    expect([await prune(), await prune(), await prune(), await prune()]).toEqual([1, 1, 1, 0])
    const accountsOf = async (table: string): Promise<string[]> =>
      (await database.sql(`select account from ${table}`)).map(({ account }) => String(account)).toSorted()
    expect(await accountsOf('budget_periods')).toEqual(kept.toSorted())
    expect(await accountsOf('budget_crossings')).toEqual(kept.toSorted())
  },
)
