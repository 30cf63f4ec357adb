import { expect, test } from 'vitest'
import { patchedProgram } from '../equipment/patched-copy.ts'
import { SLOW_DISK } from '../equipment/slow-disk.ts'
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

test(`nor on a slow disk, where the day tier's mutants are caught (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const copy = await patchedProgram([SLOW_DISK])
  try {
    const report = await storm({ seed, rounds: 20, clients: 32, root: copy.root })
    console.info(report)
    expect(report.broken).toEqual([])
  } finally {
    copy.discard()
  }
})
