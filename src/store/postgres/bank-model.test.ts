import fc from 'fast-check'
import { Client, types } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { BankModel } from '../../../test/ledger/bank-model.ts'
import { BANKS, exactly, held } from '../../../test/ledger/bank-fixture.ts'
import { openedRows, type TestDatabase } from '../../../test/stores/engines.ts'
import { newToken, newUser, settledCall } from '../../../test/stores/rows.ts'
import { formatBudgetList } from '../../domain/budget.ts'
import type { RowStore } from '../store.ts'
import { serializeForOutbox } from '../usage-row.ts'
import { postgresBank } from './bank.ts'
import { BankConnection } from './bank-connection.ts'

const NODES = ['a', 'b', 'c'] as const
const node = fc.constantFrom(...NODES)
/** The account of a budget that nothing has opened. */
const NOTHING = { remain: 0, used: 0, leased: 0, epoch: 0 }

type Step =
  | { readonly do: 'acquire'; readonly node: string; readonly need: number; readonly max: number }
  /** Records a call to be reported. */
  | { readonly do: 'spend'; readonly node: string; readonly quota: number }
  /** Reports the recorded calls, and perhaps repeats the report. */
  | { readonly do: 'apply'; readonly node: string; readonly held: number; readonly again: boolean }
  | { readonly do: 'release'; readonly node: string; readonly keep: number }
  | { readonly do: 'silence'; readonly node: string; readonly minutes: number }
  | { readonly do: 'look' }
  | { readonly do: 'set'; readonly kind: 't' | 'u'; readonly remain: number }
  | { readonly do: 'enable'; readonly isEnabled: boolean }
  /** Changes the amount of the budget that later requests state. */
  | { readonly do: 'budget'; readonly amount: number }

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('acquire' as const),
        node,
        need: fc.oneof(fc.constant(0), fc.nat(600)),
        max: fc.nat(900),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('spend' as const), node, quota: fc.nat(300) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('apply' as const),
        node,
        held: fc.nat(400),
        again: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), node, keep: fc.nat(300) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('silence' as const),
        node,
        minutes: fc.constantFrom(0.9, 1.1, 16.1),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('look' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('set' as const),
        kind: fc.constantFrom('t' as const, 'u' as const),
        // At 0, the token would become exhausted.
        remain: fc.integer({ min: 1, max: 3_000 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('enable' as const), isEnabled: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('budget' as const),
        amount: fc.integer({ min: 1, max: 3_000 }),
      }),
    },
  ),
  { minLength: 25, maxLength: 60, size: 'max' },
)

