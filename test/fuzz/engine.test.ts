import { expect, test } from 'vitest'
import { byTier } from '../runner/tier.ts'
import { runFuzzer } from './run-fuzzer.ts'

const SEED = 7
/** With guidance, the lock is found within 20,000 inputs. */
const MAX_INPUTS = byTier(40_000, 200_000)

test('the fuzzer finds a deep defect, because it mutates inputs that reach more code', async () => {
  const { failure } = await runFuzzer({ target: 'lock', seed: SEED, inputs: MAX_INPUTS })
  expect(Buffer.from(failure?.input ?? '', 'base64').toString()).toBe('key')
  expect(failure?.error).toContain('open')
})

test('a fuzzer without guidance by coverage does not find a deep defect with the same number of inputs', async () => {
  const report = await runFuzzer({ target: 'lock', seed: SEED, inputs: MAX_INPUTS, isGuided: false })
  expect(report.inputs).toBeGreaterThanOrEqual(MAX_INPUTS)
  expect(report.failure).toBeUndefined()
})

test('the fuzzer makes the same inputs from the same seed', async () => {
  const order = { target: 'search-patterns', seed: SEED, inputs: 5_000 }
  const [one, other] = [await runFuzzer(order), await runFuzzer(order)]
  const { inputs, kept, characters } = one
  expect(other).toMatchObject({ inputs, kept, characters })
})

test.each([
  ['endless', 'it does not end'],
  ['hoard', 'it takes memory without bound'],
])('the fuzzer finds an input with which the parser "%s" fails: %s', async (target, error) => {
  const { failure } = await runFuzzer({
    target,
    seed: SEED,
    inputs: 1_000_000,
    bounds: { cpuMs: 500, rssMib: 400 },
  })
  expect(failure?.error).toBe(error)
  expect(Buffer.from(failure?.input ?? '', 'base64').toString('latin1')).toContain('Z')
})
