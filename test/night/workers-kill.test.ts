import process from 'node:process'
import { expect, test } from 'vitest'
import { storm } from '../fixtures/storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** In each round a worker is killed, and then the owner, with which all processes end. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 100)

test(`${2 * ROUNDS} kills of a gateway with two workers lose no charge, charge nothing twice, overdraw no account (seed ${seed})`, {
  timeout: 3_600_000,
}, async () => {
  const report = await storm({ seed, rounds: ROUNDS, clients: 128, workers: 2 })
  console.info(report)
  expect(report.broken).toEqual([])
  expect(report.complete).toBeGreaterThan(20 * ROUNDS)
  expect(report.partial).toBeGreaterThan(ROUNDS / 2)
})
