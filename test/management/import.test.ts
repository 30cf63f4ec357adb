import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { familyDatabase } from '../stores/family-database.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { manage, type ManagementResponse } from '../fixtures/account.ts'
import { type Configuration, plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { casesByTier } from '../runner/tier.ts'
import { embeddedRows } from '../commands/embedded-rows.ts'
import { ENGINES } from '../stores/engines.ts'

interface Report {
  readonly id: string
  readonly source: string
  readonly lines: readonly {
    readonly kind: string
    readonly name: string
    readonly fate: string
    readonly remark: string
  }[]
  readonly lines_left_off: number
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly passwords_left: number
  readonly failed?: number
}

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }
const OLD_KEY = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'

let fixture: Fixture
const configured = (upstream: ScriptedUpstream): Configuration => ({
  ...plainConfiguration(upstream.baseUrl('m')),
  users: [
    ROOT,
    user(2, 'ann', [token('ann')]),
    user(3, 'ada', [], { role: 10, access_token: ADA.accessToken }),
  ],
})

const send = (file: Buffer | string, name = 'one-api.db', account = AS_ROOT) =>
  manage<Report>(
    fixture.gateway.url,
    account,
    `POST /api/import?name=${encodeURIComponent(name)}`,
    Buffer.from(file),
    { 'content-type': 'application/octet-stream' },
  )
const apply = (id: string, account = AS_ROOT): Promise<ManagementResponse<Report>> =>
  manage<Report>(fixture.gateway.url, account, `POST /api/import/${id}/apply`)
const read = <Data>(path: string) =>
  manage<Data>(fixture.gateway.url, AS_ROOT, `GET ${path}` as 'GET /').then(({ data }) => data)
const answers = async (key: string, model: string, text: string): Promise<void> =>
  expect((await fixture.chat(key, ask(model))).text).toContain(text)
const uploads = () => readdirSync(fixture.gateway.dataDir).filter((name) => name.startsWith('.import-'))

async function familyFile(change: (source: Awaited<ReturnType<typeof familyDatabase>>) => Promise<void>) {
  const source = await familyDatabase('new-api', 'SQLite')
  await change(source)
  return readFileSync(source.place)
}

/** A database with the user bea, her key, and a channel to the upstream. */
const oldGateway = (name = 'bea', key = OLD_KEY, channel = 'imported') =>
  familyFile(async (source) => {
    await source.insert('options', { key: 'ModelRatio', value: '{"old-model":1}' })
    await source.insert('options', { key: 'CompletionRatio', value: '{"old-model":2}' })
    await source.insert('users', {
      id: 7,
      username: name,
      password: '',
      role: 1,
      status: 1,
      group: 'default',
      quota: 5_000_000,
      used_quota: 0,
    })
    await source.insert('tokens', {
      id: 9,
      user_id: 7,
      key,
      status: 1,
      name: 'laptop',
      expired_time: -1,
      unlimited_quota: true,
      remain_quota: 0,
      used_quota: 0,
    })
    await source.insert('channels', {
      id: 1,
      type: 1,
      key: 'upstream-key',
      status: 1,
      name: channel,
      base_url: fixture.upstream.baseUrl('imported'),
      models: 'old-model',
      group: 'default',
    })
  })

describe.each(ENGINES)('an import over HTTP into $name', (database) => {
  const cleanUps: (() => Promise<void>)[] = []
  beforeAll(async () => {
    if (database.name !== 'PostgreSQL') {
      fixture = await startFixture(configured)
      return
    }
    const { place } = await database.database((end) => void cleanUps.push(end))
    fixture = await startFixture(configured, { env: { DATABASE_URL: place }, root: await patientProgram() })
  })
  afterAll(async () => {
    await fixture?.close()
    for (const end of cleanUps) await end()
  })

  test('importing a new-api database first reports what it would do; once applied, an old key works at once', async () => {
    fixture.upstream.script('imported', wholeChat({ text: 'from the old channel' }))
    const refused = await fixture.chat(OLD_KEY, ask('old-model'))
    expect(refused.status).toBe(401)
    const file = await oldGateway()
    const before = [await read('/api/user/'), await read('/api/channel/'), await read('/api/option/')]
    const reported = await send(file)
    expect(reported.status, reported.message).toBe(200)
    expect(reported.data).toMatchObject({ source: 'new-api', lines_left_off: 0 })
    expect(reported.data.lines).toContainEqual({ kind: 'user', name: 'bea', fate: 'carried', remark: '' })
    expect(reported.data.counts).toMatchObject({
      user: { carried: 1 },
      token: { carried: 1 },
      channel: { carried: 1 },
    })
    expect([await read('/api/user/'), await read('/api/channel/'), await read('/api/option/')]).toEqual(
      before,
    )
    expect((await fixture.chat(OLD_KEY, ask('old-model'))).status).toBe(401)

    const applied = await apply(reported.data.id)
    expect(applied.status, applied.message).toBe(200)
    expect(applied.data).toMatchObject({
      failed: 0,
      counts: { user: { carried: 1 }, channel: { carried: 1 } },
    })
    await answers(OLD_KEY, 'old-model', 'from the old channel')
    const entries = await read<{ items: { actor: string; action: string }[] }>(
      '/api/audit?action=user.create',
    )
    expect(entries.items[0]).toMatchObject({ actor: 'root' })

    const again = await apply(reported.data.id)
    expect(again.data.counts).toMatchObject({
      user: { carried: 0, there: 1 },
      token: { carried: 0 },
      channel: { carried: 0, there: 1 },
    })
  })
})

