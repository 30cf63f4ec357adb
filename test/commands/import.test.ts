import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { logIn } from '../fixtures/console.ts'
import { commandOn, type Outcome, SECRET, sluice } from '../fixtures/command.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type MariadbServer, startMariadbServer, withoutMariadb } from '../fixtures/mariadb-server.ts'
import { BASE_ENVIRONMENT, programFolder } from '../fixtures/program.ts'
import { type FamilyDatabase, familyDatabase, type SourceEngine } from '../stores/family-database.ts'
import { ENGINES } from '../stores/engines.ts'
import { newToken, openedStore } from '../stores/rows.ts'
import { embeddedRows } from './embedded-rows.ts'

/** A line of the report. */
interface Line {
  readonly kind: string
  readonly id: number | null
  readonly name: string
  readonly fate: 'carried' | 'changed' | 'there' | 'left'
  readonly notes: readonly string[]
  readonly count?: number
  readonly way_out?: string
}

/** The output of `--json`. */
interface Report {
  readonly family: string
  readonly applied: boolean
  readonly summary: Readonly<Record<string, Readonly<Record<Line['fate'], number>>>>
  readonly passwords_left: number
  readonly units_converted: string | null
  readonly failed: number
  readonly lines: readonly Line[]
}

const KEY = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'
const PASSWORD = 'correct horse'
/** The password, as the other gateways store it, at the minimum cost. */
const BCRYPT = '$2a$04$pgj3SNce2kzbgilC7id6Y.bnhsHzJ.6A6oBK.B.Dx.OzzvFK7vsXe'
const user = { password: BCRYPT, status: 1, role: 1, group: 'default' }
const token = { status: 1, expired_time: -1, unlimited_quota: false, remain_quota: 1_000_000, used_quota: 0 }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-import-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function importInto(dataDir: string, ...args: string[]): Promise<Outcome> {
  return sluice(['import', ...args], { DATA_DIR: dataDir, GATEWAY_SECRET: SECRET })
}

async function report(dataDir: string, ...args: string[]): Promise<Report> {
  const outcome = await importInto(dataDir, ...args, '--json')
  expect(outcome).toMatchObject({ code: 0, err: '' })
  return outcome.json() as Report
}

function fateOf({ lines }: Report, kind: string, name: string): Pick<Line, 'fate' | 'notes'> | undefined {
  const line = lines.find((one) => one.kind === kind && one.name === name)
  return line && { fate: line.fate, notes: line.notes }
}

const SOURCES: readonly SourceEngine[] = [
  ...ENGINES.map(({ name }) => name),
  ...(withoutMariadb('the import from MariaDB') ? [] : (['MariaDB'] as const)),
]

