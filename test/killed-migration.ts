import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished } from 'vitest'
import { randomFrom } from './equipment/random.ts'
import { openForWriting } from '../src/store/sqlite/connection.ts'
import { prepareDatabase } from '../src/store/sqlite/prepare-database.ts'
import type { Engine, TestDatabase } from './store-engines.ts'
import { SECRETS } from './store-rows.ts'

const TABLES = [
  'alert_conditions',
  'alert_outbox',
  'alert_sender',
  'alert_thresholds',
  'audit_log',
  'budget_crossings',
  'budget_periods',
  'channels',
  'declared_settings',
  'holds',
  'identities',
  'kept_signatures',
  'kept_sums',
  'low_quotas_told',
  'price_sets',
  'reasoning_origins',
  'response_parts',
  'sessions',
  'store_identity',
  'stored_responses',
  'stored_settings',
  'tokens',
  'usage_day_keys',
  'usage_day_routes',
  'usage_days',
  'usage_log',
  'usage_refusals',
  'usage_slot_routes',
  'usage_slots',
  'used_states',
  'users',
]

/** Tables that a gateway with a database of its own needs in addition. */
const OWN_TABLES = ['unsummed_calls', ...TABLES].sort()

/** Tables that a cluster needs in addition. */
const SHARED_TABLES = [
  'call_generation',
  'call_nodes',
  'call_places',
  'leases',
  'lost_budgets',
  'lost_estimates',
  'message_key',
  'nodes',
  ...TABLES,
].sort()

const SOURCES = new URL('../src/store/', import.meta.url)

// Writes a dot after each statement. At the given statement the process waits to be killed; otherwise it
// pauses a little after each.
const MIGRATION = `
  const [sources, place, stopAt, pauseMs] = process.argv.slice(1)
  const from = (file) => import(new URL(file, sources).href)
  const { Kysely, PostgresDialect } = await import(process.env.KYSELY)
  const { writeSync } = await import('node:fs')
  const { migrateToLatest } = await from('migrations/migrate.ts')
  const types = await from('migrations/column-types.ts')
  const isSqlite = !place.startsWith('postgres')
  const cell = new Int32Array(new SharedArrayBuffer(4))
  let statements = 0
  const log = () => {
    writeSync(1, '.')
    statements += 1
    if (statements === Number(stopAt)) Atomics.wait(cell, 0, 0)
    if (Number(pauseMs) > 0) Atomics.wait(cell, 0, 0, Number(pauseMs))
  }
  const db = isSqlite
    ? (await from('sqlite/dialect.ts')).kyselyOver((await from('sqlite/connection.ts')).openForWriting(place), log)
    : new Kysely({ dialect: new PostgresDialect({ pool: (await from('postgres/pool.ts')).connectionPool(place) }), log })
  await migrateToLatest(db, isSqlite ? types.SQLITE_TYPES : types.POSTGRES_TYPES)
  writeSync(1, 'done')
  await db.destroy()
`

/** The moment at which a migration is killed. */
export interface Kill {
  /** The statement after which exactly the kill happens; 0: so many milliseconds after the first. */
  readonly atStatement: number
  readonly afterMs: number
}

/**
 * Migrates in another process, which is killed on the way. Returns true if the migration was complete before.
 */
export async function migrateAndKill(place: string, kill: Kill, cache: string): Promise<boolean> {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      MIGRATION,
      SOURCES.href,
      place,
      `${kill.atStatement}`,
      kill.atStatement === 0 ? '2' : '0',
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_COMPILE_CACHE: cache, KYSELY: import.meta.resolve('kysely') },
    },
  )
  let said = ''
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    if (said === '' && kill.atStatement === 0) setTimeout(() => child.kill('SIGKILL'), kill.afterMs)
    said += text
    if (kill.atStatement > 0 && said.length >= kill.atStatement) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return said.endsWith('done')
}

async function tablesOf({ place, sql }: TestDatabase): Promise<unknown[]> {
  const rows = await sql(
    place.startsWith('postgres')
      ? "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
      : "SELECT name FROM sqlite_schema WHERE type = 'table'",
  )
  return rows
    .map((row) => row['name'] as string)
    .filter((name) => !name.startsWith('kysely_') && !name.startsWith('sqlite_'))
    .sort()
}

// Without threads, which take longer to start than a migration to run.
async function migrateAgain({ place, open }: TestDatabase): Promise<void> {
  if (place.startsWith('postgres')) await (await open()).close()
  else {
    const connection = openForWriting(place)
    await prepareDatabase(connection, SECRETS, { stoppedClean: false })
    connection.close()
  }
}

/**
 * Kills migrations of empty databases at random points, and checks the state after each: the whole schema or
 * none of it, which the next start completes. Every second one is killed at a statement, the others by the
 * clock.
 */
export async function killMigrations(engine: Engine, kills: number): Promise<void> {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
  console.log(`migrations on ${engine.name} are killed ${kills} times with SEED=${seed}`)
  const random = randomFrom(seed)
  const cache = mkdtempSync(join(tmpdir(), 'sluice-compiled-'))
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }))
  const plans = Array.from({ length: kills }, (_, index) => ({
    atStatement: index % 2 === 0 ? 1 + Math.floor(random() * (engine.name === 'SQLite' ? 30 : 80)) : 0,
    afterMs: random() * 80,
  }))
  const all = engine.name === 'SQLite' ? OWN_TABLES : SHARED_TABLES
  let interrupted = 0
  const runOne = async (plan: Kill): Promise<void> => {
    const database = await engine.database()
    const wasDone = await migrateAndKill(database.place, plan, cache)
    if (!wasDone) interrupted += 1
    if (engine.name === 'SQLite') {
      expect(await database.sql('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    }
    const tables = await tablesOf(database)
    if (wasDone) expect(tables).toEqual(all)
    else expect([[], all]).toContainEqual(tables)
    await migrateAgain(database)
    expect(await tablesOf(database)).toEqual(all)
  }
  const left = [...plans]
  const runSome = async (): Promise<void> => {
    for (let plan = left.pop(); plan; plan = left.pop()) await runOne(plan)
  }
  await Promise.all([runSome(), runSome(), runSome()])
  expect(interrupted).toBeGreaterThan(kills / 3)
}
