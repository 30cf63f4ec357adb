import { expect, test } from 'vitest'
import { runFuzzer } from '../fuzz/run-fuzzer.ts'
import { FUZZ_DEFECTS } from './defects/fuzz.ts'

/** The maximum number of inputs, including the corpus, within which each planted defect is found. */
const MAX_INPUTS = 40_000
const SEED = 1

test.each(FUZZ_DEFECTS)('the defect that %s is found by the target %s', async (_, target, patch, words) => {
  const { failure, inputs } = await runFuzzer({ target, seed: SEED, inputs: MAX_INPUTS, patches: [patch] })
  console.log(`${target} found ${JSON.stringify(failure?.input)} after ${inputs} inputs`)
  expect(failure?.error).toContain(words)
})
