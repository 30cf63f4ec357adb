import process from 'node:process'
import { beforeAll, describe, expect, test } from 'vitest'
import { readCorpus } from './corpus-files.ts'
import type { FuzzReport } from './fuzz-job.ts'
import { runFuzzers } from './run-fuzzer.ts'
import { READERS, TARGETS } from './targets.ts'

/** Fixed, so that each run makes the same inputs; the nightly run has a new seed. FUZZ_SEED sets another. */
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
/**
 * The number of mutants for a parser of bytes, and of a target that uses such a parser; at night they share
 * twenty minutes.
 */
const READER_INPUTS = 256
const OTHER_INPUTS = 128

const JOBS = Object.keys(TARGETS).map((target) => {
  const corpus = readCorpus(target).length
  return { target, corpus, inputs: corpus + (target in READERS ? READER_INPUTS : OTHER_INPUTS) }
})

describe(`the corpus, and its mutants with seed ${SEED}, passes the checks of`, () => {
  let reports: readonly FuzzReport[] = []
  // Most of a process is its start, and so few inputs need no guide.
  beforeAll(async () => {
    reports = await runFuzzers(
      JOBS.map(({ target, inputs }) => ({ target, inputs, seed: SEED, isGuided: false })),
    )
  })

  test.each(JOBS.map((job, at) => [job.target, job, at] as const))(
    'every input of the corpus, and every mutation of one, passes the checks of the target %s',
    (target, { corpus }, at) => {
      const report = reports[at]
      if (!report) throw new Error('a target before it has ended the process')
      console.log(`${target}: ${report.inputs} inputs, ${corpus} of them kept`)
      expect(report.failure).toBeUndefined()
      expect(report.inputs).toBeGreaterThan(corpus)
    },
  )
})