describe.each(SOURCES)('a new-api on %s', (engine) => {
  let fixture: Fixture
  let source: FamilyDatabase
  let server: MariadbServer | undefined

  beforeAll(async () => {
    fixture = await startFixture(() => ({}), { env: { GATEWAY_SECRET: SECRET } })
    if (engine === 'MariaDB') server = await startMariadbServer()
  })
  afterAll(async () => {
    await fixture.close()
    await server?.stop()
  })

  async function fill(): Promise<void> {
    source = await familyDatabase('new-api', engine, server)
    const { port } = fixture.upstream
    await source.insert('options', { key: 'GroupRatio', value: '{"default":1,"vip":0.8}' })
    await source.insert('options', { key: 'ModelRatio', value: '{"m":0.5,"never-served":1.10}' })
    await source.insert('options', { key: 'CompletionRatio', value: '{"m":4}' })
    await source.insert('options', { key: 'RetryTimes', value: '1' })
    await source.insert('options', { key: 'SMTPToken', value: 'hidden-secret' })
    await source.insert('users', { ...user, id: 1, username: 'root', role: 100, quota: 100, used_quota: 0 })
    await source.insert('users', {
      ...user,
      id: 7,
      username: 'ann',
      display_name: 'Ann',
      email: 'ann@example.com',
      github_id: 'gh-7',
      access_token: 'AnnsAccessToken0123456789abcdef',
      group: 'vip',
      quota: 5_000_000,
      used_quota: 1_500,
      request_count: 12,
      setting: '{"sidebar_modules":"{}"}',
    })
    await source.insert('users', {
      ...user,
      id: 8,
      username: 'gone',
      quota: 1,
      used_quota: 0,
      deleted_at: '2026-01-01 00:00:00',
    })
    await source.insert('tokens', {
      ...token,
      id: 3,
      user_id: 7,
      key: KEY,
      name: 'laptop',
      used_quota: 1_000,
      group: '',
      allow_ips: '',
      model_limits_enabled: false,
      model_limits: '',
    })
    await source.insert('tokens', {
      ...token,
      id: 4,
      user_id: 7,
      key: `${KEY}x`,
      name: 'limited',
      unlimited_quota: true,
      model_limits_enabled: true,
      model_limits: 'other',
      allow_ips: '10.0.0.0/8\nrubbish',
      group: 'auto',
    })
    await source.insert('tokens', {
      ...token,
      id: 5,
      user_id: 7,
      key: `${KEY}y`,
      name: 'thrown away',
      deleted_at: '2026-01-01 00:00:00',
    })
    await source.insert('channels', {
      id: 1,
      type: 1,
      key: 'upstream-key-one\nupstream-key-two',
      status: 1,
      name: 'main',
      base_url: `http://127.0.0.1:${port}/main`,
      models: 'm',
      group: 'default,vip',
      model_mapping: '{"m":"step","step":"m-upstream"}',
      priority: 3,
      weight: 0,
      header_override: '{"x-plan":"gold","x-caller":"{client_header:X-Caller}"}',
      param_override: '{"temperature":0}',
      status_code_mapping: '{"400":"503","429":"200"}',
      settings: '{"disable_store":true}',
      channel_info: '{"is_multi_key":true,"multi_key_status_list":{"0":2}}',
    })
    await source.insert('channels', {
      id: 2,
      type: 37,
      key: 'a',
      status: 1,
      name: 'dify',
      models: 'claude',
      group: 'default',
    })
    await source.insert('channels', {
      id: 3,
      type: 33,
      key: 'AKIAIOSFODNN7EXAMPLE|hidden-secret-of-aws-0123456789|eu-central-1',
      status: 1,
      name: 'bedrock',
      models: 'claude-sonnet-4-5',
      group: 'default',
    })
  }

  test('a dry run of an import reports the rows, and writes nothing', async () => {
    await fill()
    const dataDir = join(folder(), 'not-there-yet')
    const dry = await report(dataDir, source.place, '--role', 'root')
    expect(existsSync(dataDir)).toBe(false)
    expect(dry).toMatchObject({
      family: 'new-api',
      applied: false,
      passwords_left: 0,
      units_converted: null,
      failed: 0,
    })
    expect(dry.summary).toMatchObject({
      user: { carried: 1, changed: 1, left: 1 },
      token: { carried: 1, changed: 1, left: 1 },
      channel: { carried: 1, changed: 1, left: 1 },
      group: { carried: 2 },
    })
    const plain = await importInto(dataDir, source.place, '--role', 'root', '--dry-run')
    expect(plain).toMatchObject({ code: 0, err: '' })
    expect(plain.out).toContain('user 8 "gone" does not carry over: it is deleted there\n')
    expect(plain.out).toContain(
      'channel 2 "dify" does not carry over: type: expected an upstream that speaks chat completions, messages, Gemini or rerank; ' +
        'type 37, Dify, does not\n',
    )
    expect(plain.out).not.toContain('root: no user')
    expect(plain.out).not.toContain('passwords:')
    expect(plain.out).toContain('Nothing was written. Run it again with --apply to import.\n')
    expect(plain.out).not.toMatch(/hidden-secret|upstream-key|AbCdEf|AnnsAccess/)
    expect((await importInto(dataDir, source.place, '--dry-run', '--apply')).code).toBe(1)
  })

  test('a database of new-api is imported: its keys and access tokens work, and prices and balances are the same', async () => {
    await fill()
    const { gateway, upstream } = fixture
    const running = await commandOn(gateway, 'import', source.place, '--apply')
    expect(running).toMatchObject({ code: 1 })
    expect(running.err).toContain('stop it first, as it would not know of what is imported')
    await gateway.stop()
    const outcome = await commandOn(gateway, 'import', source.place, '--apply', '--json')
    expect(outcome).toMatchObject({ code: 0, err: '' })
    const done = outcome.json() as Report
    await gateway.restart()

    expect(fateOf(done, 'user', 'ann')).toEqual({ fate: 'carried', notes: [] })
    expect(fateOf(done, 'user', 'root')).toMatchObject({ fate: 'there' })
    expect(fateOf(done, 'token', 'limited')).toEqual({
      fate: 'changed',
      notes: [
        'allow_ips: left out invalid addresses (1 of 2)',
        'group: "auto" is not known here; the key has the group of its user',
      ],
    })
    expect(fateOf(done, 'channel', 'bedrock')).toEqual({ fate: 'carried', notes: [] })
    expect(fateOf(done, 'channel', 'main')).toEqual({
      fate: 'changed',
      notes: [
        'status_code_mapping.429 has no effect here',
        'left out 1 of 2 keys, which are disabled there',
        'header_override: left out "x-caller", which is not a fixed value',
      ],
    })

    const answer = await call(gateway.url, ask('m'), { key: KEY })
    expect(answer.status).toBe(200)
    const sent = upstream.only('main')
    expect(sent.headers).toMatchObject({ authorization: 'Bearer upstream-key-two', 'x-plan': 'gold' })
    expect(JSON.parse(sent.text)).toMatchObject({ model: 'm-upstream', temperature: 0 })
    // A ratio of 0.5 is 1 USD per million prompt tokens, or 0.5 quota units each; output costs four times
    // that; all of it times 0.8.
    const { prompt_tokens: prompt, completion_tokens: output } = answer.json().usage
    const charge = Math.round((prompt * 0.5 + output * 2) * 0.8)
    const database = databaseOf(gateway.dataDir)
    await expect.poll(() => database.token('laptop').used_quota).toBe(1_000 + charge)
    expect(database.token('laptop')).toMatchObject({ id: 3, user_id: 7, remain_quota: 1_000_000 - charge })
    expect(database.user('ann')).toMatchObject({
      id: 7,
      quota: 5_000_000 - charge,
      used_quota: 1_500 + charge,
      request_count: 13,
    })

    upstream.script('main', { kind: 'status', status: 400, body: errorBody('not so') })
    expect((await call(gateway.url, ask('m'), { key: KEY })).status).toBe(503)

    expect(database.user('ann').password_hash).toBe(BCRYPT)
    const ann = { username: 'ann', password: PASSWORD }
    expect(await logIn(gateway.url, { ...ann, password: 'wrong horse' })).toMatchObject({ status: 401 })
    expect(await logIn(gateway.url, ann)).toMatchObject({ status: 200 })
    expect(database.user('ann').password_hash).toMatch(/^\$argon2id\$/)
    expect(await logIn(gateway.url, ann)).toMatchObject({ status: 200 })

    const refused = await call(gateway.url, ask('m'), { key: `${KEY}x` })
    expect(refused.status).toBe(403)
    expect((await call(gateway.url, ask('m'), { key: `${KEY}y` })).status).toBe(401)
    const self = await call(gateway.url, undefined, {
      method: 'GET',
      path: '/api/user/self',
      headers: { authorization: 'AnnsAccessToken0123456789abcdef', 'gateway-user': '7' },
    })
    expect(JSON.parse(self.text).data).toMatchObject({
      id: 7,
      display_name: 'Ann',
      email: 'ann@example.com',
      code_host_id: 'gh-7',
      group: 'vip',
    })

    await gateway.stop()
    const store = await storeIn(gateway.dataDir)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    await store.close()
    const again = await commandOn(gateway, 'import', source.place, '--apply', '--json')
    const { summary } = again.json() as Report
    expect(summary).toMatchObject({
      user: { carried: 0, changed: 0, there: 2 },
      token: { carried: 0, changed: 0, there: 2 },
      channel: { carried: 0, changed: 0, there: 2 },
      group: { carried: 0, there: 2 },
      price: { carried: 0, changed: 0, there: 2 },
    })
    expect(databaseOf(gateway.dataDir).user('ann').quota).toBe(5_000_000 - charge)
    await gateway.restart()
  })

  test('sluice import names the rows that it does not import, with their number and an alternative', async () => {
    source = await familyDatabase('new-api', engine, server)
    const rows = {
      two_fas: 2,
      passkey_credentials: 3,
      redemptions: 1,
      top_ups: 0,
      abilities: 4,
      surprises: 5,
    }
    for (const [table, count] of Object.entries(rows)) {
      await source.sql(`CREATE TABLE ${table} (id integer, quota integer)`)
      for (let id = 1; id <= count; id++) await source.insert(table, { id, quota: 1 })
    }
    await source.sql('CREATE VIEW a_view AS SELECT 1 AS one')
    const ids = { username: 'ann', github_id: 'ann-at-github', oidc_id: 'a' }
    await source.insert('users', { ...user, id: 1, quota: 0, ...ids })
    await source.insert('users', { ...user, id: 2, quota: 0, username: 'bob', github_id: 'bob-at-github' })
    const dataDir = folder()
    const { lines, summary } = await report(dataDir, source.place)
    const left = lines.filter(({ kind }) => kind === 'table' || kind === 'login')
    expect(left.map(({ kind, name, fate, count }) => [kind, name, fate, count])).toEqual([
      ['login', 'GitHub', 'left', 2],
      ['login', 'OpenID Connect', 'left', 1],
      ['table', 'passkey_credentials', 'left', 3],
      ['table', 'redemptions', 'left', 1],
      ['table', 'surprises', 'left', 5],
      ['table', 'two_fas', 'left', 2],
    ])
    expect(left.map(({ way_out }) => way_out)).toEqual(left.map(() => expect.stringMatching(/\w{3}/)))
    expect(summary).toMatchObject({ login: { left: 2 }, table: { left: 4 } })
    const { out } = await importInto(dataDir, source.place)
    expect(out).toContain('login "GitHub" does not carry over: 2 users; ')
    expect(out).toMatch(/table "two_fas" does not carry over: 2 two-factor secrets; .*\(login\.oidc/)
    expect(out).toMatch(
      /table "passkey_credentials" does not carry over: 3 passkeys; "sluice user password NAME"/,
    )
    expect(out).toMatch(
      /table "redemptions" does not carry over: 1 redemption codes; .*"sluice user top-up NAME QUOTA"/,
    )
    expect(out).toContain('table "surprises" does not carry over: 5 rows of a table that is unknown here; ')
    expect(out).not.toContain('top_ups')
  })
})

describe('a password', () => {
  test.each([
    ['of a cost that takes seconds', BCRYPT.replace('$04$', '$15$')],
    ['of another algorithm', '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp'],
    ['that is not hashed', 'correct horse'],
  ])('a password %s is not imported, but its user is', async (_, password) => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('users', { ...user, id: 2, username: 'ben', quota: 10, password })
    const dry = await report(folder(), source.place)
    expect(dry.passwords_left).toBe(1)
    expect(fateOf(dry, 'user', 'ben')).toEqual({
      fate: 'changed',
      notes: ['password: expected a bcrypt hash of a cost up to 14; left out'],
    })
  })
})

