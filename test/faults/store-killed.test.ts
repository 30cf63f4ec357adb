import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { newToken, newUser, openedStore, SECRETS, temporaryFolder } from '../stores/rows.ts'
import { USAGE, type UsageLogRow } from '../../src/domain/records/usage.ts'
import { SUM_KINDS } from '../../src/store/sum-kinds.ts'
import { usageFromRow } from '../../src/store/usage-row.ts'
import { generalSums, sumsOfRows } from '../stores/general-sums.ts'
import { ENGINES } from '../stores/engines.ts'
import { byTier } from '../runner/tier.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'

const WRITER = `
  const [open, secrets, usage, path, round] = process.argv.slice(1)
  const { openSqliteStore } = await import(open)
  const { deriveSecrets } = await import(secrets)
  const { NO_USAGE } = await import(usage)
  const store = await openSqliteStore({ path, secrets: deriveSecrets('a secret that only tests know') })
  const { writeSync } = await import('node:fs')
  // Retries, because the pipe may be full.
  const say = (line) => {
    try {
      writeSync(1, line)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      say(line)
    }
  }
  for (let n = 0; ; n += 8) {
    await Promise.all(Array.from({ length: 8 }, async (_, k) => {
      const id = round + '-' + (n + k)
      await store.write('settle', { id, token_id: 1, user_id: 1, quota: 3, reason: 'complete', delivered: true, ended_ms: 1,
        usage: { ...NO_USAGE, input: 1, output: 1 }, kind: 'chat',
        model: 'm', requested_model: 'm', upstream_model: 'm', channel: 'c', group: 'g', stream: false, price_version: 'v', duration_ms: 1,
        first_byte_ms: null, budgets: '', provenance: { keyTag: 't', reasoning: [],
          response: { id, upstreamId: 'up', tokens: 2, previousId: null } } })
      say(id + '\\n')
    }))
  }
`

test('no acknowledged database write is lost when the process is killed, and balances, sums and log agree', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const first = await openSqliteStore({ path, secrets: SECRETS })
  const user = await first.write('createUser', newUser())
  await first.write('createToken', newToken(user.id))
  await first.close()
  const acknowledged: string[] = []
  for (let round = 0; round < 5; round += 1) {
    const modules = ['src/store/sqlite/open.ts', 'src/store/secrets.ts', 'packages/wire/src/usage.ts'].map(
      (module) => new URL(`../../${module}`, import.meta.url).href,
    )
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', WRITER, ...modules, path, `${round}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let said = ''
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      said += text
    })
    // A slow machine acknowledges few writes in the time before a kill.
    while (said.split('\n').length <= 10) await once(child.stdout, 'data')
    setTimeout(() => child.kill('SIGKILL'), 30 + 40 * round)
    await once(child, 'close')
    acknowledged.push(...said.split('\n').slice(0, -1))
  }
  const file = new DatabaseSync(path, { readOnly: true })
  const idsIn = (table: string): unknown[] =>
    file
      .prepare(`SELECT id FROM ${table} ORDER BY id`)
      .all()
      .map((row) => row['id'])
  const kept = new Set(idsIn('usage_log'))
  const responses = idsIn('stored_responses')
  file.close()
  expect(acknowledged.length).toBeGreaterThan(40)
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
  expect(responses).toEqual([...kept])
  const store = await openedStore(path, 'own')
  await store.read('usageSumsCoverage')
  const summed = new DatabaseSync(path, { readOnly: true })
  for (const { kind } of SUM_KINDS)
    expect(
      summed
        .prepare(`SELECT sum(quota) AS quota, sum(requests) AS requests FROM usage_sums WHERE kind = ${kind}`)
        .get(),
    ).toEqual({
      quota: 3 * kept.size,
      requests: kept.size,
    })
  summed.close()
  const accounts = await store.read('findUnbalancedAccounts')
  expect(accounts).toMatchObject({ tokens: [], users: [] })
  expect((await store.write('loadAccount', { tokenId: 1 }))?.token.used_quota).toBe(3 * kept.size)
})

