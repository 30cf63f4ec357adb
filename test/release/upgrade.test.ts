import { cpSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { migrateToLatest } from '../../src/store/migrations/migrate.ts'
import { POSTGRES_TYPES } from '../../src/store/migrations/schema/table.ts'
import { type Step, STEPS } from '../../src/store/migrations/steps.ts'
import { createPostgresKysely } from '../../src/store/postgres/dialect.ts'
import { connectionPool } from '../../src/store/postgres/pool.ts'
import { call } from '../fixtures/client.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { patientWithPostgres } from '../fixtures/patient-program.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ENGINES } from '../stores/engines.ts'
import {
  archives,
  ARCHIVES,
  type Expected,
  observe,
  type PostgresData,
  releaseConfig,
  restorePostgres,
  schemaStatements,
  unpacked,
} from './release-data.ts'

const MESSAGES = [{ role: 'user', content: 'Hello' }]

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream?.stop())

/** The version of this program has an archive, too: it is the first one that a later version upgrades. */
test('the repository has test data of every released version, of at most 200 kB each', () => {
  const names = archives()
  expect(names).toContain('0.1.0.tar.gz')
  for (const name of names) expect(statSync(join(ARCHIVES, name)).size, name).toBeLessThanOrEqual(200_000)
})

test.skipIf(ENGINES.length < 2)(
  'the test data of this version have its database schema: node test/release/make-release-data.ts',
  async () => {
    const { version } = JSON.parse(readFileSync(join(ARCHIVES, '../../package.json'), 'utf8')) as {
      version: string
    }
    const { folder } = release(`${version}.tar.gz`)
    const { schema } = JSON.parse(readFileSync(join(folder, 'postgres/data.json'), 'utf8')) as PostgresData
    const database = await ENGINES.find(({ name }) => name === 'PostgreSQL')?.database()
    expect(schema).toEqual(await schemaStatements(database?.place ?? ''))
  },
)

/** The data of a release, and starts of gateways on copies of them. */
interface Release {
  readonly expected: Expected
  readonly folder: string
}

function release(name: string): Release {
  const { folder, discard } = unpacked(name)
  onTestFinished(discard)
  return { folder, expected: JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expected }
}

/** A new folder that the gateway deletes with itself. */
function dataFolder(from: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
  cpSync(from, folder, { recursive: true })
  return folder
}

async function started(options: {
  readonly dataDir?: string
  readonly databaseUrl?: string
  readonly root?: string
}): Promise<RunningGateway> {
  const { dataDir, databaseUrl } = options
  // A timeout of the database would refuse a call.
  const root = options.root ?? (databaseUrl === undefined ? undefined : await patientWithPostgres())
  const gateway = await startGateway({
    config: releaseConfig(upstream.baseUrl('main')),
    ...(dataDir !== undefined && { dataDir }),
    ...(root !== undefined && { root }),
    env: databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl },
  })
  onTestFinished(() => gateway.discard())
  return gateway
}

/** A PostgreSQL database with the rows of a release. */
async function postgresOf({ folder }: Release): Promise<string> {
  const engine = ENGINES.find(({ name }) => name === 'PostgreSQL')
  const database = await engine?.database()
  if (!database) throw new Error('there is no PostgreSQL server')
  const data = JSON.parse(readFileSync(join(folder, 'postgres/data.json'), 'utf8')) as PostgresData
  await restorePostgres(database.place, data)
  return database.place
}

/** What holds for a gateway on the data of a release. */
async function serves(
  gateway: RunningGateway,
  { observed, key, response }: Expected['engines']['sqlite'],
): Promise<void> {
  expect(await observe(gateway.url)).toEqual(observed)
  const kept = await call(gateway.url, undefined, { method: 'GET', path: `/v1/responses/${response}`, key })
  expect(kept.status, kept.text).toBe(200)
  const answer = await call(gateway.url, { model: 'model', messages: MESSAGES }, { key })
  expect(answer.status, answer.text).toBe(200)
  const next = await call(
    gateway.url,
    { model: 'model', input: 'And then?', previous_response_id: response },
    { key, path: '/v1/responses' },
  )
  expect(next.status, next.text).toBe(200)
  // A node reports its calls to the database after a moment.
  await vi.waitFor(
    async () => {
      const { usage } = await observe(gateway.url)
      expect(usage.calls).toBe(observed.usage.calls + 2)
      expect(usage.quota).toBeGreaterThan(observed.usage.quota)
    },
    { timeout: 60_000, interval: 200 },
  )
}

describe.each(archives())('the data of %s', (name) => {
  test('this version starts on SQLite data of a release, and finds its accounts, keys, usage and stored responses', async () => {
    const { folder, expected } = release(name)
    const gateway = await started({ dataDir: dataFolder(join(folder, 'sqlite')) })
    await serves(gateway, expected.engines.sqlite)
    await gateway.restart()
    expect((await observe(gateway.url)).usage.calls).toBe(expected.engines.sqlite.observed.usage.calls + 2)
  })

  test.skipIf(ENGINES.length < 2)(
    'this version starts on PostgreSQL data of a release, and finds its accounts, keys, usage and stored responses',
    async () => {
      const data = release(name)
      const gateway = await started({
        dataDir: dataFolder(join(data.folder, 'postgres/node')),
        databaseUrl: await postgresOf(data),
      })
      await serves(gateway, data.expected.engines.postgres)
    },
  )
})

/** A step of the next version, as versions of one major may make them: it adds. */
const NEXT: Step = {
  name: '9999-next',
  run: async (db) => {
    await sql`alter table users add column next_column text not null default 'x'`.execute(db)
    await sql`create table next_table (id integer primary key)`.execute(db)
  },
}

describe.skipIf(ENGINES.length < 2)('nodes of two versions', () => {
  /** The folder of an installed older version; this version stands in where there is none. */
  const older = process.env['PREVIOUS_SLUICE']

  test('a node of the former version and one of this version serve on one database, and both charge their calls', async () => {
    if (older === undefined) console.log('PREVIOUS_SLUICE names no former version: this one stands in for it')
    const data = release(archives().toSorted().at(-1) ?? '')
    const { key, observed } = data.expected.engines.postgres
    const databaseUrl = await postgresOf(data)
    const former = await started({
      dataDir: dataFolder(join(data.folder, 'postgres/node')),
      databaseUrl,
      ...(older !== undefined && { root: older }),
    })
    const current = await started({ databaseUrl })
    for (let n = 0; n < 4; n += 1)
      for (const { url } of [former, current]) {
        const answer = await call(url, { model: 'model', messages: MESSAGES }, { key })
        expect(answer.status, answer.text).toBe(200)
      }
    for (const { url } of [former, current])
      await expect.poll(async () => (await observe(url)).usage.calls).toBe(observed.usage.calls + 8)
  })

  test('a node of the former version serves and charges calls while the next version upgrades the database schema', async () => {
    const data = release(archives().toSorted().at(-1) ?? '')
    const { key, observed } = data.expected.engines.postgres
    const databaseUrl = await postgresOf(data)
    const node = await started({ dataDir: dataFolder(join(data.folder, 'postgres/node')), databaseUrl })
    const chat = async (): Promise<number> =>
      (await call(node.url, { model: 'model', messages: MESSAGES }, { key })).status
    expect(await chat()).toBe(200)
    const db = createPostgresKysely(connectionPool(databaseUrl))
    await migrateToLatest(db, POSTGRES_TYPES, [...STEPS, NEXT])
    await db.destroy()
    expect(await chat()).toBe(200)
    await expect.poll(async () => (await observe(node.url)).usage.calls).toBe(observed.usage.calls + 2)
  })
})