// What does not depend on the database.
describe('an upload', () => {
  beforeAll(async () => {
    fixture = await startFixture(configured)
  })
  afterAll(() => fixture?.close())

  test('an import of a LiteLLM configuration is planned and shown before it changes anything, and reads no environment variables', async () => {
    fixture.upstream.script('lite', wholeChat({ text: 'through the lite channel' }))
    const reported = await send(
      `model_list:
  - model_name: lite-model
    litellm_params: { model: openai/upstream-model, api_base: "${fixture.upstream.baseUrl('lite')}", api_key: lite-key, input_cost_per_token: 1e-06, output_cost_per_token: 2e-06 }
  - model_name: secretive
    litellm_params: { model: openai/secretive, api_base: "http://127.0.0.1:9/v1", api_key: os.environ/GATEWAY_SECRET }
litellm_settings: { drop_params: true }
`,
      'config.yaml',
    )
    expect(reported.data).toMatchObject({
      source: 'litellm',
      counts: { channel: { carried: 1, changed: 1 }, price: { carried: 1 } },
    })
    expect(reported.data.lines.find(({ name }) => name === 'openai-2')?.remark).toContain('GATEWAY_SECRET')
    const applied = await apply(reported.data.id)
    expect(applied.status, applied.message).toBe(200)
    await answers('ann', 'lite-model', 'through the lite channel')
    expect(fixture.upstream.received('lite').at(-1)?.text).toContain('"upstream-model"')
    const { items } = await read<{ items: { name: string; status: number; key: string }[] }>(
      '/api/channel/?page_size=100',
    )
    expect(items.find(({ name }) => name === 'openai-2')).toMatchObject({ status: 2 })
  })

  test('the group of a team in a SQLite database of LiteLLM has spent what the team spent, also when it is imported over HTTP', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'sluice-litellm-')), 'litellm.db')
    const file = new DatabaseSync(path)
    file.exec(`
      create table "LiteLLM_VerificationToken" (token text, team_id text, models text);
      create table "LiteLLM_TeamTable" (team_id text, team_alias text, max_budget real, budget_duration text, spend real, models text);
      insert into "LiteLLM_TeamTable" values ('t-1', 'research', 50, '30d', 12.5, '{}');
      insert into "LiteLLM_VerificationToken" values ('${'a'.repeat(64)}', 't-1', '{}')`)
    file.close()
    const reported = await send(readFileSync(path), 'litellm.db')
    rmSync(dirname(path), { recursive: true })
    expect(reported.data).toMatchObject({ source: 'litellm', counts: { token: { carried: 1 } } })
    expect((await apply(reported.data.id)).data).toMatchObject({ failed: 0 })
    // 1 USD is 500,000 quota units.
    expect(embeddedRows(fixture.gateway.dataDir, 'SELECT owner, amount, used FROM budget_periods')).toEqual([
      { owner: 'g:research', amount: 25_000_000, used: 6_250_000 },
    ])
  })

  test('an uploaded file that cannot be imported is refused with a sentence, and is not kept', async () => {
    const kept = uploads().length
    const files = [
      ['', 'empty.db', 'empty.db is neither a SQLite database'],
      [
        Buffer.from('SQLite format 3\0 and then nonsense'),
        'torn.db',
        'torn.db cannot be read as a SQLite database',
      ],
      ['<html>', 'page.html', 'page.html is neither'],
      ['model_list: [{{{', 'config.yaml', 'the configuration cannot be read: line 1'],
      [Buffer.from([0, 255, 254, 1]), 'noise.bin', 'noise.bin is neither'],
    ] as const
    for (const [file, name, sentence] of casesByTier(3, files)) {
      const answer = await send(Buffer.from(file), name)
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toContain(sentence)
      expect(answer.message).not.toContain(fixture.gateway.dataDir)
    }
    expect(uploads()).toHaveLength(kept)
    expect(await apply('0'.repeat(32))).toMatchObject({ status: 404 })
    expect(await apply('..%2Fsluice.db')).toMatchObject({ status: 400 })
  })

  test('only root may upload a file to import, and apply it', async () => {
    expect(await send('x', 'x', ADA)).toMatchObject({ status: 403 })
    expect(await apply('0'.repeat(32), ADA)).toMatchObject({ status: 403 })
  })

  test('uploads to import have file mode 600 and are kept for 30 minutes, at most three at a time', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n += 1) ids.push((await send('model_list: []', 'config.yaml')).data.id)
    expect(uploads()).toHaveLength(3)
    expect(await apply(ids[0] ?? '')).toMatchObject({ status: 404 })
    const path = join(fixture.gateway.dataDir, `.import-${ids[3]}`)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const old = Date.now() / 1000 - 30 * 60 - 1
    utimesSync(path, old, old)
    expect(await apply(ids[3] ?? '')).toMatchObject({ status: 404 })
  })

  test('a file to import above 512 MiB is refused before it is sent, and nothing of it is stored', async () => {
    const kept = uploads()
    const { port } = fixture.gateway
    const asking = request({
      port,
      method: 'POST',
      path: '/api/import',
      headers: {
        authorization: ROOT.access_token,
        'gateway-user': '1',
        'content-length': String(2 ** 29 + 1),
      },
    })
    asking.on('error', () => {})
    asking.flushHeaders()
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(413)
    asking.destroy()
    // Expired uploads may be removed meanwhile.
    await expect.poll(() => uploads().filter((name) => !kept.includes(name))).toEqual([])
  })
})