function storeIn(dataDir: string): Promise<Store> {
  return openSqliteStore({
    path: join(dataDir, 'sluice.db'),
    secrets: deriveSecrets(SECRET),
    onCallingThread: true,
  })
}

describe('a one-api', () => {
  test('a database of one-api is recognized by its columns, and imported with its own channel types', async () => {
    const source = await familyDatabase('one-api', 'SQLite')
    await source.insert('users', { ...user, id: 2, username: 'ben', quota: 10, used_quota: 4 })
    await source.insert('users', {
      ...user,
      id: 3,
      username: 'deleted_x',
      status: 3,
      quota: 0,
      used_quota: 0,
    })
    await source.insert('tokens', {
      ...token,
      id: 1,
      user_id: 2,
      key: KEY,
      name: 'a',
      models: 'gpt-4o,gpt-4o-mini',
      subnet: '10.0.0.0/8, 192.168.1.1',
    })
    await source.insert('tokens', {
      ...token,
      id: 2,
      user_id: 2,
      key: `${KEY}x`,
      name: 'b',
      models: null,
      subnet: '',
    })
    for (const [id, type] of [
      [1, 28],
      [2, 29],
      [3, 36],
      [4, 50],
      [5, 35],
      [6, 33],
      [7, 24],
      [8, 51],
    ]) {
      await source.insert('channels', {
        id: id ?? 0,
        type: type ?? 0,
        key: 'k',
        status: 1,
        name: `c${type}`,
        models: 'gpt-4o',
        group: 'default',
        base_url: type === 50 ? 'https://llm.example.com/api' : '',
      })
    }
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    expect(done.family).toBe('one-api')
    expect(fateOf(done, 'user', 'deleted_x')).toEqual({ fate: 'left', notes: ['it is deleted there'] })
    expect(
      embeddedRows(
        dataDir,
        'SELECT id, model_limits_enabled, model_limits, allow_ips FROM tokens WHERE deleted_time IS NULL ORDER BY id',
      ),
    ).toEqual([
      {
        id: 1,
        model_limits_enabled: 1,
        model_limits: 'gpt-4o,gpt-4o-mini',
        allow_ips: '10.0.0.0/8\n192.168.1.1',
      },
      { id: 2, model_limits_enabled: 0, model_limits: '', allow_ips: null },
    ])
    expect(
      embeddedRows(
        dataDir,
        "SELECT name, declared->>'protocol' AS protocol, declared->>'base_url' AS url FROM channels ORDER BY id",
      ),
    ).toEqual([
      { name: 'c28', protocol: 'chat', url: 'https://api.mistral.ai/v1' },
      { name: 'c29', protocol: 'chat', url: 'https://api.groq.com/openai/v1' },
      { name: 'c36', protocol: 'chat', url: 'https://api.deepseek.com/v1' },
      { name: 'c50', protocol: 'chat', url: 'https://llm.example.com/api' },
      { name: 'c35', protocol: 'chat', url: 'https://api.cohere.ai/compatibility/v1' },
      { name: 'c24', protocol: 'gemini', url: 'https://generativelanguage.googleapis.com/v1beta' },
      { name: 'c51', protocol: 'chat', url: 'https://generativelanguage.googleapis.com/v1beta/openai' },
    ])
    expect(fateOf(done, 'channel', 'c33')).toMatchObject({ fate: 'left' })
  })
})

