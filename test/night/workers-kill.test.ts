import process from 'node:process'
import { expect, test } from 'vitest'
import { storm } from '../equipment/storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
const KILLS = Number(process.env['KILLS'] ?? 200)

test(`${KILLS} kills of a gateway of two workers lose no charge, double none, and overdraw nobody (seed ${seed})`, {
  timeout: 3_600_000,
}, async () => {
  const report = await storm({ seed, rounds: KILLS, clients: 128, env: { WORKERS: '2' } })
  console.info(report)
  expect(report.broken).toEqual([])
})
