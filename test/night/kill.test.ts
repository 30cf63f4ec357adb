import process from 'node:process'
import { expect, test } from 'vitest'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { SLOW_DISK } from '../fixtures/slow-disk.ts'
import { storm } from '../fixtures/storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** The kinds of calls that the traffic makes, as in the usage log. */
const KINDS = [
  'chat',
  'completions',
  'embeddings',
  'gemini',
  'images',
  'messages',
  'moderations',
  'rerank',
  'responses',
  'speech',
  'transcriptions',
]
/** KILLS sets another number, for a shorter night. */
const kills = Number(process.env['KILLS'] ?? 200)

test(`${kills} kills of the gateway lose no charge, charge nothing twice, and overdraw no account (seed ${seed})`, {
  timeout: Math.max(300_000, 15_000 * kills),
}, async () => {
  const report = await storm({ seed, rounds: kills, clients: 128 })
  console.info(report)
  expect(report.broken).toEqual([])
  expect(report.complete).toBeGreaterThan(25 * kills)
  expect(report.partial).toBeGreaterThan(kills)
  expect(Object.keys(report.kinds).sort()).toEqual(KINDS)
})

test(`kills of a gateway whose disk is slow lose no charge, charge nothing twice, and overdraw no account (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const copy = await patchedProgram([SLOW_DISK])
  try {
    const report = await storm({ seed, rounds: Math.min(20, kills), clients: 32, root: copy.root })
    console.info(report)
    expect(report.broken).toEqual([])
  } finally {
    copy.discard()
  }
})