describe('conversions of an import', () => {
  test("imported channels of new-api's type 24 get the Gemini protocol and an address with the API version", async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    for (const [id, base_url] of [
      [1, ''],
      [2, 'https://gemini.example.com'],
      [3, 'https://gemini.example.com/v1'],
    ] as const) {
      const shared = { type: 24, key: 'k', status: 1, models: 'gemini-2.5-pro', group: 'default' }
      await source.insert('channels', { ...shared, id, name: `g${id}`, base_url })
    }
    const dataDir = folder()
    await report(dataDir, source.place, '--apply')
    expect(
      embeddedRows(
        dataDir,
        "SELECT declared->>'protocol' AS protocol, declared->>'base_url' AS url FROM channels ORDER BY id",
      ),
    ).toEqual([
      { protocol: 'gemini', url: 'https://generativelanguage.googleapis.com/v1beta' },
      { protocol: 'gemini', url: 'https://gemini.example.com/v1beta' },
      { protocol: 'gemini', url: 'https://gemini.example.com/v1' },
    ])
  })

  test('imported amounts are converted to the quota units of this gateway, and rounded to whole units', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('options', { key: 'QuotaPerUnit', value: '300000' })
    await source.insert('users', { ...user, id: 2, username: 'ben', quota: 300_000, used_quota: 3 })
    await source.insert('tokens', {
      ...token,
      id: 1,
      user_id: 2,
      key: KEY,
      name: 'a',
      remain_quota: -1,
      used_quota: 0,
    })
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    expect(done.units_converted).toBe('300000 to the dollar there, 500000 here')
    expect(embeddedRows(dataDir, "SELECT quota, used_quota FROM users WHERE username = 'ben'")).toEqual([
      { quota: 500_000, used_quota: 5 },
    ])
    // -1 × 5/3 = -1.67
    expect(embeddedRows(dataDir, 'SELECT remain_quota FROM tokens WHERE id = 1')).toEqual([
      { remain_quota: -2 },
    ])
  })

  test('an import names all models of unsupported endpoints, all options and all other tables that it does not import', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    const channel = { key: 'k', status: 1, group: 'default', base_url: '', type: 1 }
    const foreign = ['gpt-realtime', 'sora-2', 'mj_imagine', 'suno_music']
    await source.insert('channels', {
      ...channel,
      id: 1,
      name: 'all',
      models: ['gpt-4o-mini', 'text-embedding-3-small', ...foreign].join(','),
    })
    await source.insert('channels', { ...channel, id: 2, name: 'videos', models: 'sora-2' })
    const options = Array.from({ length: 120 }, (_, index) => `a.long_name_of_an_option_${1000 + index}`)
    for (const key of options) await source.insert('options', { key, value: '1' })
    for (const table of ['logs', 'redemptions', 'top_ups']) {
      await source.sql(`CREATE TABLE ${table} (id integer, quota integer)`)
      await source.insert(table, { id: 1, quota: 1 })
    }
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    expect(embeddedRows(dataDir, "SELECT name, declared->>'models' AS models FROM channels")).toEqual([
      { name: 'all', models: '["gpt-4o-mini","text-embedding-3-small"]' },
    ])
    expect(fateOf(done, 'channel', 'all')?.notes).toEqual([
      `left out models of unsupported endpoints: ${foreign.join(', ')}`,
    ])
    expect(fateOf(done, 'channel', 'videos')).toMatchObject({
      fate: 'left',
      notes: ['models: expected a model of a supported endpoint; not sora-2'],
    })
    const plain = await importInto(dataDir, source.place)
    for (const table of ['logs', 'redemptions', 'top_ups'])
      expect(plain.out).toContain(`table "${table}" does not carry over: `)
    for (const option of options) expect(plain.out).toContain(option)
  })

  test('an imported channel for both chat completions and reranking becomes two channels', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    const channel = { key: 'k', status: 1, group: 'default', base_url: '' }
    await source.insert('channels', {
      ...channel,
      id: 1,
      type: 34,
      name: 'cohere',
      models: 'command-r,rerank-english-v3.0',
    })
    await source.insert('channels', {
      ...channel,
      id: 2,
      type: 40,
      name: 'flow',
      models: 'bge-reranker-v2-m3,deepseek-v3',
    })
    await source.insert('channels', {
      ...channel,
      id: 3,
      type: 38,
      name: 'jina',
      models: 'jina-reranker-v9,jina-embeddings-v3',
    })
    await source.insert('channels', {
      ...channel,
      id: 4,
      type: 14,
      name: 'flow',
      models: 'claude-sonnet-4-5',
      status: 3,
    })
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    expect(
      embeddedRows(
        dataDir,
        "SELECT name, status, declared->>'protocol' AS protocol, declared->>'base_url' AS url, declared->>'models' AS models FROM channels ORDER BY id",
      ),
    ).toEqual([
      {
        name: 'cohere',
        status: 1,
        protocol: 'rerank',
        url: 'https://api.cohere.ai/v1',
        models: '["rerank-english-v3.0"]',
      },
      {
        name: 'cohere (chat)',
        status: 1,
        protocol: 'chat',
        url: 'https://api.cohere.ai/compatibility/v1',
        models: '["command-r"]',
      },
      {
        name: 'flow',
        status: 1,
        protocol: 'chat',
        url: 'https://api.siliconflow.cn/v1',
        models: '["deepseek-v3"]',
      },
      {
        name: 'flow (rerank)',
        status: 1,
        protocol: 'rerank',
        url: 'https://api.siliconflow.cn/v1',
        models: '["bge-reranker-v2-m3"]',
      },
      {
        name: 'jina',
        status: 1,
        protocol: 'rerank',
        url: 'https://api.jina.ai/v1',
        models: '["jina-reranker-v9"]',
      },
      {
        name: 'jina (embeddings)',
        status: 1,
        protocol: 'chat',
        url: 'https://api.jina.ai/v1',
        models: '["jina-embeddings-v3"]',
      },
      {
        name: 'flow (4)',
        status: 2,
        protocol: 'messages',
        url: 'https://api.anthropic.com/v1',
        models: '["claude-sonnet-4-5"]',
      },
    ])
    expect(fateOf(done, 'channel', 'jina')?.notes).toEqual([
      'made two channels, one for rerank and one for embeddings',
    ])
    expect(fateOf(done, 'price', 'jina-reranker-v9')).toMatchObject({ fate: 'left' })
  })

  test('imported rows keep their ids if these are free, and otherwise get new ids, which the report lists', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('users', { ...user, id: 1, username: 'ben', quota: 1, used_quota: 0 })
    await source.insert('users', { ...user, id: 9, username: 'cyd', quota: 1, used_quota: 0, inviter_id: 1 })
    await source.insert('tokens', { ...token, id: 1, user_id: 1, key: KEY, name: 'a' })
    const dataDir = folder()
    const made = await sluice(['user', 'create', 'first'], { DATA_DIR: dataDir, GATEWAY_SECRET: SECRET })
    expect(made.code).toBe(0)
    const done = await report(dataDir, source.place, '--apply')
    // The root user of a new database has id 1, and owns the first token.
    expect(fateOf(done, 'user', 'ben')).toEqual({
      fate: 'changed',
      notes: ["id: 10 here, as 1 is another user's"],
    })
    expect(fateOf(done, 'token', 'a')).toEqual({
      fate: 'changed',
      notes: ["id: 2 here, as 1 is another token's"],
    })
    expect(embeddedRows(dataDir, 'SELECT id, username, inviter_id FROM users ORDER BY id')).toEqual([
      { id: 1, username: 'root', inviter_id: 0 },
      { id: 2, username: 'first', inviter_id: 0 },
      { id: 9, username: 'cyd', inviter_id: 10 },
      { id: 10, username: 'ben', inviter_id: 0 },
    ])
    expect(embeddedRows(dataDir, 'SELECT id, user_id FROM tokens ORDER BY id')).toEqual([
      { id: 1, user_id: 1 },
      { id: 2, user_id: 10 },
    ])
  })
})

