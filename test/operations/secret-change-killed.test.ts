import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { BASE_ENVIRONMENT, programFolder } from '../fixtures/program.ts'
import { randomFrom } from '../fixtures/random.ts'
import { statusOn } from '../fixtures/port.ts'
import {
  columnsSealedWith,
  expectReadable,
  fillWithSealed,
  NEW_SECRET,
  OLD_SECRET,
} from '../stores/secret-change.ts'
import { temporaryFolder } from '../stores/rows.ts'
import { byTier } from '../runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const KILLS = byTier(3, 50)
const TOKENS = 1_500

/** Starts the command on a data folder whose secret is in its file. */
async function started(dataDir: string, next: string) {
  const child = spawn(process.execPath, ['bin/sluice.mjs', 'secret', 'change'], {
    cwd: await programFolder(),
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...BASE_ENVIRONMENT, DATA_DIR: dataDir, GATEWAY_SECRET_NEW: next },
  })
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  return { child, err: () => err, exit: once(child, 'exit') as Promise<[number | null]> }
}

function secretInFile(dataDir: string): string {
  return readFileSync(join(dataDir, 'secret'), 'utf8').trim()
}

/** Whether the database is between two secrets. */
function isUnderWay(path: string): boolean {
  const file = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  try {
    return typeof file.prepare('SELECT next_check FROM secret_state').get()?.['next_check'] === 'string'
  } finally {
    file.close()
  }
}

test(`after kill -9 at ${KILLS} random points of a change of the secret, everything is readable, and in the end with one secret alone`, async () => {
  console.info(`seed ${SEED} (SEED=${SEED} repeats the pauses)`)
  const random = randomFrom(SEED)
  const dataDir = temporaryFolder()
  const path = join(dataDir, 'sluice.db')
  writeFileSync(join(dataDir, 'secret'), `${OLD_SECRET}\n`, { mode: 0o600 })
  const store = await openSqliteStore({ path, secrets: deriveSecrets(OLD_SECRET), onCallingThread: true })
  await fillWithSealed(store, TOKENS)
  await store.close()

  const begun = performance.now()
  const whole = await started(dataDir, NEW_SECRET)
  expect(await whole.exit, whole.err()).toEqual([0, null])
  const lengthMs = performance.now() - begun
  let next = OLD_SECRET
  let between = 0
  // On a busy machine a change may be over before the kill that is aimed at it: the next kill is then aimed, too.
  for (let kill = 0; kill < KILLS || (between === 0 && kill < 10 * KILLS); kill += 1) {
    const { child, exit } = await started(dataDir, next)
    if (between === 0) {
      while (child.exitCode === null && !isUnderWay(path)) await sleep(1)
    } else await sleep(random() * lengthMs)
    child.kill('SIGKILL')
    await exit
    if (isUnderWay(path)) between += 1
    const present = secretInFile(dataDir)
    // A gateway reads the files in the same way.
    const file = join(dataDir, 'secret.new')
    const secrets = deriveSecrets(present, existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined)
    const opened = await openSqliteStore({ path, secrets, onCallingThread: true })
    await expectReadable(opened, secrets, TOKENS, TOKENS / 50)
    await opened.close()
    if (present === next) next = next === OLD_SECRET ? NEW_SECRET : OLD_SECRET
  }
  expect(between).toBeGreaterThan(0)

  const gateway = await startGateway({ dataDir, config: {}, env: { GATEWAY_SECRET: '' } })
  expect(await statusOn(gateway.port, '/readyz')).toBe(200)
  await gateway.stop()
  const last = await started(dataDir, next)
  expect(await last.exit, last.err()).toEqual([0, null])
  expect(secretInFile(dataDir)).toBe(next)
  for (const secret of [OLD_SECRET, NEW_SECRET])
    expect(readFileSync(join(dataDir, `secret.old-${deriveSecrets(secret).keyId}`), 'utf8')).toBe(
      `${secret}\n`,
    )
  const before = next === OLD_SECRET ? NEW_SECRET : OLD_SECRET
  const sql = (statement: string) => {
    const database = new DatabaseSync(path)
    const rows = database.prepare(statement).all()
    database.close()
    return Promise.resolve(rows)
  }
  expect(await columnsSealedWith({ place: path, sql } as never, deriveSecrets(before))).toEqual([])
  const secrets = deriveSecrets(next)
  const opened = await openSqliteStore({ path, secrets, onCallingThread: true })
  await expectReadable(opened, secrets, TOKENS)
  await opened.close()
  const refused = openSqliteStore({ path, secrets: deriveSecrets(before), onCallingThread: true })
  await expect(refused).rejects.toThrow('another secret')
}, 600_000)