/** Settles calls of many keys and models, more in each half hour than one part of the sums has, until it is killed. */
const VARIED_WRITER = `
  const [engine, place, round, ...modules] = process.argv.slice(1)
  const [{ NO_USAGE }, ...rest] = await Promise.all(modules.map((module) => import(module)))
  const settler = {
    async SQLite({ openSqliteStore }, { deriveSecrets }) {
      const store = await openSqliteStore({ path: place, secrets: deriveSecrets('a secret that only tests know') })
      return {
        settle: (calls) => Promise.all(calls.map((call) => store.write('settle', call))),
        sum: () => store.read('usageSumsCoverage'),
      }
    },
    PostgreSQL({ BankConnection }, { postgresBank }, { serializeForOutbox }) {
      const bank = postgresBank(new BankConnection(place, { hasRole: true }), 'a')
      return { settle: (calls) => bank.apply(calls.map(serializeForOutbox), []), sum: () => Promise.resolve() }
    },
  }[engine]
  const { settle, sum } = await settler(...rest)
  const any = (count) => Math.floor(Math.random() * count)
  for (let n = 0; ; n += 1) {
    await settle(Array.from({ length: 1 + any(100) }, (_, k) => ({
      id: round + '-' + n + '-' + k, user_id: 1, token_id: 1 + any(3), quota: any(100), ended_ms: any(4) * 1_000_000,
      reason: ['complete', 'cut', 'failed'][any(3)], cause: ['', 'spent'][any(2)], delivered: false,
      usage: { ...NO_USAGE, input: any(3), output: any(3) }, kind: 'chat', model: 'm' + any(60), requested_model: 'm',
      upstream_model: 'm', channel: 'c' + any(2), group: 'g', stream: false, price_version: 'v', duration_ms: any(5000),
      first_byte_ms: null, budgets: '' })))
    const summing = any(4) === 0 && sum()
    console.log(n)
    await summing
  }
`

const MODULES = {
  SQLite: ['src/store/sqlite/open.ts', 'src/store/secrets.ts'],
  PostgreSQL: [
    'src/store/postgres/bank-connection.ts',
    'src/store/postgres/bank.ts',
    'src/store/usage-row.ts',
  ],
} as const

const OTHER_CLIENTS =
  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"

const KILLS = byTier(3, 25)
/** Each has its own database; together 200 kills at night. */
const STORMS = ENGINES.flatMap((engine) =>
  Array.from({ length: byTier(1, 8) }, (_, storm) => ({ engine, name: engine.name, storm })),
)

test.each(STORMS)(
  'whenever a process that settles calls is killed, the sums of usage at the next read are those of the rows: $name, $storm',
  async ({ engine }) => {
    const database = await engine.prepared()
    const first = await database.open()
    const user = await first.write('createUser', newUser())
    for (const key of ['k1', 'k2', 'k3'])
      await first.write('createToken', newToken(user.id, { key, name: key }))
    await first.close()
    const modules = ['packages/wire/src/usage.ts', ...MODULES[engine.name]].map(
      (module) => new URL(`../../${module}`, import.meta.url).href,
    )
    let settled = 0
    let inParts = 0
    for (let round = 0; round < KILLS; round += 1) {
      const child = spawn(
        process.execPath,
        ['--input-type=module', '-e', VARIED_WRITER, engine.name, database.place, `${round}`, ...modules],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      const steps = Math.floor(Math.random() * 20)
      child.stdout.setEncoding('latin1').on('data', (text: string) => {
        if (Number(text.split('\n').at(-2)) >= steps)
          setTimeout(() => child.kill('SIGKILL'), Math.random() * 50)
      })
      await once(child, 'close')
      // The server may still commit what the killed process has sent.
      if (engine.name === 'PostgreSQL') await expect.poll(() => database.sql(OTHER_CLIENTS)).toEqual([])
      const store = await database.open()
      if (engine.name === 'SQLite') inParts += (await database.sql('SELECT 1 FROM sums_watermark')).length
      await store.read('usageSumsCoverage')
      const rows = (await database.sql('SELECT * FROM usage_log')) as unknown as UsageLogRow[]
      const calls = rows.map((row) => ({
        ...USAGE.fromRow(row),
        usage: usageFromRow(row),
        delivered: false,
        budgets: '',
      }))
      const sums = await database.sql('SELECT * FROM usage_sums')
      expect(sumsOfRows(sums), `round ${round}`).toEqual(generalSums(calls))
      settled = calls.length
      await store.close()
    }
    expect(settled).toBeGreaterThan(0)
    console.info(`${settled} calls; ${inParts} kills while a set of calls was in the sums partly`)
  },
  600_000,
)