test('an import names a user that the database refuses, and imports all other users', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  for (const [id, username] of ['ann', 'ben', 'cyd'].entries()) {
    await source.insert('users', { ...user, id: id + 11, username, quota: 5, used_quota: 0 })
    await source.insert('tokens', {
      ...token,
      id: id + 21,
      user_id: id + 11,
      key: `${KEY}${id}`,
      name: username,
    })
  }
  const dataDir = folder()
  await (await storeIn(dataDir)).close()
  const file = new DatabaseSync(join(dataDir, 'sluice.db'))
  file.exec(`CREATE TRIGGER refuse BEFORE INSERT ON tokens WHEN NEW.name = 'ben'
    BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
  file.close()
  const { code, out, err } = await importInto(dataDir, source.place, '--apply')
  // A database that was made without a root user gets none by itself.
  expect(out).toContain(
    'root: no user has role 100; --role NAME keeps that of a user, "sluice user create NAME --role 100"',
  )
  expect([code, err]).toEqual([1, 'sluice: 1 users could not be written; the report says why\n'])
  expect(out).toContain('user 12 "ben" does not carry over: it could not be written: not this one\n')
  expect(out).toContain('token 22 "ben" does not carry over: it could not be written: not this one\n')
  expect(embeddedRows(dataDir, 'SELECT id FROM users')).toEqual([{ id: 11 }, { id: 13 }])
  expect(embeddedRows(dataDir, 'SELECT id FROM tokens')).toEqual([{ id: 21 }, { id: 23 }])
})

describe('invalid values', () => {
  test('an import reads a status and an expiry of NULL as 0, like the other gateway: disabled, and expired', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    const row = { quota: 5, used_quota: 0, role: 1, group: 'default', password: '' }
    await source.insert('users', { ...row, id: 2, username: 'stopped', status: null })
    await source.insert('users', { ...row, id: 3, username: 'usual' })
    const key = { user_id: 3, remain_quota: 5, used_quota: 0, unlimited_quota: false }
    await source.insert('tokens', { ...key, id: 1, key: `${KEY}1`, name: 'stopped', status: null })
    await source.insert('tokens', { ...key, id: 2, key: `${KEY}2`, name: 'late', expired_time: null })
    await source.insert('tokens', { ...key, id: 3, key: `${KEY}3`, name: 'usual' })
    const channel = { type: 1, key: 'k', models: 'a', group: 'default' }
    await source.insert('channels', { ...channel, id: 1, name: 'stopped', status: null })
    await source.insert('channels', { ...channel, id: 2, name: 'usual', key: 'other' })
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    const rows = (statement: string) => embeddedRows(dataDir, statement).map((one) => Object.values(one))
    expect(rows('SELECT username, status FROM users ORDER BY id')).toEqual([
      ['stopped', 2],
      ['usual', 1],
    ])
    expect(rows('SELECT name, status, expired_time FROM tokens ORDER BY id')).toEqual([
      ['stopped', 2, -1],
      ['late', 1, 1],
      ['usual', 1, -1],
    ])
    expect(rows('SELECT name, status FROM channels ORDER BY id')).toEqual([
      ['stopped', 2],
      ['usual', 1],
    ])
    expect(fateOf(done, 'token', 'late')?.notes).toEqual(['expired_time: 0 is long ago; the key has expired'])
  })

  test('an import reports invalid values in any column with a line each, and imports the other rows', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    const bytes = Uint8Array.from([0xff, 0xfe, 0x00])
    await source.insert('options', {
      key: 'ModelRatio',
      value: '{"good":1,"bad":"x","worse":-1,"__proto__":2',
    })
    await source.insert('options', { key: 'CompletionRatio', value: '{"good":2,"bad":"x"}' })
    await source.insert('options', { key: 'GroupRatio', value: bytes })
    await source.insert('options', { key: 'QuotaPerUnit', value: '500000' })
    await source.insert('options', { key: 'RetryTimes', value: 'many' })
    await source.insert('users', {
      ...user,
      id: 2,
      username: 'ok',
      quota: 5,
      used_quota: 0,
      email: 'no address',
      role: 7,
      status: 9,
      group: 'no\u0007group',
      display_name: bytes,
      access_token: 'short',
      setting: '{',
      request_count: 'x',
    })
    await source.insert('users', { ...user, id: 3, username: '\u001B[31mred', quota: 5, used_quota: 0 })
    await source.insert('users', { ...user, id: 4, username: 'rich', quota: 'a lot', used_quota: 0 })
    await source.insert('users', {
      ...user,
      id: 5,
      username: 'richer',
      quota: 9_000_000_000_000_000,
      used_quota: 0,
    })
    await source.insert('tokens', {
      ...token,
      id: 1,
      user_id: 2,
      key: KEY,
      name: '',
      expired_time: 0,
      status: 8,
      allow_ips: 'nowhere',
      created_time: 'then',
    })
    await source.insert('tokens', { ...token, id: 2, user_id: 2, key: 'with-hyphens', name: 'hyphens' })
    await source.insert('tokens', {
      ...token,
      id: 3,
      user_id: 2,
      key: `${KEY}z`,
      name: 'x'.repeat(60),
      remain_quota: 'none',
    })
    await source.insert('tokens', { ...token, id: 4, user_id: 99, key: `${KEY}w`, name: 'orphan' })
    await source.insert('tokens', { ...token, id: 5, user_id: 'who', key: `${KEY}v`, name: 'nobody' })
    await source.insert('tokens', { ...token, id: 6, user_id: 4, key: `${KEY}u`, name: 'of rich' })
    await source.insert('channels', {
      id: 1,
      type: 1,
      key: 'k',
      status: 1,
      name: 'loop',
      param_override: '{"temperature":0,}',
      status_code_mapping: '[400]',
      models: 'a',
      group: 'default',
      model_mapping: '{"a":"b","b":"a","c":5}',
      setting: 'no json',
    })
    await source.insert('channels', {
      id: 2,
      type: 1,
      key: '',
      status: 1,
      name: 'keyless',
      models: 'a',
      group: 'default',
    })
    await source.insert('channels', {
      id: 3,
      type: 8,
      key: 'k',
      status: 1,
      name: 'no address',
      models: 'a',
      group: 'default',
      base_url: '',
    })
    await source.insert('channels', {
      id: 4,
      type: 1,
      key: 'k',
      status: 1,
      name: 'no models',
      models: '',
      group: 'default',
    })
    await source.insert('channels', {
      id: 5,
      type: 'what',
      key: bytes,
      status: 1,
      name: bytes,
      models: 'a',
      group: 'default',
    })
    const dataDir = folder()
    const done = await report(dataDir, source.place, '--apply')
    const left = done.lines
      .filter(({ fate }) => fate === 'left')
      .map(({ kind, id, name }) => [kind, id, name])
    expect(left).toEqual(
      expect.arrayContaining([
        ['option', null, 'ModelRatio'],
        ['option', null, 'CompletionRatio: bad'],
        ['option', null, 'GroupRatio'],
        ['option', null, 'RetryTimes'],
        ['user', 3, '\u001B[31mred'],
        ['user', 4, 'rich'],
        ['user', 5, 'richer'],
        ['token', 2, 'hyphens'],
        ['token', 3, 'x'.repeat(60)],
        ['token', 4, 'orphan'],
        ['token', 5, 'nobody'],
        ['token', 6, 'of rich'],
        ['channel', 2, 'keyless'],
        ['channel', 3, 'no address'],
        ['channel', 4, 'no models'],
        ['channel', 5, ''],
      ]),
    )
    expect(fateOf(done, 'user', 'ok')).toMatchObject({ fate: 'changed' })
    expect(fateOf(done, 'user', 'ok')?.notes).toHaveLength(8)
    expect(
      embeddedRows(
        dataDir,
        'SELECT role, status, group_name, email, display_name, request_count FROM users WHERE id = 2',
      ),
    ).toEqual([
      { role: 1, status: 2, group_name: 'default', email: '', display_name: 'ok', request_count: 0 },
    ])
    // An empty address list allows no address, and an expiry time of 0 is in the past.
    expect(embeddedRows(dataDir, 'SELECT id, name, status, expired_time, allow_ips FROM tokens')).toEqual([
      { id: 1, name: 'token 1', status: 2, expired_time: 1, allow_ips: 'nowhere' },
    ])
    expect(fateOf(done, 'channel', 'loop')?.notes).toEqual(
      expect.arrayContaining([
        'param_override: expected a text that holds a JSON object; left out',
        'status_code_mapping: expected a text that holds a JSON object; left out',
      ]),
    )
    expect(embeddedRows(dataDir, "SELECT name, declared->>'model_mapping' AS mapping FROM channels")).toEqual(
      [{ name: 'loop', mapping: '{}' }],
    )
    const plain = await importInto(dataDir, source.place)
    expect(plain.out).not.toContain('\u001B')
    expect(plain.out).not.toContain('with-hyphens')
  })

  test('keys with hyphens of at least 16 characters are imported whole, and work as they are', async () => {
    const fixture = await startFixture(() => ({}), { env: { GATEWAY_SECRET: SECRET } })
    onTestFinished(() => fixture.close())
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('options', { key: 'ModelRatio', value: '{"m":0.5}' })
    await source.insert('users', { ...user, id: 2, username: 'ann', quota: 5_000_000, used_quota: 0 })
    const long = 'sales-team-2026-key-01'
    const plain = { ...token, user_id: 2, group: '', allow_ips: '', model_limits: '' }
    await source.insert('tokens', { ...plain, id: 11, key: long, name: 'long' })
    await source.insert('tokens', { ...plain, id: 12, key: 'too-short', name: 'short' })
    await source.insert('tokens', { ...plain, id: 13, key: KEY, name: 'plain' })
    await source.insert('tokens', { ...plain, id: 14, key: `${KEY}-2`, name: 'longer' })
    await source.insert('channels', {
      id: 1,
      type: 1,
      key: 'k',
      status: 1,
      name: 'main',
      base_url: `http://127.0.0.1:${fixture.upstream.port}/main`,
      models: 'm',
      group: 'default',
    })
    await fixture.gateway.stop()
    const done = await report(fixture.gateway.dataDir, source.place, '--apply')
    expect(fateOf(done, 'token', 'long')).toEqual({ fate: 'carried', notes: [] })
    expect(fateOf(done, 'token', 'short')).toMatchObject({ fate: 'left' })
    expect(fateOf(done, 'token', 'short')?.notes.join()).toContain('at least 16 printable characters')
    expect(fateOf(done, 'token', 'longer')?.notes.join()).toContain('the part before its hyphen is a key')
    const again = await report(fixture.gateway.dataDir, source.place, '--apply')
    expect(fateOf(again, 'token', 'long')).toMatchObject({ fate: 'there' })
    await fixture.gateway.restart()
    expect((await fixture.chat(long, ask('m'))).status).toBe(200)
    for (const key of ['sales', `${long}x`, 'sales-team-2026-key', 'too-short'])
      expect((await fixture.chat(key, ask('m'))).status).toBe(401)
  })

  test('the report names options about channel retries and fallbacks to other groups, and what takes their place', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('options', { key: 'AutomaticRetryStatusCodes', value: '429,500-599' })
    await source.insert('options', { key: 'AutomaticDisableChannelEnabled', value: 'true' })
    await source.insert('options', { key: 'DefaultUseAutoGroup', value: 'true' })
    await source.insert('users', { ...user, id: 2, username: 'ann', quota: 5, used_quota: 0 })
    await source.insert('tokens', {
      ...token,
      id: 1,
      user_id: 2,
      key: KEY,
      name: 'roaming',
      group: 'auto',
      cross_group_retry: 1,
    })
    const done = await report(folder(), source.place)
    for (const [name, note] of [
      ['AutomaticRetryStatusCodes', 'another channel is tried'],
      ['AutomaticDisableChannelEnabled', 'rests here by itself'],
      ['DefaultUseAutoGroup', 'fallbacks of a model (models.NAME.fallback)'],
    ] as const) {
      const line = fateOf(done, 'option', name)
      expect(line?.fate).toBe('left')
      expect(line?.notes.join()).toContain(note)
    }
    const key = fateOf(done, 'token', 'roaming')
    expect(key?.fate).toBe('changed')
    expect(key?.notes.join()).toMatch(/cross_group_retry: .*no call falls back to channels of another/)
  })

  test('sluice import refuses --database beside a source that is a database itself', async () => {
    const { place } = await familyDatabase('new-api', 'SQLite')
    const { code, out, err } = await importInto(
      folder(),
      place,
      '--database',
      'postgres://h@127.0.0.1:1/litellm',
    )
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('--database belongs to the config.yaml of LiteLLM')
  })

  test('sluice import refuses a file that is not a supported database, with a message', async () => {
    const dataDir = folder()
    const own = await openedStore(join(dataDir, 'own.db'))
    await own.close()
    const empty = await familyDatabase('new-api', 'SQLite')
    await empty.sql('DROP TABLE tokens')
    const missing = await familyDatabase('new-api', 'SQLite')
    await missing.sql('ALTER TABLE users DROP COLUMN quota')
    const sentences: [string, string][] = [
      [join(dataDir, 'nothing.db'), `there is no file ${join(dataDir, 'nothing.db')}`],
      [dataDir, `${dataDir} is not a file`],
      ['mysql://root:hidden@127.0.0.1:1/oneapi', 'the database cannot be reached'],
      ['root:hidden@tcp(127.0.0.1:1)/oneapi', 'the database cannot be reached'],
      ['mongodb://root:hidden@127.0.0.1:1/oneapi', 'expected a SQLite file, or a URL such as postgres://'],
      [
        join(process.cwd(), 'package.json'),
        'is neither a SQLite database of one-api or new-api nor a LiteLLM config.yaml',
      ],
      [join(dataDir, 'own.db'), 'this is a database of Sluice itself'],
      [empty.place, 'it has no table "tokens"'],
      [missing.place, 'it has no column "quota" in "users"'],
      ['postgres://nobody:hidden@127.0.0.1:1/x', 'the database cannot be reached'],
    ]
    const outcomes = await Promise.all(sentences.map(([place]) => importInto(dataDir, place)))
    for (const [index, { code, err, out }] of outcomes.entries()) {
      expect([code, out]).toEqual([1, ''])
      expect(err).toContain(sentences[index]?.[1])
      expect(err).not.toContain('hidden')
    }
  })
})

