import process from 'node:process'
import { expect, test } from 'vitest'
import { storm } from '../fixtures/storm.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

test.each(['bedrock', 'vertex'] as const)(
  'kills under load lose no charge and charge nothing twice with an upstream of %s',
  {
    timeout: 300_000,
  },
  async (provider) => {
    console.info(`seed ${SEED} (SEED=${SEED} repeats the requests)`)
    const report = await storm({ seed: SEED, rounds: 2, clients: 32, provider })
    console.info(report)
    expect(report.broken).toEqual([])
    expect(report.complete).toBeGreaterThan(50)
    expect(report.provided).toBeGreaterThan(30)
    expect(report.partial).toBeGreaterThan(0)
  },
)