/** Runs the steps on a separate user, token and nodes, and compares with the model after each step. */
async function runs(
  store: RowStore,
  sql: TestDatabase['sql'],
  connection: BankConnection,
  run: number,
  sequence: readonly Step[],
): Promise<void> {
  const user = await store.write('createUser', newUser({ username: `u${run}`, quota: 3_000 }))
  const token = await store.write('createToken', newToken(user.id, { key: `k${run}`, remain_quota: 2_000 }))
  const model = new BankModel(2_000, 3_000)
  const ours = (name: string): string => `${name}${run}`
  const bank = (name: string) => postgresBank(connection, ours(name))
  const noted = new Map<string, { id: string; quota: number }[]>()
  const known = new Map<string, { id: string; quota: number }[]>()
  const of = { t: `t:${token.id}`, u: `u:${user.id}`, b: `b:month:2026-11-01:g:run ${run}` } as const
  const budgets = formatBudgetList([of.b])
  const row = ({ id, quota }: { id: string; quota: number }): string =>
    serializeForOutbox(settledCall({ userId: user.id, tokenId: token.id }, id, { quota, budgets }))
  let budget = 2_500
  // Registers the nodes, by their first report.
  for (const name of NODES) await bank(name).compare()
  const silent = new Map<string, number>()
  // Sets expiry times explicitly, so that a slow machine does not count as silence.
  const setClocks = () =>
    sql(
      `update nodes set expires = now() - (silent.minutes - 1) * interval '1 minute'
       from (values ${NODES.map((name) => `('${ours(name)}', ${silent.get(name) ?? 0})`).join()}) as silent (name, minutes)
       where node = silent.name`,
    )
  for (const [index, step] of sequence.entries()) {
    await setClocks()
    switch (step.do) {
      case 'acquire': {
        const { need, max } = step
        const [loan] = await bank(step.node).acquire([
          {
            ...exactly(need, token.id),
            max: { token: max, user: max },
            budgets: [{ account: of.b, amount: budget, need, max }],
          },
        ])
        expect(loan).toMatchObject({ granted: model.acquire(step.node, need, max, budget) })
        break
      }
      case 'spend':
        noted.set(step.node, [...(noted.get(step.node) ?? []), { id: ours(`${index}-`), quota: step.quota }])
        break
      case 'apply': {
        const fresh = noted.get(step.node) ?? []
        const calls = step.again ? [...(known.get(step.node) ?? []), ...fresh] : fresh
        known.set(step.node, [...(known.get(step.node) ?? []), ...fresh])
        noted.delete(step.node)
        silent.delete(step.node)
        const estimate = Math.floor(step.held / 3)
        await bank(step.node).apply(calls.map(row), [
          held(of.t, step.held, estimate),
          held(of.u, step.held),
          held(of.b, step.held, estimate),
        ])
        model.apply(step.node, calls, step.held, estimate)
        break
      }
      case 'release':
        await bank(step.node).release([
          { account: of.t, keep: step.keep },
          { account: of.u, keep: step.keep },
          { account: of.b, keep: step.keep },
        ])
        model.release(step.node, step.keep)
        break
      case 'silence':
        silent.set(step.node, step.minutes)
        model.silence(step.node, step.minutes)
        break
      case 'look':
        for (const name of NODES) {
          await postgresBank(connection, 'onlooker').compare()
          model.maintain(name)
          // The node is lost: its state is unknown until its next report.
          if ((silent.get(name) ?? 0) > 16) silent.delete(name)
        }
        break
      case 'set':
        await (step.kind === 't'
          ? store.write('changeToken', {
              tokenId: token.id,
              userId: user.id,
              fields: { remain_quota: step.remain },
              maxQuota: 1e12,
              nowMs: 0,
            })
          : store.write('changeUser', {
              userId: user.id,
              quota: { mode: 'override', value: step.remain, maxQuota: 1e12 },
            }))
        model.set(step.kind, step.remain)
        break
      case 'enable':
        await sql(`update tokens set status = ${step.isEnabled ? 1 : 2} where id = ${token.id}`)
        model.enable(step.isEnabled)
        break
      case 'budget':
        budget = step.amount
    }
    const [t, u, b = NOTHING] = await sql(
      `select remain_quota as remain, used_quota as used, leased, epoch from tokens where id = ${token.id}
       union all select quota, used_quota, leased, epoch from users where id = ${user.id}
       union all select amount - used, used, leased, epoch from budget_periods where account = '${of.b}'`,
    )
    expect({ t, u, b }).toEqual(model.accounts)
    const leases = await sql(
      `select account, node, amount from leases where account in ('${of.t}', '${of.u}', '${of.b}') and amount > 0`,
    )
    const kept = [...model.leases].filter(([, { amount }]) => amount > 0)
    expect(leases).toHaveLength(kept.length)
    for (const [name, { amount }] of kept) {
      const account = of[name.slice(0, 1) as 't' | 'u' | 'b']
      expect(leases).toContainEqual({ account, node: ours(name.slice(1)), amount })
    }
  }
  for (const name of [...NODES.map(ours), 'onlooker']) await postgresBank(connection, name).leave()
}

test.each(BANKS)(
  'whatever quota nodes lease, report, return and lose, the quota bank on $name has the same balances as a simple model',
  async (engine) => {
    const { store, database } = await openedRows(engine)
    const connection = new BankConnection(database.place, { hasRole: true })
    onTestFinished(() => connection.close())
    const onlooker = new Client({ connectionString: database.place })
    onlooker.setTypeParser(types.builtins.INT8, Number)
    onTestFinished(() => onlooker.end())
    await onlooker.connect()
    const sql: TestDatabase['sql'] = async (statement) =>
      (await onlooker.query<Record<string, unknown>>(statement)).rows
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, (sequence) => runs(store, sql, connection, (run += 1), sequence)),
      {
        numRuns: Number(process.env['RUNS'] ?? 12),
      },
    )
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  },
  300_000,
)
