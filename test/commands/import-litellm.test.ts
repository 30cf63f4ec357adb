import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { commandOn } from '../fixtures/command.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { SECRET } from '../fixtures/command.ts'
import { ENGINES } from '../stores/engines.ts'
import { type LitellmDatabase, litellmDatabase } from '../stores/litellm-database.ts'

interface Key {
  readonly name: string
  readonly remain_quota: number
}

interface Report {
  readonly summary: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly lines: readonly {
    readonly kind: string
    readonly name: string
    readonly notes: readonly string[]
  }[]
}

const ANN = 'sk-A0b1C2d3E4f5G6h7I8j9Kk'
const TEAM = 'sk-9_zY-xW.vU~tS7rQ5pO3nM'
const FREE = 'sk-1a2b3c4d5e6f7g8h9i0jKL'
const WIDE = 'sk-7h6g5f4e3d2c1b0aZyXwVu'
const OWN = 'sk-zzYYxxWWvvUUttSSrrQQ11'
const LATE = 'sk-00000000001111111111Aa'
const UNREAD_TEAM = 'sk-aAbBcCdDeEfFgGhHiIjJ00'
const UNREAD_USER = 'sk-aAbBcCdDeEfFgGhHiIjJ11'
const MASTER = 'sk-the-master-key-of-the-proxy'
const DASHBOARD = 'sk-ffffffffffffffffffffff'
const POSTGRES = ENGINES.find(({ name }) => name === 'PostgreSQL')

