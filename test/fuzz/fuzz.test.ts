import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { runFuzzer } from './run-fuzzer.ts'
import { readCorpus } from './corpus-files.ts'
import { READERS, TARGETS } from './targets.ts'

/** Fixed, so that each run makes the same inputs; the nightly run has a new seed. FUZZ_SEED sets another. */
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
/** Time for a reader of bytes, and for a target behind such a reader; at night they share twenty minutes. */
const READER_MS = 500
const OTHER_MS = 200

describe(`the corpus, and its mutants with seed ${SEED}, breaks no promise of`, () => {
  test.each(Object.keys(TARGETS))('%s', async (target) => {
    const corpus = readCorpus(target)
    expect(corpus.length).toBeGreaterThan(0)
    const { failure, inputs, peakMib } = await runFuzzer({
      target,
      seed: SEED,
      ms: target in READERS ? READER_MS : OTHER_MS,
    })
    console.log(`${target}: ${inputs} inputs, ${corpus.length} of them kept, ${peakMib} MiB`)
    expect(failure).toBeUndefined()
    // The whole corpus is replayed, however slow the machine is.
    expect(inputs).toBeGreaterThan(corpus.length)
  })
})
