import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { runFuzzer } from '../fuzz/run-fuzzer.ts'
import { READERS, TARGETS } from '../fuzz/targets.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** Minutes for all targets together; NIGHT_MINUTES sets another number, and a night has 480. */
const MINUTES = Number(process.env['NIGHT_MINUTES'] ?? 20)
/** The time for a parser of bytes, as a multiple of the time for another target. */
const READER_SHARE = 3

const names = Object.keys(TARGETS)
const shares = names.length + (READER_SHARE - 1) * Object.keys(READERS).length
const shareMs = (MINUTES * 60_000) / shares

describe(`in ${MINUTES} minutes every mutated input passes the checks of`, () => {
  test.each(names)(
    'mutated inputs never make the parser under test crash or break its rules: %s',
    { timeout: shareMs * READER_SHARE * 2 + 120_000 },
    async (target) => {
      const ms = target in READERS ? shareMs * READER_SHARE : shareMs
      const { failure, inputs, kept, peakMib } = await runFuzzer({ target, seed, ms })
      console.log(`${target}: ${inputs} inputs, ${kept} reached something new, ${peakMib} MiB`)
      expect(failure).toBeUndefined()
    },
  )
})
