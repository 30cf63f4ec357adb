import { expect, test } from 'vitest'
import { storm } from '../equipment/storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

test(`two hundred kills lose no charge, double none, and overdraw nobody (seed ${seed})`, {
  timeout: 1_800_000,
}, async () => {
  const report = await storm({ seed, rounds: 200, clients: 128 })
  console.info(report)
  expect(report.broken).toEqual([])
  expect(report.complete).toBeGreaterThan(5000)
  expect(report.partial).toBeGreaterThan(200)
})
