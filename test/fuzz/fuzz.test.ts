import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { runFuzzer } from './run-fuzzer.ts'
import { readCorpus } from './corpus-files.ts'
import { READERS, TARGETS } from './targets.ts'

/** What is new each night has its beginnings here, always the same; FUZZ_SEED begins elsewhere. */
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
/** For a reader of bytes, and for what reads what such a reader has read. */
const READER_MS = 2_000
const OTHER_MS = 300

describe(`the corpus, and what is bred from it with seed ${SEED}, breaks no promise of`, () => {
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
    // All that is kept is replayed, however slow the machine.
    expect(inputs).toBeGreaterThan(corpus.length)
  })
})