test('an import reads a SQLite source with its write-ahead log, and leaves the folder unchanged', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  await source.sql('PRAGMA journal_mode = WAL')
  await source.insert('users', { ...user, id: 2, username: 'ben', quota: 5, used_quota: 0 })
  const before = readFileSync(source.place)
  const done = await report(folder(), source.place)
  expect(done.summary['user']).toMatchObject({ carried: 1 })
  expect(readdirSync(dirname(source.place))).toEqual(['one-api.db'])
  expect(readFileSync(source.place).equals(before)).toBe(true)
  // Another program writes to the source: the import sees committed rows.
  const open = new DatabaseSync(source.place)
  try {
    open.exec("INSERT INTO users (id, username, password, quota) VALUES (3, 'cyd', '', 1)")
    expect((await report(folder(), source.place)).summary['user']).toMatchObject({ carried: 2 })
  } finally {
    open.close()
  }
})

test('an import that is killed and run again has the same result: no user is imported in part', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  const USERS = 400
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${USERS})`
  await source.sql(`INSERT INTO users (id, username, password, quota, used_quota)
    ${numbers} SELECT i, 'user ' || i, '', 1000 + i, i FROM n`)
  await source.sql(`INSERT INTO tokens (user_id, key, name, remain_quota, used_quota)
    ${numbers} SELECT i, 'first' || i, 'a', i, i / 2 FROM n UNION ALL SELECT i, 'second' || i, 'b', i, 0 FROM n`)
  let dataDir = ''
  let left: unknown
  let before: unknown = USERS
  // On a busy machine an import may be over before it is killed: another one is made then.
  for (let time = 0; time < 10 && before === USERS; time += 1) {
    dataDir = folder()
    const child = spawn(process.execPath, ['bin/sluice.mjs', 'import', source.place, '--apply'], {
      cwd: await programFolder(),
      stdio: 'ignore',
      env: { ...BASE_ENVIRONMENT, DATA_DIR: dataDir, GATEWAY_SECRET: SECRET },
    })
    const gone = once(child, 'exit')
    const users = (): unknown => {
      try {
        return embeddedRows(dataDir, 'SELECT count(*) >= 50 AS some FROM users')[0]?.['some']
      } catch {
        return 0
      }
    }
    await expect.poll(users, { timeout: 60_000, interval: 1 }).toBe(1)
    child.kill('SIGKILL')
    left = await gone
    before = embeddedRows(dataDir, 'SELECT count(*) AS count FROM users')[0]?.['count']
  }
  expect(left).toEqual([null, 'SIGKILL'])
  const halves = 'SELECT user_id FROM tokens WHERE deleted_time IS NULL GROUP BY user_id HAVING count(*) <> 2'
  expect(embeddedRows(dataDir, halves)).toEqual([])
  expect(before).toBeLessThan(USERS)
  const again = await report(dataDir, source.place, '--apply')
  expect(again.summary['user']).toMatchObject({ carried: USERS - Number(before), there: before })
  expect(
    embeddedRows(
      dataDir,
      'SELECT count(*) AS users, sum(quota) AS quota, sum(used_quota) AS used FROM users',
    ),
  ).toEqual([
    { users: USERS, quota: 1000 * USERS + (USERS * (USERS + 1)) / 2, used: (USERS * (USERS + 1)) / 2 },
  ])
  expect(embeddedRows(dataDir, halves)).toEqual([])
  const store = await storeIn(dataDir)
  expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  await store.close()
})

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))('into a database on $name', (engine) => {
  test('an import into PostgreSQL imports the same rows as into SQLite, and new tokens get ids after the imported ones', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('users', { ...user, id: 4, username: 'ben', quota: 50, used_quota: 6 })
    await source.insert('tokens', { ...token, id: 8, user_id: 4, key: KEY, name: 'a', used_quota: 2 })
    const database = await engine.database()
    const env = { DATA_DIR: folder(), GATEWAY_SECRET: SECRET, DATABASE_URL: database.place }
    const dry = await sluice(['import', source.place, '--json'], env)
    expect(dry).toMatchObject({ code: 0, err: '' })
    expect(
      await database.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'public'"),
    ).toEqual([])
    const outcome = await sluice(['import', source.place, '--apply', '--json'], env)
    expect(outcome).toMatchObject({ code: 0, err: '' })
    expect((outcome.json() as Report).summary).toMatchObject({ user: { carried: 1 }, token: { carried: 1 } })
    const again = await sluice(['import', source.place, '--apply', '--json'], env)
    expect((again.json() as Report).summary).toMatchObject({ user: { there: 1 }, token: { there: 1 } })
    const store = await database.open(deriveSecrets(SECRET))
    try {
      expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [] })
      expect(await database.sql('SELECT id, used_quota FROM tokens ORDER BY id')).toEqual([
        { id: 8, used_quota: 2 },
        { id: 9, used_quota: 4 },
      ])
      const made = await store.write('createToken', newToken(4, { key: 'made afterwards' }))
      expect(made.id).toBe(10)
    } finally {
      await store.close()
    }
  })
})

test('an import refuses a source whose table is an endless view with an error message, and does not read it', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  await source.sql('drop table channels')
  await source.sql(
    `create view channels as with recursive n(id) as (select 1 union all select id + 1 from n)
     select id, 1 as type, 'k' as key, 'm' as models from n`,
  )
  const { code, out, err } = await importInto(folder(), source.place)
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('"channels" is a view, and nothing but plain tables is read')
})

test('an import leaves out channels whose names or models have invisible characters, and renames such keys', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  const channels = { type: 1, status: 1, group: 'default', key: 'sk-up', base_url: 'http://127.0.0.1:9' }
  for (const [index, fields] of [
    { name: 'lane', models: 'm', model_mapping: '' },
    { name: 'la\u2800ne', models: 'm', model_mapping: '' },
    { name: 'unseen model', models: 'm,m\u200B', model_mapping: '' },
    { name: 'unseen mapping', models: 'm', model_mapping: '{"m":"m\uFFFC"}' },
  ].entries())
    await source.insert('channels', { ...channels, ...fields, id: 1 + index })
  await source.insert('options', { key: 'ModelRatio', value: '{"m\u200B":2,"m":1}' })
  await source.insert('options', { key: 'CompletionRatio', value: '{"m":1}' })
  await source.insert('users', { ...user, id: 2, username: 'ben', quota: 1, used_quota: 0 })
  for (const [index, fields] of [
    { name: 'lap\u2800top' },
    { name: 'limited', model_limits_enabled: true, model_limits: 'm,m\u200B' },
  ].entries())
    await source.insert('tokens', { ...token, id: 1 + index, user_id: 2, key: `${KEY}${index}`, ...fields })
  const done = await report(folder(), source.place, '--apply')
  expect(fateOf(done, 'channel', 'lane')).toMatchObject({ fate: 'carried' })
  const refused = ['la\u2800ne', 'unseen model', 'unseen mapping']
  for (const name of refused)
    expect(fateOf(done, 'channel', name)).toEqual({
      fate: 'left',
      notes: [expect.stringMatching(/without invisible and blank characters, found ".*\\u/)],
    })
  expect(fateOf(done, 'price', 'm')).toMatchObject({ fate: 'carried' })
  expect(fateOf(done, 'option', 'ModelRatio: m\u200B')).toEqual({
    fate: 'left',
    notes: [expect.stringContaining('none of them invisible or blank')],
  })
  expect(fateOf(done, 'token', 'token 1')).toEqual({
    fate: 'changed',
    notes: ['name: now "token 1", as names have 1 to 50 characters, none of them invisible'],
  })
  expect(fateOf(done, 'token', 'limited')).toMatchObject({
    fate: 'left',
    notes: [expect.stringContaining('none of them invisible')],
  })
})

test('of several users in the source with confusable names, an import takes only one', async () => {
  const source = await familyDatabase('new-api', 'SQLite')
  const names = ['ben', 'Ben', 'ｂen', 'b\u200Ben', 'bеn', 'Ben 本']
  for (const [index, username] of names.entries()) {
    await source.insert('users', { ...user, id: 2 + index, username, quota: 1, used_quota: 0 })
    await source.insert('tokens', {
      ...token,
      id: 1 + index,
      user_id: 2 + index,
      key: `${KEY}${index}`,
      name: `t${index}`,
    })
  }
  const done = await report(folder(), source.place, '--apply')
  const fates = names.map((name) => fateOf(done, 'user', name))
  expect(fates).toEqual([
    { fate: 'carried', notes: [] },
    { fate: 'left', notes: ['username: it differs from "ben" in case alone'] },
    { fate: 'left', notes: ['username: it differs from "ben" in forms of letters alone'] },
    { fate: 'left', notes: ['username: it has invisible characters'] },
    {
      fate: 'left',
      notes: ['username: it mixes Latin and Cyrillic letters; rename the user there, and import again'],
    },
    { fate: 'carried', notes: [] },
  ])
  expect(fateOf(done, 'token', 't1')).toEqual({ fate: 'left', notes: ['its user does not carry over'] })
})