describe.skipIf(!POSTGRES)('a LiteLLM proxy', () => {
  const ends: (() => Promise<void>)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'sluice-litellm-'))
  const file = join(folder, 'config.yaml')
  let fixture: Fixture
  let source: LitellmDatabase

  beforeAll(async () => {
    fixture = await startFixture(() => ({ users: [ROOT] }), { env: { GATEWAY_SECRET: SECRET } })
    const database = await POSTGRES?.database((end) => ends.push(end))
    if (database) source = await litellmDatabase(database)
    await fill()
    await fixture.gateway.stop()
  })
  afterAll(async () => {
    await fixture.close()
    rmSync(folder, { recursive: true })
    for (const end of ends) await end()
  })

  async function fill(): Promise<void> {
    writeFileSync(
      file,
      `
model_list:
  - model_name: gpt
    litellm_params: { model: openai/gpt-up, api_key: sk-provider, api_base: "${fixture.upstream.baseUrl('openai')}", input_cost_per_token: 0.00001, output_cost_per_token: 0.00002 }
  - model_name: spare
    litellm_params: { model: openai/spare-up, api_key: sk-provider, api_base: "${fixture.upstream.baseUrl('openai')}", input_cost_per_token: 0.00001, output_cost_per_token: 0.00002 }
router_settings:
  fallbacks: [{ gpt: [spare] }]
  model_group_alias: { best: gpt }
general_settings: { master_key: ${MASTER} }
`,
    )
    await source.insert('TeamTable', {
      team_id: 't-1',
      team_alias: 'research',
      max_budget: 50,
      budget_duration: '30d',
      spend: 12.5,
      models: ['gpt', 'best'],
    })
    await source.insert('UserTable', { user_id: 'u-1', user_alias: 'ann', max_budget: 10, spend: 2.5 })
    await source.insert('UserTable', {
      user_id: 'u-2',
      user_email: 'bob@example.com',
      max_budget: 5,
      spend: 1,
      budget_duration: '7d',
    })
    await source.insert('UserTable', { user_id: 'u-3', user_alias: 'cleo', spend: 2 })
    await source.addKey(FREE, { key_alias: 'free', user_id: 'u-3' })
    await source.addKey(ANN, { key_alias: 'ann one', user_id: 'u-1', spend: 1.5, max_budget: 4 })
    await source.addKey(TEAM, {
      key_alias: 'team',
      user_id: 'u-1',
      team_id: 't-1',
      spend: 0.75,
      total_spend: 1,
      max_budget: 2,
      budget_duration: '1d',
      rpm_limit: 7,
    })
    await source.addKey(WIDE, { key_alias: 'wide', user_id: 'u-1', team_id: 't-1', models: ['gpt', 'spare'] })
    await source.addKey(OWN, { key_alias: 'own', user_id: 'u-1', created_by: 'u-1', max_budget: 1 })
    await source.addKey(LATE, { key_alias: 'late', user_id: 'u-1', expires: '2026-01-01 00:00:00' })
    // Infinity is no amount.
    const unreadable = { max_budget: 'Infinity' }
    await source.insert('TeamTable', { team_id: 't-2', team_alias: 'endless', ...unreadable })
    await source.insert('UserTable', { user_id: 'u-4', ...unreadable })
    await source.addKey(UNREAD_TEAM, { key_alias: 'of endless', user_id: 'u-1', team_id: 't-2' })
    await source.addKey(UNREAD_USER, { key_alias: 'of u-4', user_id: 'u-4' })
    await source.addKey(MASTER, { key_alias: 'master' })
    await source.addKey(DASHBOARD, { team_id: 'litellm-dashboard' })
    await source.insert('ProxyModelTable', { model_id: '1', model_name: 'added later' })
    await source.insert('Config', {
      param_name: 'router_settings',
      param_value:
        '{"model_group_alias": {"stored": "gpt"}, "fallbacks": [{"spare": ["gpt"]}], "timeout": 5}',
    })
    await source.insert('SpendLogs', { request_id: '1' })
  }

  const importing = (...args: string[]): Promise<Report> => importingFrom(file, ...args)
  const importingFrom = async (place: string, ...args: string[]): Promise<Report> => {
    const outcome = await commandOn(
      fixture.gateway,
      'import',
      place,
      '--database',
      source.place,
      '--json',
      ...args,
    )
    expect(outcome).toMatchObject({ code: 0, err: '' })
    return outcome.json() as Report
  }

  test('a report of a LiteLLM database says what carries over and what does not, and has no key', async () => {
    const { summary, lines } = await importing()
    expect(summary).toMatchObject({
      user: { carried: 2, changed: 1, left: 1 },
      token: { carried: 5, changed: 1, left: 4 },
      group: { carried: 1, left: 1 },
    })
    const notesOf = (name: string): unknown => lines.find((line) => line.name === name)?.notes
    expect(notesOf('master')).toEqual(['it is the master key: make a key of an administrator here instead'])
    expect(notesOf('sk-...ffff')).toEqual(['it is a login of the dashboard'])
    expect(notesOf('added later')).toEqual([
      'its settings are encrypted with the salt key of LiteLLM: add the channel here',
    ])
    expect(notesOf('router_settings.timeout')).toEqual([
      'options.retries, options.balance and models.NAME.fallback take their place',
    ])
    expect(notesOf('LiteLLM_SpendLogs')).toEqual(['1 entries of the log'])
    expect(notesOf('endless')).toEqual(notesOf('u-4'))
    expect(notesOf('of endless')).toEqual(['the row of its team cannot be read'])
    expect(notesOf('of u-4')).toEqual(['the row of its user cannot be read'])
    expect(notesOf('ann')).toEqual([
      'max_budget: here it also limits its keys of teams, whose spend may be part of its spend',
    ])
    expect(notesOf('wide')).toEqual(['models: its team or user may not use spare'])
    expect(JSON.stringify(lines)).not.toMatch(/A0b1C2|9_zY|provider/)
  })

  test('a report of a LiteLLM database without a file has the fallbacks and the settings that are stored in it', async () => {
    const { lines } = await importingFrom('litellm')
    expect(lines.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['fallback of spare', 'router_settings.timeout', 'stored']),
    )
  })

  test('every key of a LiteLLM proxy works after the import as it was sent before, with its limits and its spend', async () => {
    const { gateway, upstream } = fixture
    await importing('--apply')
    await gateway.restart()
    const database = databaseOf(gateway.dataDir)
    // 1 USD is 500,000 quota units.
    expect(database.user('ann')).toMatchObject({ quota: 3_750_000, used_quota: 1_250_000 })
    expect(database.token('ann one')).toMatchObject({
      remain_quota: 1_250_000,
      used_quota: 750_000,
      key_form: 'digest',
    })
    expect(database.token('team')).toMatchObject({
      budget: 1_000_000,
      budget_period: 'day',
      used_quota: 500_000,
      rate_limit_requests: 7,
      model_limits: 'gpt,best',
      group_name: 'research',
    })
    // What was spent in the present period counts against the budget.
    expect(database.budgets()).toContainEqual(expect.objectContaining({ amount: 1_000_000, used: 375_000 }))
    expect(database.budgets()).toContainEqual(
      expect.objectContaining({ owner: 'g:research', amount: 25_000_000, used: 6_250_000 }),
    )

    for (const [key, model, upstreamModel] of [
      [FREE, 'gpt', 'gpt-up'],
      [ANN, 'gpt', 'gpt-up'],
      [FREE, 'stored', 'gpt-up'],
      [TEAM, 'best', 'gpt-up'],
      [WIDE, 'gpt', 'gpt-up'],
    ] as const) {
      const answer = await call(gateway.url, ask(model), { headers: { authorization: `Bearer ${key}` } })
      expect(answer.status, answer.text).toBe(200)
      expect(JSON.parse(upstream.only('openai').text)).toMatchObject({ model: upstreamModel })
      upstream.forget('openai')
    }
    expect(
      (await call(gateway.url, ask('gpt'), { headers: { authorization: `Bearer ${LATE}` } })).status,
    ).toBe(401)
    for (const key of [MASTER, DASHBOARD])
      expect(
        (await call(gateway.url, ask('gpt'), { headers: { authorization: `Bearer ${key}` } })).status,
      ).toBe(401)
    // The proxy allows only what both a key and its team may use.
    for (const key of [TEAM, WIDE]) {
      const beyond = await call(gateway.url, ask('spare'), { headers: { authorization: `Bearer ${key}` } })
      expect(beyond.json()).toMatchObject({ error: { code: 'model_not_allowed' } })
    }
    await expect.poll(() => database.token('ann one').key_form).toBe('plain')
    expect(database.token('team').key_form).toBe('whole')
  })

  test('the limits of a key of a LiteLLM proxy are a ceiling for its holder, unless the holder made the key', async () => {
    const account = { id: ROOT.id, accessToken: ROOT.access_token }
    const { data } = await manage<{ items: Key[] }>(fixture.gateway.url, account, 'GET /api/token/all')
    const of = (name: string) => data.items.find((one) => one.name === name)
    expect(of('ann one')).toMatchObject({
      limits_by: 'operator',
      operator_limits: { remain_quota: of('ann one')?.remain_quota },
    })
    expect(of('team')).toMatchObject({
      limits_by: 'operator',
      operator_limits: { model_limits: 'gpt,best', group: 'research' },
    })
    expect(of('own')).toMatchObject({ limits_by: '', remain_quota: 500_000 })
    expect(of('own')).not.toHaveProperty('operator_limits')
  })

  test('a second import of a LiteLLM proxy changes nothing, also for keys that were used in the meantime', async () => {
    await fixture.gateway.stop()
    const { summary } = await importing('--apply')
    expect(summary).toMatchObject({ token: { carried: 0, there: 6 }, user: { carried: 0, there: 3 } })
    await fixture.gateway.restart()
  })
})
