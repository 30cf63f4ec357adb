import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deriveSecrets, hashKey, seal } from '../../src/store/secrets.ts'
import { openForWriting } from '../../src/store/sqlite/connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { randomFrom } from '../fixtures/random.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { newFolder, type Program, runProgram } from '../operations/program.ts'
import { newUser, temporaryFolder } from '../stores/rows.ts'
import { nightSeed } from './night-seed.ts'

const TOKENS = 100_000
const HOLDS = 10_000
const READY_MS = 3_000

/**
 * Amount of a hold, cost of its prompt, and progress until the crash: the crash is charged the smaller sum.
 */
const [AMOUNT, PROMPT, PROGRESS] = [1_000, 10, 30]

/** A database with open holds of a gateway that crashed. */
async function crashedDatabase(path: string): Promise<void> {
  const secrets = deriveSecrets(GATEWAY_SECRET)
  const store = await openSqliteStore({ path, secrets, onCallingThread: true })
  await store.write('createUser', newUser({ username: 'ann', quota: 1_000_000_000_000 }))
  await store.close()
  const connection = openForWriting(path)
  connection.exec(`
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${TOKENS})
    INSERT INTO tokens (id, user_id, name, key_hash, key_cipher, status, created_time, accessed_time, expired_time, remain_quota,
      unlimited_quota, used_quota, model_limits_enabled, model_limits, group_name, vendor_routes)
      SELECT i, 1, 'token-' || i, 'hash-' || i, 'cipher', 1, 0, 0, -1, 1000000, 0, 0, 0, '', '', '' FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${HOLDS})
    INSERT INTO holds (id, owner, token_id, user_id, amount, prompt_amount, progress_amount, started_ms, model, channel, group_name,
      stream, price_version, kind, budgets, requested_model, session)
      SELECT 'hold-' || i, 'who is gone', i, 1, ${AMOUNT}, ${PROMPT}, ${PROGRESS}, 1, 'm', 'm', 'default', 1, 'v', 'chat', '', 'm', '' FROM n;
    COMMIT`)
  connection
    .prepare('UPDATE tokens SET key_hash = ?, key_cipher = ? WHERE id = 1')
    .run(hashKey(secrets, 'ann'), seal(secrets, 'ann', { table: 'tokens', row: 1 }))
  connection.close()
}

test(`a start after a crash with ${TOKENS} tokens and ${HOLDS} open holds loses no charge, and takes only seconds`, async () => {
  const random = randomFrom(nightSeed())
  const folder = newFolder()
  onTestFinished(() => folder.discard())
  const path = join(folder.path, 'sluice.db')
  const former = join(temporaryFolder(), 'former.db')
  await crashedDatabase(former)
  const restore = (): void => {
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    copyFileSync(former, path)
  }
  restore()

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
  console.log(`ready after ${times.map((ms) => ms.toFixed(0)).join()} ms`)
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
