import { expect, test } from 'vitest'
import { byTier } from '../tier.ts'
import { runFuzzer } from './run-fuzzer.ts'

const SEED = 7
/** The lock is found within 20,000 inputs that are guided. */
const MAX_INPUTS = byTier(40_000, 200_000)

test('what an input reaches leads to inputs that reach more', async () => {
  const { failure } = await runFuzzer({ target: 'lock', seed: SEED, inputs: MAX_INPUTS })
  expect(Buffer.from(failure?.input ?? '', 'base64').toString()).toBe('key')
  expect(failure?.error).toContain('open')
})

test('by chance alone it is not found in as many', async () => {
  const report = await runFuzzer({ target: 'lock', seed: SEED, inputs: MAX_INPUTS, isGuided: false })
  expect(report.inputs).toBeGreaterThanOrEqual(MAX_INPUTS)
  expect(report.failure).toBeUndefined()
})

test('the same seed makes the same inputs', async () => {
  const order = { target: 'search-patterns', seed: SEED, inputs: 5_000 }
  const [one, other] = [await runFuzzer(order), await runFuzzer(order)]
  const { inputs, kept, characters } = one
  expect(other).toMatchObject({ inputs, kept, characters })
})

test.each([
  ['endless', 'it does not end'],
  ['hoard', 'it takes memory without bound'],
])('an input that makes a reader %s is found: %s', async (target, error) => {
  const { failure } = await runFuzzer({
    target,
    seed: SEED,
    inputs: 1_000_000,
    bounds: { cpuMs: 500, rssMib: 400 },
  })
  expect(failure?.error).toBe(error)
  expect(Buffer.from(failure?.input ?? '', 'base64').toString('latin1')).toContain('Z')
})
