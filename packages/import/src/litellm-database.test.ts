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
