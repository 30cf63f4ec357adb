import process from 'node:process'
import { expect, test } from 'vitest'
import { withoutCrashes } from '../fixtures/own-postgres.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { crashPostgres, killNodes } from './fault-injection.ts'
import { byTier } from '../runner/tier.ts'
import { nodesStorm } from './nodes-storm.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const NAME = 'kills of nodes, and a crash of PostgreSQL'

test.skipIf(withoutRedis(NAME) || withoutCrashes(NAME))(
  'when three nodes are killed in turn and PostgreSQL crashes, no charge is lost or doubled, and no lease remains',
  { timeout: 300_000 },
  async () => {
    console.info(`seed ${SEED} (SEED=${SEED} repeats the calls)`)
    const report = await nodesStorm({
      root: await patientProgram(),
      seed: SEED,
      seconds: byTier(4.5, 6),
      clientsEach: 8,
      faults: [killNodes, crashPostgres(3000, 500)],
    })
    console.info(report)
    expect(report.broken).toEqual([])
    // The traffic was varied.
    expect(report.complete).toBeGreaterThan(20)
    expect(report.partial).toBeGreaterThan(0)
  },
)
