import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { runFuzzer } from './run-fuzzer.ts'
import { readCorpus } from './corpus-files.ts'
import { READERS, TARGETS } from './targets.ts'

/** Fixed, so that each run makes the same inputs; the nightly run has a new seed. FUZZ_SEED sets another. */
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
/**
 * The number of inputs of a parser of bytes, and of a target that uses such a parser; at night they share
 * twenty minutes.
 */
const READER_INPUTS = 256
const OTHER_INPUTS = 128

describe(`the corpus, and its mutants with seed ${SEED}, passes the checks of`, () => {
  test.each(Object.keys(TARGETS))(
    'every input of the corpus, and every mutation of one, passes the checks of the target %s',
    async (target) => {
      const corpus = readCorpus(target)
      const { failure, inputs, peakMib } = await runFuzzer({
        target,
        seed: SEED,
        inputs: corpus.length + (target in READERS ? READER_INPUTS : OTHER_INPUTS),
      })
      console.log(`${target}: ${inputs} inputs, ${corpus.length} of them kept, ${peakMib} MiB`)
      expect(failure).toBeUndefined()
      expect(inputs).toBeGreaterThan(corpus.length)
    },
  )
})
