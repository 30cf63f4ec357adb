import { randomUUIDv7 } from 'node:crypto'
import { expect, test } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { join } from 'node:path'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { processCpuMs } from '../fixtures/process-cpu.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { discard, type Program, runProgram } from './program.ts'
import { byTier } from '../runner/tier.ts'

const HOLDS = byTier(3_000, 10_000)
/** How many times as much CPU time as a start without open holds one with them may take. */
const MOST_RATIO = 10

/** Makes open holds of an earlier run, each of 1000 units, of which 30 are known to be used. */
async function leaveHolds({ folder }: Program): Promise<void> {
  const store = await openSqliteStore({
    path: join(folder.path, 'sluice.db'),
    secrets: deriveSecrets(GATEWAY_SECRET),
  })
  const { id, user_id } = databaseOf(folder.path).token('token-ann')
  const written = Array.from({ length: HOLDS }, () =>
    store.write('hold', {
      id: randomUUIDv7(),
      owner: 'a gateway that was killed',
      token_id: id,
      user_id: user_id,
      amount: 1000,
      prompt_amount: 30,
      model: 'm',
      requested_model: 'm',
      channel: 'main',
      group: 'default',
      stream: true,
      price_version: '0123456789ab',
      kind: 'chat',
      session: '',
      budgets: '',
      started_ms: Date.now() - 5000,
    }),
  )
  await Promise.all(written)
  await store.close()
}

test(`${HOLDS} open holds of an earlier run are settled within seconds at a start, before the first call is accepted`, async () => {
  const config = {
    models: priced(['m']),
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 1_000_000 })])],
  }
  let program = await runProgram({ config, ownProcess: true })
  const { folder } = program
  try {
    await program.ready()
    program.kill('SIGTERM')
    await program.exit
    const start = async (): Promise<number> => {
      program = await runProgram({ folder, ownProcess: true })
      await program.ready()
      // The duration would depend on what else the machine does at that moment.
      return processCpuMs(program.pid)
    }
    const plain = await start()
    program.kill('SIGKILL')
    await program.exit
    await leaveHolds(program)
    const recovering = await start()
    expect(recovering).toBeLessThan(MOST_RATIO * plain)
    // The program reports it at the end of its start, after it began to take calls.
    await expect
      .poll(() => program.out())
      .toContain(`Settled ${HOLDS} calls that an earlier run left open: ${30 * HOLDS} quota units (`)
    const database = databaseOf(folder.path)
    expect(database.openHolds()).toEqual([])
    expect(database.usage().filter(({ reason, quota }) => reason === 'crash' && quota === 30)).toHaveLength(
      HOLDS,
    )
    expect(database.token('token-ann')).toMatchObject({
      remain_quota: 1_000_000 - 30 * HOLDS,
      used_quota: 30 * HOLDS,
    })
  } finally {
    await discard(program)
  }
})
