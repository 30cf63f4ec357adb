import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { accountsAndLedger } from '../../src/store/migrations/0001-accounts-and-ledger.ts'
import { usageDays } from '../../src/store/migrations/0002-usage-days.ts'
import { SQLITE_TYPES } from '../../src/store/migrations/column-types.ts'
import { STEP_NAMES } from '../../src/store/migrations/step-names.ts'
import { deriveSecrets, hashKey, seal } from '../../src/store/secrets.ts'
import { openForWriting } from '../../src/store/sqlite/connection.ts'
import { kyselyOver } from '../../src/store/sqlite/dialect.ts'
import { call } from '../equipment/client.ts'
import { plainConfiguration } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { randomFrom } from '../equipment/random.ts'
import { startUpstream } from '../equipment/scripted-upstream.ts'
import { ask } from '../equipment/fixture.ts'
import { migrateAndKill } from '../killed-migration.ts'
import { GATEWAY_SECRET } from '../equipment/program.ts'
import { newFolder, type Program, runProgram } from '../operations/program.ts'
import { temporaryFolder } from '../store-rows.ts'
import { nightSeed } from './night-seed.ts'

const TOKENS = 100_000
const HOLDS = 10_000
const KILLS = 50
const READY_MS = 3_000
/** More statements than a migration has, so that some are killed after the end. */
const STATEMENTS = 45

/**
 * Amount of a hold, cost of its prompt, and progress until the crash: the crash is charged the smaller sum.
 */
const [AMOUNT, PROMPT, PROGRESS] = [1_000, 10, 30]

/** A database of the previous schema, with open holds. */
async function formerDatabase(path: string): Promise<void> {
  const connection = openForWriting(path)
  const db = kyselyOver(connection)
  await accountsAndLedger(SQLITE_TYPES).up(db)
  await usageDays(SQLITE_TYPES).up(db)
  const secrets = deriveSecrets(GATEWAY_SECRET)
  connection.exec(`
    CREATE TABLE kysely_migration (name varchar(255) NOT NULL PRIMARY KEY, timestamp varchar(255) NOT NULL);
    CREATE TABLE kysely_migration_lock (id varchar(255) NOT NULL PRIMARY KEY, is_locked integer DEFAULT 0 NOT NULL);
    INSERT INTO kysely_migration_lock VALUES ('migration_lock', 0);
    INSERT INTO store_identity VALUES (1, '${secrets.check}');
    INSERT INTO users VALUES (2, 'ann', 'ann', 1, 1, '', '', '', '', '', '', '', 'default', 1000000000000, 0, 0, '', 0, 0, 0, 0,
      '', '', '', NULL, NULL, 0, NULL);
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${TOKENS})
    INSERT INTO tokens SELECT i, 2, 'token-' || i, 'hash-' || i, 'cipher', 1, 0, 0, -1, 1000000, 0, 0, 0, '', NULL, '', '', NULL FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${HOLDS})
    INSERT INTO holds SELECT 'hold-' || i, 'who is gone', i, 2, ${AMOUNT}, ${PROMPT}, ${PROGRESS}, 1, 'm', 'm', 'default', 1, 'v' FROM n;
    COMMIT`)
  connection
    .prepare('UPDATE tokens SET key_hash = ?, key_cipher = ? WHERE id = 1')
    .run(hashKey(secrets, 'ann'), seal(secrets, 'ann', { table: 'tokens', row: 1 }))
  for (const name of STEP_NAMES.slice(0, 2))
    connection.prepare('INSERT INTO kysely_migration VALUES (?, ?)').run(name, '2026-01-01T00:00:00.000Z')
  connection.close()
}

function stepsRun(path: string): number {
  const connection = new DatabaseSync(path)
  const { steps } = connection.prepare('SELECT count(*) AS steps FROM kysely_migration').get() ?? {}
  connection.close()
  return Number(steps)
}

test(`${TOKENS} tokens and ${HOLDS} open holds of the previous schema, its migration killed ${KILLS} times: all is there, and soon`, async () => {
  const random = randomFrom(nightSeed())
  const folder = newFolder()
  onTestFinished(() => folder.discard())
  const path = join(folder.path, 'sluice.db')
  const former = join(temporaryFolder(), 'former.db')
  await formerDatabase(former)
  const restore = (): void => {
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    copyFileSync(former, path)
  }
  restore()
  const cache = temporaryFolder()
  let [interrupted, done] = [0, 0]
  for (let kill = 0; kill < KILLS; kill++) {
    const atStatement = kill % 2 === 0 ? 1 + Math.floor(random() * STATEMENTS) : 0
    const wasDone = await migrateAndKill(path, { atStatement, afterMs: random() * 40 }, cache)
    expect(stepsRun(path)).toBeOneOf(wasDone ? [STEP_NAMES.length] : [2, STEP_NAMES.length])
    if (stepsRun(path) === 2) interrupted += 1
    else {
      done += 1
      restore()
    }
  }
  expect(interrupted).toBeGreaterThan(KILLS / 4)

  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const { users: _, ...config } = plainConfiguration(upstream.baseUrl('m'))
  const times: number[] = []
  const start = async (): Promise<Program> => {
    const program = await runProgram({ config, folder, env: { LOG_LEVEL: 'warn' } })
    onTestFinished(() => program.kill('SIGKILL'))
    return program
  }
  // Starts once after a start that was killed, and once with everything left to do.
  const killed = await start()
  await new Promise((resolve) => setTimeout(resolve, random() * 600))
  killed.kill('SIGKILL')
  await killed.exit
  for (let time = 0; time < 2; time++) {
    const began = performance.now()
    const program = await start()
    await program.ready()
    times.push(performance.now() - began)
    expect((await call(program.url, ask('m'), { key: 'ann' })).status).toBe(200)
    program.kill('SIGTERM')
    await program.exit
    expectAllThere(folder.path)
    restore()
  }
  console.log(
    `${interrupted} migrations broken off, ${done} done; ready after ${times.map((ms) => ms.toFixed(0)).join()} ms`,
  )
  for (const ms of times) expect(ms).toBeLessThanOrEqual(READY_MS)
})

function expectAllThere(folder: string): void {
  const database = databaseOf(folder)
  expect(database.openHolds()).toEqual([])
  expect(database.tokens()).toHaveLength(TOKENS)
  const crashed = database.usage().filter(({ reason }) => reason === 'crash')
  expect(crashed).toHaveLength(HOLDS)
  expect(new Set(crashed.map(({ quota }) => quota))).toEqual(new Set([PROMPT + PROGRESS]))
}
