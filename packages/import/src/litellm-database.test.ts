import { describe, expect, test } from 'vitest'
import { readLitellmDatabase } from './litellm-database.ts'
import type { SourceRow } from './source.ts'

/** The accounts of a LiteLLM database whose tables have these rows. */
async function accountsIn(tables: Readonly<Record<string, readonly SourceRow[]>>) {
  const rows = (table: string) => Promise.resolve(tables[table.replace('LiteLLM_', '')] ?? [])
  const accounts = await readLitellmDatabase(
    {
      rows,
      columnsOf: async (table) => [...new Set((await rows(table)).flatMap(Object.keys))],
      tables: () => Promise.resolve([]),
      countRows: () => Promise.resolve(0),
      close: () => Promise.resolve(),
    },
    undefined,
  )
  if (!accounts) throw new Error('not a database of LiteLLM')
  return accounts
}

describe('limits of LiteLLM', () => {
  test.each(['rpm_limit', 'tpm_limit', 'max_parallel_requests'])(
    'a key, a user and the keys of a team are disabled if %s is 0, which allows no call there',
    async (limit) => {
      const { users, tokens, teams } = await accountsIn({
        UserTable: [
          { user_id: 'stopped', [limit]: 0 },
          { user_id: 'free', [limit]: null },
        ],
        TeamTable: [{ team_id: 'closed', [limit]: '0' }, { team_id: 'open' }],
        BudgetTable: [{ budget_id: 'b-0', [limit]: 0 }],
        VerificationToken: [
          { token: '1', user_id: 'free', [limit]: 0 },
          { token: '2', user_id: 'free', budget_id: 'b-0' },
          { token: '3', user_id: 'free', team_id: 'closed' },
          { token: '4', user_id: 'free', team_id: 'open' },
        ],
      })
      const note = `${limit}: 0 there, which allows no call: disabled`
      expect(users).toMatchObject([{ status: 2, notes: note }, { status: 1 }])
      expect(tokens).toMatchObject([
        { status: 2, notes: note },
        { status: 2, notes: note },
        { status: 2, notes: 'its team is blocked there: disabled' },
        { status: 1 },
      ])
      expect(tokens[3]).not.toHaveProperty('notes')
      expect(teams.map(({ notes }) => notes)).toEqual([
        [`${limit}: 0 there, which allows no call: its keys are disabled`],
        [],
      ])
    },
  )

  test('the keys of a team with a budget of 0 are disabled', async () => {
    const { tokens, teams } = await accountsIn({
      TeamTable: [{ team_id: 't', max_budget: 0, budget_duration: '30d' }],
      VerificationToken: [{ token: '1', team_id: 't' }],
    })
    expect(tokens).toMatchObject([{ status: 2 }])
    expect(teams[0]?.notes).toEqual(['max_budget: 0 there, which allows no call: its keys are disabled'])
  })

  const limitedTo = (...budgets: readonly (readonly [number, string])[]) =>
    JSON.stringify(budgets.map(([max_budget, budget_duration]) => ({ max_budget, budget_duration })))

  test('a budget of a day, a week or a month in budget_limits is the budget of a key or a team that has no other', async () => {
    const { tokens, teams } = await accountsIn({
      UserTable: [{ user_id: 'u' }],
      TeamTable: [{ team_id: 't', spend: 1, budget_limits: limitedTo([100, '30d']) }],
      VerificationToken: [
        { token: '1', user_id: 'u', spend: 500, budget_limits: limitedTo([10, '24h']) },
        { token: '2', user_id: 'u', spend: 1, max_budget: 4, budget_limits: limitedTo([2, '7d']) },
        { token: '3', user_id: 'u', budget_limits: limitedTo([1, '1h'], [5, '1d'], [9, '30d']) },
      ],
    })
    // What was spent is that of no window: it is the sum of all of them.
    expect(tokens).toMatchObject([
      { unlimited_quota: true, budget: 10_000_000, budget_period: 'day', budget_used: 0 },
      { unlimited_quota: false, remain_quota: 3_000_000, budget: 2_000_000, budget_period: 'week' },
      { unlimited_quota: true, budget: 5_000_000, budget_period: 'day' },
    ])
    expect(tokens.map(({ notes }) => notes)).toEqual([
      'budget_limits: the budget of the present day begins unspent',
      'budget_limits: the budget of the present week begins unspent',
      'budget_limits: the budget of the present day begins unspent\nbudget_limits: budgets beside that of a day have no effect here',
    ])
    expect(teams).toMatchObject([
      {
        budget: { amount: 100_000_000, period: 'month', used: 0 },
        notes: ['budget_limits: the budget of the present month begins unspent'],
      },
    ])
  })

  test.each<[string, string, SourceRow]>([
    ['of another period', limitedTo([10, '2h']), {}],
    ['beside a max_budget with a period', limitedTo([10, '24h']), { max_budget: 3, budget_duration: '7d' }],
    ['that is not a list of budgets', '[{"max_budget": "10"}]', {}],
    ['that is not JSON', '[10', {}],
  ])('budget_limits %s are in the report', async (_, budget_limits, more) => {
    const { tokens, teams } = await accountsIn({
      TeamTable: [{ team_id: 't', budget_limits, ...more }],
      VerificationToken: [{ token: '1', budget_limits, ...more }],
    })
    const note = 'budget_limits: has no effect here'
    expect(tokens).toMatchObject([{ status: 1, unlimited_quota: true, notes: note }])
    expect(teams.map(({ notes }) => notes)).toEqual([[note]])
    expect(teams[0]?.budget?.period).toBe('max_budget' in more ? 'week' : undefined)
  })

  test('a key, and the keys of a team, are disabled if budget_limits have a budget of 0', async () => {
    const budget_limits = limitedTo([0, '24h'], [5, '30d'])
    const { tokens } = await accountsIn({
      UserTable: [{ user_id: 'u' }],
      TeamTable: [{ team_id: 't', budget_limits }],
      VerificationToken: [
        { token: '1', user_id: 'u', budget_limits },
        { token: '2', user_id: 'u', team_id: 't' },
        { token: '3', user_id: 'u', budget_limits: '[]' },
        { token: '4', user_id: 'u', budget_limits: limitedTo([0, '24h']) },
      ],
    })
    expect(tokens.map(({ status }) => status)).toEqual([2, 2, 1, 2])
    expect(tokens[3]?.notes).toBe('budget_limits: 0 there, which allows no call: disabled')
  })

  test('the report does not call a period of a budget of 0 unknown', async () => {
    const { tokens } = await accountsIn({
      UserTable: [{ user_id: 'u' }],
      VerificationToken: [{ token: '1', user_id: 'u', max_budget: 0, budget_duration: '24h' }],
    })
    expect(tokens).toMatchObject([{ unlimited_quota: false, remain_quota: 0 }])
    expect(tokens[0]).not.toHaveProperty('notes')
  })

  test('a key that names a team or a budget without a row is imported, and the report says that it has no limits of one', async () => {
    const { tokens } = await accountsIn({
      UserTable: [{ user_id: 'u' }],
      TeamTable: [{ team_id: 't' }],
      VerificationToken: [
        { token: '1', user_id: 'u', team_id: 'gone' },
        { token: '2', user_id: 'u', team_id: 't', budget_id: 'b-gone' },
        { token: '3', user_id: 'u', team_id: 't' },
      ],
    })
    expect(tokens.map(({ status, notes }) => [status, notes])).toEqual([
      [1, 'its team "gone" is not there: it has no limits of one'],
      [1, 'its budget "b-gone" is not there: it has no limits of one'],
      [1, undefined],
    ])
  })

  test('the report says that the max_budget of a user also limits keys of teams here', async () => {
    const { users } = await accountsIn({
      UserTable: [
        { user_id: 'renewed', spend: 500, max_budget: 10, budget_duration: '30d' },
        { user_id: 'once', max_budget: 10, budget_duration: '2h' },
        { user_id: 'free' },
        { user_id: 'without a team', max_budget: 10 },
      ],
      TeamTable: [{ team_id: 't', max_budget: 5000, budget_duration: '30d' }],
      VerificationToken: [
        ...['renewed', 'once', 'free'].map((user_id) => ({ token: user_id, user_id, team_id: 't' })),
        { token: 'own', user_id: 'without a team' },
      ],
    })
    const note = 'max_budget: here it also limits its keys of teams, whose spend may be part of its spend'
    expect(users.map(({ notes }) => notes)).toEqual([
      note,
      `max_budget: a period of "2h" is not a day, a week or a month; what is left can be spent once\n${note}`,
      undefined,
      undefined,
    ])
  })

  test('limits by model are in the report: of a key, its budget, its team and its user', async () => {
    const byModel = { model_max_budget: '{"m": {"budget_limit": 1}}' }
    const metadata = '{"note": "x", "model_rpm_limit": {"m": 5}, "model_tpm_limit": {}}'
    const { users, tokens, teams } = await accountsIn({
      UserTable: [{ user_id: 'u', ...byModel }],
      TeamTable: [{ team_id: 't', ...byModel, metadata }],
      BudgetTable: [{ budget_id: 'b', ...byModel }],
      VerificationToken: [
        { token: '1', user_id: 'u', metadata },
        { token: '2', user_id: 'u', budget_id: 'b', metadata: '{"model_tpm_limit":{"m":1}}' },
        { token: '3', user_id: 'u', metadata: '{}', model_max_budget: '{}' },
      ],
    })
    const budgets = 'model_max_budget: has no effect here'
    const requests = 'metadata.model_rpm_limit: has no effect here'
    expect(users[0]?.['notes']).toBe(budgets)
    expect(teams[0]?.notes).toEqual([budgets, requests])
    expect(tokens.map(({ notes }) => notes)).toEqual([
      requests,
      `metadata.model_tpm_limit: has no effect here\n${budgets}`,
      undefined,
    ])
  })
})
