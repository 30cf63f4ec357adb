import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { HANGING_DISK } from '../fixtures/slow-disk.ts'
import { storm } from '../fixtures/storm.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

/** The nightly run kills two hundred times. */
const KILLS = 3

test(`${KILLS} kills under load lose no charge, charge nothing twice, and leave every account exact`, {
  timeout: 300_000,
}, async () => {
  console.info(`seed ${SEED} (SEED=${SEED} repeats the requests)`)
  const report = await storm({ seed: SEED, rounds: KILLS, clients: 64 })
  console.info(report)
  expect(report.broken).toEqual([])
  // The traffic was varied: the clients received responses of every kind.
  expect(report.complete).toBeGreaterThan(35 * KILLS)
  expect(report.partial).toBeGreaterThan(5)
  expect(report.refused).toBeGreaterThan(5)
})

test('on a hanging disk nothing is delivered that a kill could lose', async () => {
  const copy = await patchedProgram([HANGING_DISK])
  onTestFinished(() => copy.discard())
  const report = await storm({ seed: SEED, rounds: 1, clients: 32, hasHangingDisk: true, root: copy.root })
  expect(report.broken).toEqual([])
  expect(report.checkedStreams).toBeGreaterThan(0)
})
