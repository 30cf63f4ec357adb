import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { commandOn, SECRET } from '../fixtures/command.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { litellmMigrations } from '../fixtures/litellm/schema.ts'
import { ENGINES } from '../stores/engines.ts'
import { litellmDatabase } from '../stores/litellm-database.ts'

const KEYS = 50
const TEAMS = 5
const UNITS = 500_000
/** The key whose models are a pattern. */
const PATTERNED = 3

test('50 keys of a LiteLLM database, in the tables that LiteLLM itself makes, work after the import, with their budgets, spend, models and fallbacks', async () => {
  const postgres = ENGINES.find(({ name }) => name === 'PostgreSQL')
  if (!postgres) throw new Error('there is no PostgreSQL server')
  const source = await litellmDatabase(await postgres.database(), await litellmMigrations())
  const fixture = await startFixture(() => ({ users: [ROOT] }), { env: { GATEWAY_SECRET: SECRET } })
  onTestFinished(() => fixture.close())
  const { gateway, upstream } = fixture
  const folder = mkdtempSync(join(tmpdir(), 'sluice-litellm-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'config.yaml')
  const price = 'input_cost_per_token: 0.00001, output_cost_per_token: 0.00002'
  writeFileSync(
    file,
    `model_list:
  - { model_name: m, litellm_params: { model: openai/m-up, api_key: sk-provider, api_base: "${upstream.baseUrl('m')}", ${price} } }
  - { model_name: failing, litellm_params: { model: openai/failing-up, api_key: sk-provider, api_base: "${upstream.baseUrl('failing')}", ${price} } }
  - { model_name: "openai/*", litellm_params: { model: "openai/*", api_key: sk-provider, api_base: "${upstream.baseUrl('any')}" } }
  - { model_name: vectors, litellm_params: { model: openai/vectors-up, api_key: sk-provider, api_base: "${upstream.baseUrl('vectors')}", input_cost_per_token: 0.000001 }, model_info: { mode: embedding } }
router_settings: { model_group_alias: { alias: m }, fallbacks: [{ failing: [m] }] }
`,
  )
  for (let team = 0; team < TEAMS; team += 1)
    await source.insert('TeamTable', {
      team_id: `t-${team}`,
      team_alias: `team ${team}`,
      max_budget: 100,
      budget_duration: '30d',
      spend: 10 + team,
    })
  await source.insert('BudgetTable', {
    budget_id: 'b',
    max_budget: 3,
    budget_duration: '7d',
    created_by: 'a',
    updated_by: 'a',
  })
  const keys = Array.from({ length: KEYS }, (_, n) => ({
    // As LiteLLM makes keys: 16 random bytes in base64 for URLs, with hyphens and underscores.
    key: `sk-${randomBytes(16).toString('base64url')}`,
    name: `key ${n}`,
    spend: n / 100,
  }))
  for (const [n, { key, name, spend }] of keys.entries()) {
    if (n < KEYS / 2)
      await source.insert('UserTable', {
        user_id: `u-${n}`,
        user_email: `u${n}@example.com`,
        max_budget: 20,
        spend,
      })
    await source.addKey(key, {
      key_alias: name,
      spend,
      user_id: `u-${n % (KEYS / 2)}`,
      ...(n === PATTERNED && { models: ['openai/*'] }),
      ...(n % 2 === 0 && { team_id: `t-${n % TEAMS}` }),
      ...(n % 3 === 0
        ? { max_budget: 5 }
        : n % 3 === 1
          ? { max_budget: 2, budget_duration: '1d' }
          : { budget_id: 'b' }),
    })
  }
  await gateway.stop()
  const outcome = await commandOn(gateway, 'import', file, '--database', source.place, '--apply', '--json')
  expect(outcome).toMatchObject({ code: 0, err: '' })
  await gateway.restart()
  const database = databaseOf(gateway.dataDir)
  for (const [n, { name, spend }] of keys.entries()) {
    const row = database.token(name)
    expect(row.used_quota, name).toBe(Math.round(spend * UNITS))
    if (n % 3 === 0) expect(row.remain_quota, name).toBe(Math.round((5 - spend) * UNITS))
    else expect(row, name).toMatchObject({ budget: n % 3 === 1 ? 2 * UNITS : 3 * UNITS })
  }
  for (let team = 0; team < TEAMS; team += 1)
    expect(database.budgets()).toContainEqual(
      expect.objectContaining({
        owner: `g:team ${team}`,
        amount: 100 * UNITS,
        used: (10 + team) * UNITS,
      }),
    )
  const statusOf = async (n: number, model: string): Promise<number> =>
    (
      await call(gateway.url, ask(model), {
        headers: { authorization: `Bearer ${keys[n]?.key}` },
      })
    ).status
  // A pattern of the file, one of a key, and a model that is tried after another.
  expect(await statusOf(1, 'openai/gpt-4o-mini')).toBe(200)
  expect(await statusOf(PATTERNED, 'openai/gpt-4o-mini')).toBe(200)
  expect(await statusOf(PATTERNED, 'm')).toBe(403)
  upstream.script('failing', { kind: 'status', status: 500, body: '{}' })
  expect(await statusOf(1, 'failing')).toBe(200)
  for (const { key, name } of keys.filter((_, n) => n !== PATTERNED)) {
    const answer = await call(gateway.url, ask('alias'), { headers: { authorization: `Bearer ${key}` } })
    expect(answer.status, `${name}: ${answer.text}`).toBe(200)
    expect(
      (await call(gateway.url, ask('alias'), { headers: { authorization: `Bearer ${key}x` } })).status,
    ).toBe(401)
  }
})
